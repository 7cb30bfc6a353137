"""WebSub subscriber: requests pushes of a feed from its hub, and verifies them.

    request    send the hub a callback URL with a random word, and a secret
    verify     the hub calls back with a challenge, which is answered only if there was a request
    push       the hub sends the feed, signed with the secret; unsigned pushes are dropped
    renew      request again before the lease ends

Polling continues less often, because a hub may fail silently.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from tidings.errors import TidingsError
from tidings.feeds.inbound.feed_client import FeedClient
from tidings.feeds.sql.polled_feeds import PolledFeed
from tidings.graphs.syndication.feed import Feed
from tidings.graphs.syndication.item_graph import resolved
from tidings.operations.egress_policy import FetchProblem
from tidings.operations.http_client import HttpResponse
from tidings.store.encoding import format_instant

LEASE = timedelta(days=10)
SHORTEST, LONGEST = timedelta(minutes=5), timedelta(days=365)
RENEWED = 0.8
"""The fraction of a lease after which it is renewed."""

METHODS = ("sha1", "sha256", "sha384", "sha512")
ASKED, VERIFIED, DENIED = "asked", "verified", "denied"

WORD = re.compile(r"[A-Za-z0-9_-]{32}")
"""The format of `secrets.token_urlsafe(24)`."""

_LINK = re.compile(r"<([^<>]*)>((?:\s*;\s*[\w*]+\s*=\s*(?:\"[^\"]*\"|[^\s\",;]+))*)")
_REL = re.compile(r";\s*rel\s*=\s*(?:\"([^\"]*)\"|([^\s\",;]+))", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HubLink:
    """A hub, and its topic URL of the feed."""

    hub: str
    topic: str


def find_hub(answer: HttpResponse, feed: Feed) -> HubLink | None:
    """Find the hub of a feed, in the headers or else in the feed."""
    links = dict(_links(answer))
    hub = links.get("hub") or next(iter(feed.hubs), None)
    topic = links.get("self") or resolved(answer.url, feed.self_link) or answer.url
    return HubLink(hub, topic) if hub else None


def _links(answer: HttpResponse) -> list[tuple[str, str | None]]:
    """Return relations and URLs of the Link headers in reverse order."""
    links: list[tuple[str, str | None]] = []
    for address, parameters in _LINK.findall(answer.headers.get("link", "")[:20_000]):
        rel = _REL.search(parameters)
        names = (rel[1] or rel[2] or "").lower().split() if rel else []
        links += [(name, resolved(answer.url, address)) for name in names]
    return links[::-1]


def needs_request(feed: PolledFeed, pushing: HubLink, moment: datetime) -> bool:
    """Return whether to send a request: the first one, a renewal, or to another hub."""
    if (feed.hub, feed.topic) != (pushing.hub, pushing.topic):
        return True
    if feed.push == VERIFIED and feed.lease:
        return datetime.fromisoformat(feed.lease) <= moment
    return feed.push != DENIED


def is_pushed(feed: PolledFeed, moment: datetime) -> bool:
    """Return whether a hub has confirmed to push this feed."""
    return feed.push == VERIFIED and feed.lease is not None and feed.lease > format_instant(moment)


def request_columns(feed: PolledFeed, pushing: HubLink) -> dict[str, object]:
    """Return the columns to store before a request: the hub may call back before it answers."""
    same = feed.push == VERIFIED and feed.hub == pushing.hub and feed.topic == pushing.topic
    return {
        "hub": pushing.hub,
        "topic": pushing.topic,
        "push": VERIFIED if same else ASKED,
        "callback": feed.callback if same else secrets.token_urlsafe(24),
        "secret": feed.secret if same else secrets.token_urlsafe(32),
    }


def request_push(
    client: FeedClient, feed: PolledFeed, public_url: str, inside_host: str | None
) -> str | None:
    """Request pushes from the hub of a feed; return the problem, or None."""
    form = {
        "hub.mode": "subscribe",
        "hub.topic": feed.topic or feed.url,
        "hub.callback": f"{public_url.rstrip('/')}/websub/{feed.callback}",
        "hub.secret": feed.secret or "",
        "hub.lease_seconds": str(int(LEASE.total_seconds())),
    }
    try:
        answer = client.post_form(feed.hub or "", form, inside_host)
        if not 200 <= answer.status < 300:
            raise FetchProblem(
                "the hub rejects the request", where=feed.hub, received=f"status {answer.status}"
            )
    except TidingsError as problem:
        return str(problem)
    return None


def verify_callback(
    feed: PolledFeed, parameters: Mapping[str, str], moment: datetime
) -> tuple[dict[str, object], str] | None:
    """Return the new columns and the answer for a callback of the hub; None without a request."""
    if parameters.get("hub.topic") != feed.topic or feed.push not in (ASKED, VERIFIED):
        return None
    if parameters.get("hub.mode") == "denied":
        return {"push": DENIED}, ""
    if parameters.get("hub.mode") != "subscribe" or not parameters.get("hub.challenge"):
        return None
    seconds = parameters.get("hub.lease_seconds", "")
    lease = timedelta(seconds=int(seconds[:10])) if seconds.isascii() and seconds.isdecimal() else LEASE
    until = moment + min(LONGEST, max(SHORTEST, lease)) * RENEWED
    return {"push": VERIFIED, "lease": format_instant(until)}, parameters["hub.challenge"]


def is_signature_valid(secret: str | None, signature: str | None, body: bytes) -> bool:
    """Return whether a push has a valid signature: `sha256=...`."""
    method, _, digest = (signature or "").partition("=")
    if not secret or method.lower() not in METHODS:
        return False
    made = hmac.new(secret.encode(), body, method.lower()).hexdigest()
    return hmac.compare_digest(made.encode(), digest.strip().lower().encode())
