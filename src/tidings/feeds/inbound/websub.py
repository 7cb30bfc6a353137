"""WebSub, the subscriber's side: a hub is asked to push a feed, and what it pushes is checked.

    ask        the hub is told where to call back (an address with a word nobody can guess) and a secret
    verify     the hub calls back with a challenge; whoever did not ask does not answer it
    push       the hub sends the feed, signed with the secret; what is not signed is thrown away
    renew      before the lease ends the hub is asked again

Polling goes on all the while, less often: a hub that dies does not say so.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from tidings.errors import TidingsError
from tidings.feeds.fetcher import Fetcher, FetchResponse
from tidings.feeds.sql.polled_feeds import PolledFeed
from tidings.graphs.feed_formats.entry import resolved
from tidings.graphs.feed_formats.feed_parser import Feed
from tidings.operations.egress_policy import FetchProblem
from tidings.store.encoding import format_instant

LEASE = timedelta(days=10)
SHORTEST, LONGEST = timedelta(minutes=5), timedelta(days=365)
RENEWED = 0.8
"""The part of a lease after which it is renewed."""

METHODS = ("sha1", "sha256", "sha384", "sha512")
ASKED, VERIFIED, DENIED = "asked", "verified", "denied"

WORD = re.compile(r"[A-Za-z0-9_-]{32}")
"""What `secrets.token_urlsafe(24)` looks like."""

_LINK = re.compile(r"<([^<>]*)>((?:\s*;\s*[\w*]+\s*=\s*(?:\"[^\"]*\"|[^\s\",;]+))*)")
_REL = re.compile(r";\s*rel\s*=\s*(?:\"([^\"]*)\"|([^\s\",;]+))", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HubLink:
    """A hub, and what it calls the feed."""

    hub: str
    topic: str


def find_hub(answer: FetchResponse, feed: Feed) -> HubLink | None:
    """Who pushes a feed: what the headers say counts before what the feed says."""
    links = dict(_links(answer))
    hub = links.get("hub") or next(iter(feed.hubs), None)
    topic = links.get("self") or resolved(answer.url, feed.self_link) or answer.url
    return HubLink(hub, topic) if hub else None


def _links(answer: FetchResponse) -> list[tuple[str, str | None]]:
    """Relations and addresses of the Link headers, the first of each last."""
    found: list[tuple[str, str | None]] = []
    for address, parameters in _LINK.findall(answer.headers.get("link", "")[:20_000]):
        rel = _REL.search(parameters)
        names = (rel[1] or rel[2] or "").lower().split() if rel else []
        found += [(name, resolved(answer.url, address)) for name in names]
    return found[::-1]


def needs_request(feed: PolledFeed, pushing: HubLink, moment: datetime) -> bool:
    """Whether the hub has to be asked: for the first time, again, or because it is another one."""
    if (feed.hub, feed.topic) != (pushing.hub, pushing.topic):
        return True
    if feed.push == VERIFIED and feed.lease:
        return datetime.fromisoformat(feed.lease) <= moment
    return feed.push != DENIED


def is_pushed(feed: PolledFeed, moment: datetime) -> bool:
    """Whether a hub has promised to push this feed now."""
    return feed.push == VERIFIED and feed.lease is not None and feed.lease > format_instant(moment)


def request_columns(feed: PolledFeed, pushing: HubLink) -> dict[str, object]:
    """What is written down before a hub is asked: it may call back before it answers."""
    same = feed.push == VERIFIED and feed.hub == pushing.hub and feed.topic == pushing.topic
    return {
        "hub": pushing.hub,
        "topic": pushing.topic,
        "push": VERIFIED if same else ASKED,
        "callback": feed.callback if same else secrets.token_urlsafe(24),
        "secret": feed.secret if same else secrets.token_urlsafe(32),
    }


def request_push(fetcher: Fetcher, feed: PolledFeed, public_url: str, inside_host: str | None) -> str | None:
    """Ask the hub of a feed to push it; what was wrong, if something was."""
    form = {
        "hub.mode": "subscribe",
        "hub.topic": feed.topic or feed.url,
        "hub.callback": f"{public_url.rstrip('/')}/websub/{feed.callback}",
        "hub.secret": feed.secret or "",
        "hub.lease_seconds": str(int(LEASE.total_seconds())),
    }
    try:
        answer = fetcher.post(feed.hub or "", form, inside_host)
        if not 200 <= answer.status < 300:
            raise FetchProblem("the hub refuses", where=feed.hub, received=f"status {answer.status}")
    except TidingsError as problem:
        return str(problem)
    return None


def verify_callback(
    feed: PolledFeed, asked: Mapping[str, str], moment: datetime
) -> tuple[dict[str, object], str] | None:
    """What a hub's call back makes of a feed, and the answer; nothing if nobody asked for that."""
    if asked.get("hub.topic") != feed.topic or feed.push not in (ASKED, VERIFIED):
        return None
    if asked.get("hub.mode") == "denied":
        return {"push": DENIED}, ""
    if asked.get("hub.mode") != "subscribe" or not asked.get("hub.challenge"):
        return None
    said = asked.get("hub.lease_seconds", "")
    lease = timedelta(seconds=int(said[:10])) if said.isascii() and said.isdecimal() else LEASE
    until = moment + min(LONGEST, max(SHORTEST, lease)) * RENEWED
    return {"push": VERIFIED, "lease": format_instant(until)}, asked["hub.challenge"]


def is_signature_valid(secret: str | None, signature: str | None, body: bytes) -> bool:
    """Whether a push carries a signature made with the secret: `sha256=...`."""
    method, _, digest = (signature or "").partition("=")
    if not secret or method.lower() not in METHODS:
        return False
    made = hmac.new(secret.encode(), body, method.lower()).hexdigest()
    return hmac.compare_digest(made.encode(), digest.strip().lower().encode())
