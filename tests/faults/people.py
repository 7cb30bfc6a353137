"""Those who use a service that is killed again and again, each in a thread: they publish, follow, edit, are called.

Each writes down what was acknowledged to them, and when; whether that is what must be is asked in the end (`oracle`).
"""

from __future__ import annotations

import json
import random
import threading
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import httpx
from standardwebhooks.webhooks import Webhook
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from tests.spark import workload
from tests.support.servers.site import Request, Response
from tidings.client import Client, PublishResult, RetryPolicy
from tidings.client.stream import EventStreamParser
from tidings.errors import TidingsError

PATIENCE = RetryPolicy(attempts=100_000, initial_delay=0.05, max_delay=1.0)
PEOPLE = 5
BULK = 25
EVENTS_AN_EDIT = 10


@dataclass
class Crowd:
    """Everybody, until `stop` is set; what went wrong with them is in `problems`."""

    url: str
    token: str
    seed: int
    most: int = 0
    """How much each may do so far: it grows with each blow, however long the machine takes."""
    stop: threading.Event = field(default_factory=threading.Event)
    problems: list[str] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)

    def client(self) -> Client:
        return Client(self.url, self.token, PATIENCE)

    def begin(self, work: Callable[[], None], ends: bool = True) -> None:
        """Have a thread do some work; one that does not end when it should is not waited for."""

        def watched() -> None:
            try:
                work()
            except BaseException:  # noqa: BLE001 - the test that waits for the threads raises it
                self.problems.append(traceback.format_exc())

        thread = threading.Thread(target=watched, daemon=True)
        thread.start()
        self.threads += [thread] if ends else []

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


@dataclass(frozen=True)
class Sent:
    """A publication, when it was sent first, and where it stands by what was acknowledged."""

    id: str
    body: bytes
    sent: float
    position: int


@dataclass
class Publisher:
    """Publishes single events and bulks, with ids of its own."""

    crowd: Crowd
    name: str
    bulks: bool
    pause: float
    taken: list[Sent] = field(default_factory=list)

    def __call__(self) -> None:
        count = 0
        with self.crowd.client() as client:
            while not self.crowd.stop.wait(self.pause):
                if count >= self.crowd.most:
                    continue
                many = BULK if self.bulks else 1
                named = {}
                for i, body in enumerate(workload.events(many, _first(self.name) + count)):
                    id = f"{self.name}-{count + i}"
                    named[id] = json.dumps({**json.loads(body), "id": id}, separators=(",", ":")).encode()
                count += many
                self._publish(client, named)

    def _publish(self, client: Client, named: dict[str, bytes]) -> None:
        sent = monotonic()
        if self.bulks:
            outcomes = list(client.publish_many(list(named.values()), id_field="id"))
        else:
            [(id, body)] = named.items()
            outcomes = [client.publish(body, id=id)]
        for (id, body), outcome in zip(named.items(), outcomes, strict=True):
            assert isinstance(outcome, PublishResult), outcome
            assert outcome.id == id
            self.taken.append(Sent(id, body, sent, outcome.position))


def _first(name: str) -> int:
    """Where in the endless row of events a publisher begins."""
    return sum(map(ord, name)) * 1_000_000


@dataclass
class ComingBack(ABC):
    """Somebody who follows their notifications, and asks each time they are cut off for what comes after the last."""

    crowd: Crowd
    who: str
    heard: list[tuple[int, str]] = field(default_factory=list)
    connections: int = 0

    @property
    def last(self) -> int:
        return self.heard[-1][0] if self.heard else 0

    def __call__(self) -> None:
        while not self.crowd.stop.is_set():
            with suppress(OSError, httpx.TransportError, WebSocketException, TimeoutError):
                self.follow()
            self.crowd.stop.wait(0.1)

    @abstractmethod
    def follow(self) -> None:
        """Until the connection ends."""


class Reader(ComingBack):
    """By server-sent events."""

    def follow(self) -> None:
        lines = EventStreamParser()
        path = f"{self.crowd.url}/v1/notifications/stream?subscriber={self.who}"
        asked = {**self.crowd.headers, "Last-Event-ID": str(self.last)}
        with httpx.stream("GET", path, headers=asked, timeout=httpx.Timeout(45, connect=5)) as news:
            if news.status_code == 503:
                return
            assert news.status_code == 200, news.read()
            self.connections += 1
            for line in news.iter_lines():
                block = lines.feed_line(line)
                if block is not None and block.data is not None:
                    self.heard.append((block.id, json.loads(block.data)["id"]))
                if self.crowd.stop.is_set():
                    return


class Listener(ComingBack):
    """Over a WebSocket, with the last number as `after`; acknowledges now and then."""

    def follow(self) -> None:
        address = self.crowd.url.replace("http", "ws", 1)
        path = f"{address}/v1/notifications/ws?subscriber={self.who}&after={self.last}"
        with connect(path, additional_headers=self.crowd.headers, open_timeout=5, close_timeout=1) as socket:
            self.connections += 1
            while not self.crowd.stop.is_set():
                try:
                    event = json.loads(socket.recv(timeout=1))
                except TimeoutError:
                    continue
                self.heard.append((event["data"]["sequence"], event["id"]))
                if self.last % 7 == 0:
                    socket.send(json.dumps({"ack": self.last}))


