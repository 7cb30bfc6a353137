"""A WebSub hub for the feeds of this store: who asks is told when a feed has new entries, without polling.

    ask        a reader says where to call back; what cannot be is refused
    verify     the callback is asked whether it wants that: whoever did not ask does not answer the challenge
    deliver    new entries are posted to it, signed with its secret, until its lease ends

A delivery that fails is tried again, later and later, and given up in the end: its entries are still in the feed. A
callback that answers 410 is forgotten.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from urllib.parse import urlencode, urlsplit

import httpx

from tidings.errors import InputError
from tidings.feeds.fetching import Answer, Fetcher, Manners
from tidings.feeds.network import FetchProblem, Network, host_of
from tidings.feeds.personal import Gone, Opened, PersonalFeeds
from tidings.feeds.rendering import FORMATS
from tidings.store import Delivery, HubSubscription, Intent

MODES = ("subscribe", "unsubscribe")
LONGEST_CALLBACK, LONGEST_SECRET = 1_000, 199
"""Databases look callbacks up; the standard says that a secret has less than 200 bytes."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What the hub does for whom. Times are in seconds.

    `retries` are the waits after each failed delivery; after the last it is given up. `inside` allows callbacks on this
    machine and in private networks.
    """

    lease: int = 864_000
    shortest: int = 60
    longest: int = 2_592_000
    waiting: int = 1_000
    per_feed: int = 100
    retries: tuple[int, ...] = (10, 60, 300, 1_800, 7_200, 21_600)
    questions: tuple[int, ...] = (30, 300)
    inside: bool = False


class HubBusy(InputError):
    """More ask than are served now."""


class Caller(Fetcher):
    """Calls callbacks: redirects are failures, answers are short."""

    def __init__(self, network: Network | None = None) -> None:
        super().__init__(Manners(connect=5.0, read=10.0, total=20.0, size=100_000, redirects=0), network)

    def push(self, url: str, headers: Mapping[str, str], body: bytes, inside_host: str | None) -> Answer:
        return self._ask("POST", url, headers, body, inside_host)


class Hub:
    """Answers those who ask, and carries out what is due. Several may work on one store."""

    def __init__(
        self,
        feeds: PersonalFeeds,
        rules: Rules | None = None,
        caller: Caller | None = None,
        chance: Random | None = None,
    ) -> None:
        self.feeds, self.store = feeds, feeds.store.hub
        self.rules, self.caller, self._chance = rules or Rules(), caller or Caller(), chance or Random()

    def ask(self, form: Mapping[str, str]) -> None:
        """Take what somebody asks for, to be verified, or refuse it."""
        mode = form.get("hub.mode", "")
        if mode not in MODES:
            raise InputError("no mode of a hub", received=repr(mode[:40]), accepted=", ".join(MODES))
        hash, format = self._topic(form.get("hub.topic", ""))
        intent = Intent(
            hash,
            format,
            self._callback(form.get("hub.callback", "")),
            mode,
            _secret(form.get("hub.secret", "")),
            self._lease(form.get("hub.lease_seconds", "")),
            secrets.token_urlsafe(24),
        )
        if mode == "subscribe" and len(self.store.subscriptions(hash)) >= self.rules.per_feed:
            raise HubBusy("this feed has as many subscribers as it may", accepted=f"{self.rules.per_feed:,}")
        if not self.store.ask(intent, self.rules.waiting):
            raise HubBusy("too many wait to be verified", accepted=f"{self.rules.waiting:,}", hint="later")

    def _topic(self, url: str) -> tuple[str, str]:
        """The hash of the address of a feed and its format. Feeds that never were and feeds that are gone are alike."""
        token, format = self.feeds.places.topic(url) or ("", "")
        opened = self.feeds.open(token) if format in FORMATS else None
        if not isinstance(opened, Opened):
            accepted = "the rel=self address of a feed of this service"
            raise InputError("no topic of this hub", where="hub.topic", accepted=accepted)
        return opened.address.hash, format

    def _callback(self, url: str) -> str:
        is_one = len(url) <= LONGEST_CALLBACK and url.isascii() and _names_one_host(url)
        if not is_one or urlsplit(url).fragment:
            accepted = f"at most {LONGEST_CALLBACK:,} characters, all of them ASCII, without a fragment"
            raise InputError("no callback", where="hub.callback", accepted=accepted)
        if not self.rules.inside and self.caller.network.leads_inside(url):
            accepted = "public addresses"
            raise InputError("a callback in a private network", where="hub.callback", accepted=accepted)
        return url

    def _lease(self, asked: str) -> int:
        """A lease within what the hub grants; zero was a lease without an end once, and means the hub's own."""
        if asked and not (asked.isascii() and asked.isdecimal()):
            raise InputError("no lease", where="hub.lease_seconds", received=repr(asked[:40]))
        wanted = int(asked[:10] or 0) or self.rules.lease
        return max(self.rules.shortest, min(wanted, self.rules.longest))

    def _inside(self, callback: str) -> str | None:
        return host_of(callback)[0] if self.rules.inside else None

    def verify(self, intent: Intent) -> None:
        """Ask the callback whether it wants what was asked for in its name."""
        opened = self._opened(intent.address)
        if opened is None or intent.attempts > len(self.rules.questions):
            self.store.drop(intent)
            return
        try:
            answer = self.caller.fetch(self._question(intent, opened), {}, self._inside(intent.callback))
        except FetchProblem:
            self._ask_later(intent)
            return
        if answer.status >= 500:
            self._ask_later(intent)
        elif 200 <= answer.status < 300 and answer.body == intent.challenge.encode():
            self.store.confirm(intent, opened.last)
        else:
            self.store.drop(intent)

    def _question(self, intent: Intent, opened: Opened) -> str:
        asked = {
            "hub.mode": intent.mode,
            "hub.topic": self.feeds.places.feed(opened.token, intent.format),
            "hub.challenge": intent.challenge,
        }
        asked |= {"hub.lease_seconds": str(intent.lease)} if intent.mode == "subscribe" else {}
        parts = urlsplit(intent.callback)
        return parts._replace(query="&".join(filter(None, (parts.query, urlencode(asked))))).geturl()

    def _ask_later(self, intent: Intent) -> None:
        waits = self.rules.questions
        if intent.attempts < len(waits):
            self.store.postpone(intent, waits[intent.attempts])
        else:
            self.store.drop(intent)

    def _opened(self, hash: str) -> Opened | None:
        """The feed of an address, if it can still be read there."""
        address = self.feeds.store.personal_feeds.find(hash)
        token = self.feeds.addresses.token_of(address) if address else None
        opened = self.feeds.opened(address, token) if address and token else Gone()
        return opened if isinstance(opened, Opened) else None

    def distribute(self, most: int) -> None:
        """Begin deliveries to those whose feeds have new entries."""
        last: dict[str, int | None] = {}
        for one in self.store.behind(most):
            if one.address not in last:
                opened = self._opened(one.address)
                last[one.address] = opened.last if opened else None
            newest = last[one.address]
            if newest is None:
                self.store.forget(one)
            elif newest > one.told:
                self.store.begin(one, newest)

    def deliver(self, one: Delivery, to: HubSubscription) -> None:
        """Post the entries of a delivery to its callback."""
        opened = self._opened(one.address)
        if opened is None:
            self.store.forget(to)
            return
        if one.attempts > len(self.rules.retries):
            self.store.failed(one, one.problem or "the hub ended each time", None)
            return
        body = self.feeds.news(opened, one.format, one.first, one.last)
        headers = self._headers(opened, to, body)
        try:
            status = self.caller.push(to.callback, headers, body, self._inside(to.callback)).status
        except FetchProblem as problem:
            self._failed(one, str(problem))
            return
        if status == 410:
            self.store.forget(to)
        elif 200 <= status < 300:
            self.store.delivered(one)
        else:
            self._failed(one, f"status {status}")

    def _headers(self, opened: Opened, to: HubSubscription, body: bytes) -> dict[str, str]:
        places = self.feeds.places
        topic = places.feed(opened.token, to.format)
        headers = {
            "content-type": FORMATS[to.format].content_type,
            "link": f'<{places.hub}>; rel="hub", <{topic}>; rel="self"',
        }
        if to.secret:
            headers["x-hub-signature"] = "sha256=" + hmac.new(to.secret.encode(), body, "sha256").hexdigest()
        return headers

    def _failed(self, one: Delivery, problem: str) -> None:
        """Waits differ a little, so that what failed together does not come back together."""
        waits = self.rules.retries
        wait = waits[one.attempts] * self._chance.uniform(1.0, 1.1) if one.attempts < len(waits) else None
        self.store.failed(one, problem[:500], wait)


def _names_one_host(url: str) -> bool:
    """Whether the two who read an address, the one that looks and the one that calls, read the same in it.

    They do not in `http://127.0.0.1:1-]&[::1`.
    """
    try:
        return httpx.URL(url).host == host_of(url)[0]
    except httpx.InvalidURL:
        return False


def _secret(given: str) -> str | None:
    if len(given.encode("utf-8", "surrogatepass")) > LONGEST_SECRET or not given.isprintable():
        accepted = f"at most {LONGEST_SECRET} bytes that can be shown"
        raise InputError("no secret", where="hub.secret", accepted=accepted)
    return given or None
