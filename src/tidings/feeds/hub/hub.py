"""WebSub hub for the feeds of this store: readers get new entries without polling.

ask        a reader requests a subscription with a callback URL
verify     the callback confirms the request by returning a challenge, and becomes a destination
deliver    the delivery engine posts new entries, signed with the callback's secret (`CallbackSender`)
deny       the hub informs the callback that it is not, or no longer, subscribed (section 5.2 of the standard)
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

from tidings.errors import InputError
from tidings.feeds.outbound.formats import FORMATS
from tidings.feeds.outbound.personal_feeds import OpenFeed, PersonalFeeds, RemovedFeed
from tidings.feeds.sql.hub_store import (
    DENIED,
    SUBSCRIBE,
    UNSUBSCRIBE,
    HubRequest,
)
from tidings.operations.egress_policy import FetchProblem, is_web_address, split_host
from tidings.operations.http_client import HttpClient, HttpLimits, HttpResponse, build_user_agent
from tidings.operations.retry_after import parse_retry_after


@dataclass(frozen=True, slots=True)
class HubPolicy:
    """Limits of the hub. Times are in seconds.

    `questions` are the waits after each failed verification; after the last one the hub gives up. The last one also
    limits a Retry-After: few verifications may wait, and strangers could fill the queue. `inside` allows callbacks on
    this machine and in private networks.
    """

    lease: int = 864_000
    shortest: int = 60
    longest: int = 2_592_000
    waiting: int = 1_000
    per_feed: int = 100
    questions: tuple[int, ...] = (30, 300)
    inside: bool = False


class HubBusy(InputError):
    """Too many requests wait for verification."""


CALLBACK_LIMITS = HttpLimits(connect=5.0, read=10.0, total=20.0, keep_alive=0.0, size=100_000)
PURPOSE = "WebSub hub"
MODES = (SUBSCRIBE, UNSUBSCRIBE)
TOO_MANY, UNAVAILABLE = 429, 503
LONGEST_CALLBACK, LONGEST_SECRET = 1_000, 199
"""Callbacks are indexed by the database; the standard limits secrets to less than 200 bytes."""


class Hub:
    """Accepts requests and verifies them. Several processes may share one store."""

    def __init__(
        self,
        feeds: PersonalFeeds,
        rules: HubPolicy | None = None,
        caller: HttpClient | None = None,
    ) -> None:
        self.feeds, self.store = feeds, feeds.store.hub
        self.rules, self.caller = rules or HubPolicy(), caller or HttpClient(CALLBACK_LIMITS)

    def ask(self, form: Mapping[str, str]) -> None:
        """Accept a request for verification, or raise."""
        mode = form.get("hub.mode", "")
        if mode not in MODES:
            accepted = ", ".join(MODES)
            raise InputError("unknown mode", where="hub.mode", received=repr(mode[:40]), accepted=accepted)
        hash, format = self._check_topic(form.get("hub.topic", ""))
        intent = HubRequest(
            hash,
            format,
            self._check_callback(form.get("hub.callback", "")),
            mode,
            _check_secret(form.get("hub.secret", "")),
            self._grant_lease(form.get("hub.lease_seconds", "")),
            secrets.token_urlsafe(24),
        )
        if self._is_full(intent):
            raise HubBusy("too many subscribers of this feed", accepted=f"at most {self.rules.per_feed:,}")
        if not self.store.ask(intent, self.rules.waiting):
            accepted = f"at most {self.rules.waiting:,}"
            raise HubBusy(
                "too many requests wait for verification", accepted=accepted, hint="try again later"
            )

    def _is_full(self, intent: HubRequest) -> bool:
        """Return whether a feed has its maximum of subscribers, and this is a new one."""
        if intent.mode != SUBSCRIBE:
            return False
        subscriptions = self.store.subscriptions(intent.address)
        is_known = any(
            (one.format, one.callback) == (intent.format, intent.callback) for one in subscriptions
        )
        return not is_known and len(subscriptions) >= self.rules.per_feed

    def _check_topic(self, url: str) -> tuple[str, str]:
        """Return the address hash and the format of a topic. Unknown and removed feeds raise the same error."""
        token, format = self.feeds.places.topic(url) or ("", "")
        opened = self.feeds.open(token) if format in FORMATS else None
        if not isinstance(opened, OpenFeed):
            accepted = "the rel=self address of a feed of this service"
            raise InputError("not a topic of this hub", where="hub.topic", accepted=accepted)
        return opened.address.hash, format

    def _check_callback(self, url: str) -> str:
        is_valid = len(url) <= LONGEST_CALLBACK and url.isascii() and is_web_address(url)
        if not is_valid or urlsplit(url).fragment:
            accepted = f"an HTTP URL of at most {LONGEST_CALLBACK:,} ASCII characters without a fragment"
            raise InputError("invalid callback", where="hub.callback", accepted=accepted)
        if not self.rules.inside and self.caller.egress.leads_inside(url):
            accepted = "public addresses"
            raise InputError("the callback is in a private network", where="hub.callback", accepted=accepted)
        return url

    def _grant_lease(self, requested: str) -> int:
        """Return a lease within the limits of the hub; zero, once an unlimited lease, means the default."""
        if requested and not (requested.isascii() and requested.isdecimal()):
            received, accepted = repr(requested[:40]), "a number of seconds"
            raise InputError("invalid lease", where="hub.lease_seconds", received=received, accepted=accepted)
        seconds = int(requested[:10] or 0) or self.rules.lease
        return max(self.rules.shortest, min(seconds, self.rules.longest))

    def _inside_host(self, callback: str) -> str | None:
        return split_host(callback)[0] if self.rules.inside else None

    def verify(self, intent: HubRequest) -> None:
        """Verify a request with its callback, or send it a denial."""
        opened = self.open_feed(intent.address)
        if intent.attempts > len(self.rules.questions):
            self.store.drop(intent)
        elif intent.mode == DENIED:
            self._send_denial(intent, opened)
        elif intent.mode == SUBSCRIBE and (opened is None or self._is_full(intent)):
            self.store.deny(intent)
        elif opened is None:
            self.store.drop(intent)
        else:
            self._request_confirmation(intent, opened)

    def _request_confirmation(self, intent: HubRequest, opened: OpenFeed) -> None:
        parameters = {
            "hub.mode": intent.mode,
            "hub.topic": self.feeds.places.feed(opened.token, intent.format),
            "hub.challenge": intent.challenge,
        }
        parameters |= {"hub.lease_seconds": str(intent.lease)} if intent.mode == SUBSCRIBE else {}
        answer = self._call_callback(intent, parameters)
        if answer is None:
            return
        if 200 <= answer.status < 300 and answer.body == intent.challenge.encode():
            self.store.confirm(intent)
        else:
            self.store.drop(intent)

    def _send_denial(self, intent: HubRequest, opened: OpenFeed | None) -> None:
        """Send a denial; any answer is fine. Without the key of the addresses the topic is unknown: nothing is sent."""
        address = self.feeds.store.feed_addresses.find(intent.address)
        token = self.feeds.addresses.token_of(address) if address else None
        if token is None:
            self.store.drop(intent)
            return
        reason = "the feed no longer exists" if opened is None else "the feed has too many subscribers"
        topic = self.feeds.places.feed(token, intent.format)
        if self._call_callback(intent, {"hub.mode": DENIED, "hub.topic": topic, "hub.reason": reason}):
            self.store.drop(intent)

    def _call_callback(self, intent: HubRequest, parameters: Mapping[str, str]) -> HttpResponse | None:
        """Return the response of a callback; None if it failed and is retried later."""
        parts = urlsplit(intent.callback)
        url = parts._replace(query="&".join(filter(None, (parts.query, urlencode(parameters))))).geturl()
        headers = {"user-agent": build_user_agent(PURPOSE)}
        try:
            answer = self.caller.request("GET", url, headers, inside_host=self._inside_host(intent.callback))
        except FetchProblem:
            self._retry_later(intent, 0)
            return None
        if answer.status < 500 and answer.status != TOO_MANY:
            return answer
        self._retry_later(intent, self._retry_after(answer))
        return None

    def _retry_later(self, intent: HubRequest, asked_for: int) -> None:
        waits = self.rules.questions
        if intent.attempts < len(waits):
            self.store.postpone(intent, max(waits[intent.attempts], min(asked_for, waits[-1])))
        else:
            self.store.drop(intent)

    def _retry_after(self, answer: HttpResponse) -> int:
        """Return the Retry-After of a busy callback in seconds."""
        busy = answer.status in (TOO_MANY, UNAVAILABLE)
        return (parse_retry_after(answer.headers, self.store.now()) or 0) if busy else 0

    def open_feed(self, hash: str) -> OpenFeed | None:
        """Open the feed of an address, if it still exists."""
        address = self.feeds.store.feed_addresses.find(hash)
        token = self.feeds.addresses.token_of(address) if address else None
        opened = self.feeds.open_address(address, token) if address and token else RemovedFeed()
        return opened if isinstance(opened, OpenFeed) else None

    def dismiss(self, most: int) -> None:
        """Deny subscriptions whose feeds no longer exist."""
        for subscription in self.store.list_removed(most):
            if self.open_feed(subscription.address) is None:
                self.store.deny(subscription)


def _check_secret(secret: str) -> str | None:
    if len(secret.encode("utf-8", "surrogatepass")) > LONGEST_SECRET or not secret.isprintable():
        accepted = f"at most {LONGEST_SECRET} bytes of printable characters"
        raise InputError("invalid secret", where="hub.secret", accepted=accepted)
    return secret or None