@dataclass
class Follower:
    """Follows with the client of the product, which comes back for ever, and acknowledges what it was told."""

    crowd: Crowd
    who: str
    heard: list[tuple[int, str]] = field(default_factory=list)
    acknowledged: int = 0

    def __call__(self) -> None:
        with self.crowd.client() as client:
            for told in client.follow(after=0, subscriber=self.who):
                self.heard.append((told.sequence, told.id))
                if told.sequence % 10 == 0:
                    self.acknowledged = client.acknowledge(told.sequence, self.who).acknowledged
                    assert self.acknowledged >= told.sequence
                if self.crowd.stop.is_set():
                    return


@dataclass(frozen=True)
class Version:
    """What a subscription was from a moment on: its text, or None when it was paused or not there."""

    text: str | None
    asked: float
    done: float


@dataclass
class Editor:
    """Makes subscriptions, changes, pauses, resumes and withdraws them."""

    crowd: Crowd
    name: str
    versions: dict[str, list[Version]] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    held: dict[str, str | None] = field(default_factory=dict)
    """The texts of those that are paused."""

    def __call__(self) -> None:
        dice = random.Random(f"{self.crowd.seed} {self.name}")
        texts = [one.text for one in workload.subscriptions(40)]
        with self.crowd.client() as client:
            while not self.crowd.stop.wait(dice.uniform(0.2, 1.5)):
                if sum(map(len, self.versions.values())) < self.crowd.most / EVENTS_AN_EDIT:
                    self._edit(client, dice, dice.choice(texts))

    def _edit(self, client: Client, dice: random.Random, text: str) -> None:
        known = [id for id, versions in self.versions.items() if versions[-1].text is not None]
        paused = sorted(self.held)
        what = dice.choice(("make", "make", "change", "change", "pause", "resume", "withdraw"))
        if what == "make" or not known:
            id, who = f"{self.name}-{len(self.versions)}", f"u{dice.randrange(PEOPLE)}"
            self.owners[id] = who
            within = dice.choice((None, None, "1 second"))
            self._done(id, text, lambda: client.subscribe(text, within=within, id=id, subscriber=who))
        elif what == "change":
            id = dice.choice(known)
            self._done(id, text, lambda: client.change(id, text))
        elif what == "pause":
            id = dice.choice(known)
            self.held[id] = self.versions[id][-1].text
            self._done(id, None, lambda: client.pause(id))
        elif what == "resume" and paused:
            id = dice.choice(paused)
            self._done(id, self.held.pop(id), lambda: client.resume(id))
        elif what == "withdraw":
            id = dice.choice(known)
            self._done(id, None, lambda: client.unsubscribe(id))

    def _done(self, id: str, text: str | None, call: Callable[[], Any]) -> None:
        asked = monotonic()
        call()
        self.versions.setdefault(id, []).append(Version(text, asked, monotonic()))


@dataclass
class Watcher:
    """Looks again and again how far everything is matched."""

    crowd: Crowd
    seen: list[tuple[float, int]] = field(default_factory=list)
    now: dict[str, int] = field(default_factory=dict)

    def __call__(self) -> None:
        with httpx.Client(headers=self.crowd.headers, timeout=5) as http:
            while not self.crowd.stop.wait(0.2):
                with suppress(httpx.TransportError):
                    answer = http.get(f"{self.crowd.url}/v1/pipeline?minutes=1")
                    if answer.status_code == 200:
                        self.now = answer.json()["now"]
                        self.seen.append((monotonic(), self.now["position"]))


@dataclass(frozen=True)
class Call:
    """A webhook that came: its id, the subscription, the numbers of what it tells, and how it was answered.

    `recorded` is how many of its subscription were recorded as delivered when it came again.
    """

    destination: str
    id: str
    subscription: str
    numbers: tuple[int, ...]
    taken: bool
    recorded: int | None


@dataclass
class Receiver:
    """Takes signed webhooks; some it refuses, some it leaves waiting."""

    crowd: Crowd
    secrets: dict[str, str]
    calls: list[Call] = field(default_factory=list)
    moody: bool = True
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._dice = random.Random(f"{self.crowd.seed} receiver")
        self._turn, self._seen = threading.Event(), set[tuple[str, int]]()
        self._client = Client(self.crowd.url, self.crowd.token, RetryPolicy(attempts=1))

    def __call__(self, request: Request) -> Response:
        try:
            return self._answer(request)
        except BaseException:
            self.crowd.problems.append(traceback.format_exc())
            raise

    def _answer(self, request: Request) -> Response:
        if len(request.body) < int(request.headers["content-length"]):
            return Response(400)  # whoever sent it was killed in the middle
        who = request.path.strip("/")
        event = Webhook(self.secrets[who]).verify(request.body, dict(request.headers))
        id = request.headers["webhook-id"]
        assert event["id"] == id
        subscription, numbers = told_in(event)
        with self.lock:
            repeated = (subscription, numbers[0]) in self._seen
            self._seen.add((subscription, numbers[0]))
            mood = self._dice.random() if self.moody else 1.0
        recorded = self._recorded(subscription) if repeated else None
        taken = mood >= 0.06
        with self.lock:
            self.calls.append(Call(who, id, subscription, numbers, taken, recorded))
        if mood < 0.02:
            self._turn.wait(3)
        return Response(204 if taken else 500)

    def _recorded(self, subscription: str) -> int | None:
        with suppress(TidingsError):
            return self._client.subscription(subscription).health.delivered
        return None


def told_in(event: dict[str, Any]) -> tuple[str, tuple[int, ...]]:
    """The subscription that a webhook is about, and the numbers of what it tells."""
    subscription = event["source"].removeprefix("/subscriptions/")
    if event["type"] == "tidings.digest":
        items = event["data"]["notifications"]
        return subscription, tuple(sorted(number for item in items for number in item["sequences"]))
    return subscription, (event["data"]["sequence"],)
