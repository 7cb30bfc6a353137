"""CSRF check: whether a request comes from a page of this service or from another site.

Browsers send cookies with requests of any page. `SameSite=Strict` prevents that for other sites already; this check
covers browsers that ignore it, and other ports and subdomains, which count as the same site.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from tidings.errors import NotAllowed

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing."""

_OWN = ("same-origin", "none")
"""`none` means that the person typed the address."""


def is_state_changing(connection: HTTPConnection) -> bool:
    """Return whether a request may change something. A WebSocket counts: its opener could read the messages."""
    return connection.scope["type"] == "websocket" or connection.scope["method"] not in SAFE_METHODS


def is_same_origin(connection: HTTPConnection) -> bool:
    """Return whether the browser says so. Over plain http it sends `Origin` only; one of both is always there."""
    site = connection.headers.get("sec-fetch-site")
    if site is not None:
        return site in _OWN
    try:
        origin = urlsplit(connection.headers.get("origin", "")).netloc.lower()
    except ValueError:  # such as http://[
        return False
    return bool(origin) and origin == connection.headers.get("host", "").lower()


def build_csrf_error(connection: HTTPConnection) -> NotAllowed:
    """Return the error for a request from a page of another site."""
    origin = connection.headers.get("origin") or "no origin"
    hint = "programs send Authorization: Bearer TOKEN instead of the cookie"
    return NotAllowed("cross-site request refused", received=origin[:200], hint=hint)
