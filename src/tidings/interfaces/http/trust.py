"""Who may use what is not for everybody: those who know the token of the service, administrators by a token of their
own, or this machine alone.
"""

from __future__ import annotations

import hmac
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address

from fastapi import Request

from tidings.errors import InputError
from tidings.interfaces.http.answers import Refused
from tidings.service.access import Access, Caller

FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
TOKEN = "TIDINGS_RPC_TOKEN"
"""The variable of the environment that has the token."""


@dataclass(frozen=True, slots=True)
class Trust:
    """Who knows the token; without a token, this machine, as long as the service is for this machine only. With
    `access`, tokens of the store count, too.
    """

    token: str | None
    is_public: bool = False
    access: Access | None = None

    def caller(self, request: Request) -> Caller | None:
        """Whoever has a token of the store. XML-RPC clients and browsers send it as a password."""
        given = _password(request.headers.get("authorization", ""))
        return self.access.who(given) if self.access and given else None

    def holds(self, request: Request) -> bool:
        """Whether whoever asks may.

        Behind a proxy everybody seems to be this machine, and a page in a browser can be made to believe that its own
        site is here (DNS rebinding): then the host that is asked for is another one.
        """
        known = self.caller(request)
        if known is not None:  # whoever says who they are is taken for that, on this machine, too
            return known.is_administrator
        if self.token:
            given = _password(request.headers.get("authorization", ""))
            return hmac.compare_digest(given.encode(), self.token.encode())
        proxied = self.is_public or any(name in request.headers for name in FORWARDED)
        here = _is_loopback(request.client.host if request.client else "")
        return here and not proxied and _is_loopback(request.url.hostname or "")


def only_for(trust: Trust, what: str) -> Callable[[Request], None]:
    """A dependency of routes that refuses whoever may not."""

    def trusted(request: Request) -> None:
        if not trust.holds(request):
            hint = f"Authorization: Bearer TOKEN, an administrator's, or what {TOKEN} says at the server"
            raise Refused(401, InputError(f"{what} needs the token of the service", hint=hint))

    return trusted


def _password(authorization: str) -> str:
    """The token in `Bearer token`, or the password of `Basic ...`, which is what XML-RPC clients send."""
    kind, _, given = authorization.partition(" ")
    if kind.lower() == "bearer":
        return given.strip()
    if kind.lower() != "basic":
        return ""
    try:
        return b64decode(given, validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
