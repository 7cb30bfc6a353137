"""CSRF protection: requests with the console's cookie come from its own pages, and forms carry a token.

Browsers send cookies with requests of any page. `SameSite=Strict` prevents that for other sites already; this
check covers browsers that ignore it, and other ports and subdomains, which count as the same site.

The token of forms is derived from the visitor's token, which other sites cannot know. It needs no table and no server
key, so all processes of a deployment agree on it.
"""

from __future__ import annotations

import hmac
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from tidings.errors import NotAllowed

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing."""
OWN_SITE = ("same-origin", "none")
"""Values of `Sec-Fetch-Site`; `none` means that the person typed the address."""
CSRF_FIELD = "word"
"""The form field of the CSRF token."""


def is_state_changing(connection: HTTPConnection) -> bool:
    """Return whether a request may change something. A WebSocket counts: its opener could read the messages."""
    return connection.scope["type"] == "websocket" or connection.scope["method"] not in SAFE_METHODS


def is_same_origin(connection: HTTPConnection) -> bool:
    """Return whether a request comes from our own page. Over plain http, browsers send `Origin` only."""
    site = connection.headers.get("sec-fetch-site")
    if site is not None:
        return site in OWN_SITE
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


def csrf_token_of(secret: str) -> str:
    """Return the CSRF token of forms for the holder of this token."""
    return hmac.digest(secret.encode("utf-8", "surrogatepass"), b"a form of the console", "sha256").hex()


def is_csrf_token(token: str, expected: str) -> bool:
    """Compare CSRF tokens in constant time."""
    return hmac.compare_digest(token.encode(), expected.encode())
