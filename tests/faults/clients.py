"""Clients of a service that is killed again and again, each in a thread: they publish, follow, edit and receive
webhooks.

Each records what the service acknowledged, and when; `oracle` checks the records in the end.
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

RETRIES = RetryPolicy(attempts=100_000, initial_delay=0.05, max_delay=1.0)
SUBSCRIBERS = 5
BULK = 25
EVENTS_PER_EDIT = 10


@dataclass
class Crowd:
    """All clients, until `stop` is set; `problems` has their errors."""

    url: str
    token: str
    seed: int
    most: int = 0
    """The amount of work allowed so far: it grows with each fault, however slow the machine is."""
    stop: threading.Event = field(default_factory=threading.Event)
    problems: list[str] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)

    def client(self) -> Client:
        return Client(self.url, self.token, RETRIES)

    def begin(self, work: Callable[[], None], ends: bool = True) -> None:
        """Run some work in a thread; one that does not end in time is not waited for."""

        def run() -> None:
            try:
                work()
            except BaseException:  # noqa: BLE001 - the test that waits for the threads raises it
                self.problems.append(traceback.format_exc())

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self.threads += [thread] if ends else []

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


@dataclass(frozen=True)
class AcceptedPublication:
    """An acknowledged publication, when it was sent first, and its position."""

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
    accepted: list[AcceptedPublication] = field(default_factory=list)

    def __call__(self) -> None:
        count = 0
        with self.crowd.client() as client:
            while not self.crowd.stop.wait(self.pause):
                if count >= self.crowd.most:
                    continue
                many = BULK if self.bulks else 1
                bodies = {}
                for i, body in enumerate(workload.events(many, _first(self.name) + count)):
                    id = f"{self.name}-{count + i}"
                    bodies[id] = json.dumps({**json.loads(body), "id": id}, separators=(",", ":")).encode()
                count += many
                self._publish(client, bodies)

    def _publish(self, client: Client, bodies: dict[str, bytes]) -> None:
        sent = monotonic()
        if self.bulks:
            outcomes = list(client.publish_many(list(bodies.values()), id_field="id"))
        else:
            [(id, body)] = bodies.items()
            outcomes = [client.publish(body, id=id)]
        for (id, body), outcome in zip(bodies.items(), outcomes, strict=True):
            assert isinstance(outcome, PublishResult), outcome
            assert outcome.id == id
            self.accepted.append(AcceptedPublication(id, body, sent, outcome.position))


def _first(name: str) -> int:
    """Return the position in the endless sequence of events where a publisher begins."""
    return sum(map(ord, name)) * 1_000_000


@dataclass
class ReconnectingClient(ABC):
    """A client that follows its notifications, and resumes behind the last one after each disconnect."""

    crowd: Crowd
    subscriber: str
    received: list[tuple[int, str]] = field(default_factory=list)
    connections: int = 0

    @property
    def last(self) -> int:
        return self.received[-1][0] if self.received else 0

    def __call__(self) -> None:
        while not self.crowd.stop.is_set():
            with suppress(OSError, httpx.TransportError, WebSocketException, TimeoutError):
                self.follow()
            self.crowd.stop.wait(0.1)

    @abstractmethod
    def follow(self) -> None:
        """Follow until the connection ends."""


class Reader(ReconnectingClient):
    """A client of server-sent events."""

    def follow(self) -> None:
        lines = EventStreamParser()
        path = f"{self.crowd.url}/v1/notifications/stream?subscriber={self.subscriber}"
        headers = {**self.crowd.headers, "Last-Event-ID": str(self.last)}
        with httpx.stream("GET", path, headers=headers, timeout=httpx.Timeout(45, connect=5)) as stream:
            if stream.status_code == 503:
                return
            assert stream.status_code == 200, stream.read()
            self.connections += 1
            for line in stream.iter_lines():
                block = lines.feed_line(line)
                if block is not None and block.data is not None:
                    self.received.append((block.id, json.loads(block.data)["id"]))
                if self.crowd.stop.is_set():
                    return


class Listener(ReconnectingClient):
    """A client of the WebSocket, with the last number as `after`, which acknowledges now and then."""

    def follow(self) -> None:
        address = self.crowd.url.replace("http", "ws", 1)
        path = f"{address}/v1/notifications/ws?subscriber={self.subscriber}&after={self.last}"
        with connect(path, additional_headers=self.crowd.headers, open_timeout=5, close_timeout=1) as socket:
            self.connections += 1
            while not self.crowd.stop.is_set():
                try:
                    event = json.loads(socket.recv(timeout=1))
                except TimeoutError:
                    continue
                self.received.append((event["data"]["sequence"], event["id"]))
                if self.last % 7 == 0:
                    socket.send(json.dumps({"ack": self.last}))


@dataclass
class Follower:
    """The Python client, which reconnects forever and acknowledges its notifications."""

    crowd: Crowd
    subscriber: str
    received: list[tuple[int, str]] = field(default_factory=list)
    acknowledged: int = 0

    def __call__(self) -> None:
        with self.crowd.client() as client:
            for notification in client.follow(after=0, subscriber=self.subscriber):
                self.received.append((notification.sequence, notification.id))
                if notification.sequence % 10 == 0:
                    self.acknowledged = client.acknowledge(
                        notification.sequence, self.subscriber
                    ).acknowledged
                    assert self.acknowledged >= notification.sequence
                if self.crowd.stop.is_set():
                    return


@dataclass(frozen=True)
class Version:
    """A version of a subscription: its text, or None while it is paused or absent."""

    text: str | None
    started: float
    finished: float


@dataclass
class Editor:
    """Creates, changes, pauses, resumes and deletes subscriptions."""

    crowd: Crowd
    name: str
    versions: dict[str, list[Version]] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    paused_texts: dict[str, str | None] = field(default_factory=dict)
    """The texts of paused subscriptions."""

    def __call__(self) -> None:
        dice = random.Random(f"{self.crowd.seed} {self.name}")
        texts = [one.text for one in workload.subscriptions(40)]
        with self.crowd.client() as client:
            while not self.crowd.stop.wait(dice.uniform(0.2, 1.5)):
                if sum(map(len, self.versions.values())) < self.crowd.most / EVENTS_PER_EDIT:
                    self._edit(client, dice, dice.choice(texts))

    def _edit(self, client: Client, dice: random.Random, text: str) -> None:
        active = [id for id, versions in self.versions.items() if versions[-1].text is not None]
        paused = sorted(self.paused_texts)
        action = dice.choice(("make", "make", "change", "change", "pause", "resume", "withdraw"))
        if action == "make" or not active:
            id, subscriber = f"{self.name}-{len(self.versions)}", f"u{dice.randrange(SUBSCRIBERS)}"
            self.owners[id] = subscriber
            within = dice.choice((None, None, "1 second"))
            self._record(
                id, text, lambda: client.subscribe(text, within=within, id=id, subscriber=subscriber)
            )
        elif action == "change":
            id = dice.choice(active)
            self._record(id, text, lambda: client.change(id, text))
        elif action == "pause":
            id = dice.choice(active)
            self.paused_texts[id] = self.versions[id][-1].text
            self._record(id, None, lambda: client.pause(id))
        elif action == "resume" and paused:
            id = dice.choice(paused)
            self._record(id, self.paused_texts.pop(id), lambda: client.resume(id))
        elif action == "withdraw":
            id = dice.choice(active)
            self._record(id, None, lambda: client.unsubscribe(id))

    def _record(self, id: str, text: str | None, call: Callable[[], Any]) -> None:
        started = monotonic()
        call()
        self.versions.setdefault(id, []).append(Version(text, started, monotonic()))


@dataclass
class Watcher:
    """Polls the position up to which everything is matched."""

    crowd: Crowd
    positions: list[tuple[float, int]] = field(default_factory=list)
    now: dict[str, int] = field(default_factory=dict)

    def __call__(self) -> None:
        with httpx.Client(headers=self.crowd.headers, timeout=5) as http:
            while not self.crowd.stop.wait(0.2):
                with suppress(httpx.TransportError):
                    answer = http.get(f"{self.crowd.url}/v1/pipeline?minutes=1")
                    if answer.status_code == 200:
                        self.now = answer.json()["now"]
                        self.positions.append((monotonic(), self.now["position"]))


@dataclass(frozen=True)
class Call:
    """A webhook request: its id, the subscription, the numbers of its notifications, and the answer.

    `recorded` is the number of notifications of its subscription that were recorded as delivered when it was
    repeated.
    """

    destination: str
    id: str
    subscription: str
    numbers: tuple[int, ...]
    accepted: bool
    recorded: int | None


@dataclass
class Receiver:
    """Accepts signed webhooks; rejects some of them, and answers others late."""

    crowd: Crowd
    secrets: dict[str, str]
    calls: list[Call] = field(default_factory=list)
    is_flaky: bool = True
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
            return Response(400)  # the sender was killed in the middle
        subscriber = request.path.strip("/")
        event = Webhook(self.secrets[subscriber]).verify(request.body, dict(request.headers))
        id = request.headers["webhook-id"]
        assert event["id"] == id
        subscription, numbers = notifications_in(event)
        with self.lock:
            repeated = (subscription, numbers[0]) in self._seen
            self._seen.add((subscription, numbers[0]))
            chance = self._dice.random() if self.is_flaky else 1.0
        recorded = self._recorded(subscription) if repeated else None
        accepted = chance >= 0.06
        with self.lock:
            self.calls.append(Call(subscriber, id, subscription, numbers, accepted, recorded))
        if chance < 0.02:
            self._turn.wait(3)
        return Response(204 if accepted else 500)

    def _recorded(self, subscription: str) -> int | None:
        with suppress(TidingsError):
            return self._client.subscription(subscription).health.delivered
        return None


def notifications_in(event: dict[str, Any]) -> tuple[str, tuple[int, ...]]:
    """Return the subscription of a webhook, and the numbers of its notifications."""
    subscription = event["source"].removeprefix("/subscriptions/")
    if event["type"] == "tidings.digest":
        items = event["data"]["notifications"]
        return subscription, tuple(sorted(number for item in items for number in item["sequences"]))
    return subscription, (event["data"]["sequence"],)
