"""Whether a page of this service sent a request, or another site's page did.

A browser sends its cookies along, whoever made it ask. `SameSite=Strict` keeps them from other sites' requests already;
this is for browsers and settings that do not heed it, and for other ports and subdomains, which are the same site.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from tidings.errors import NotAllowed

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
"""What these ask for changes nothing."""

_OWN = ("same-origin", "none")
"""`none` is the person themselves, who typed an address."""


def is_state_changing(connection: HTTPConnection) -> bool:
    """Whether something may change by it. A WebSocket is heard by whoever opens it, so it counts."""
    return connection.scope["type"] == "websocket" or connection.scope["method"] not in SAFE_METHODS


def is_same_origin(connection: HTTPConnection) -> bool:
    """As the browser says. Over plain http it says `Origin` only; what says neither is no browser of today."""
    site = connection.headers.get("sec-fetch-site")
    if site is not None:
        return site in _OWN
    try:
        origin = urlsplit(connection.headers.get("origin", "")).netloc.lower()
    except ValueError:  # such as http://[
        return False
    return bool(origin) and origin == connection.headers.get("host", "").lower()


def build_csrf_error(connection: HTTPConnection) -> NotAllowed:
    """What is said to a request that another site's page made."""
    origin = connection.headers.get("origin") or "no origin"
    hint = "programs send Authorization: Bearer TOKEN instead of the cookie"
    return NotAllowed("this was not sent by a page of this service", received=origin[:200], hint=hint)
