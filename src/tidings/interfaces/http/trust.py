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

from tidings.errors import NotAllowed
from tidings.interfaces.http.access import count_request
from tidings.interfaces.http.refused import Refused
from tidings.service.access import Access, Caller, Scope

FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
TOKEN = "TIDINGS_RPC_TOKEN"
"""The variable of the environment that has the token."""

SEND = f"Authorization: Bearer TOKEN, an administrator's, or what {TOKEN} says at the server"
MAKE = "ask an administrator, who makes such a token with: tidings token make NAME --scope administer"


@dataclass(frozen=True, slots=True)
class Trust:
    """Who knows the token; without a token, this machine, as long as the service is for this machine only. With
    `access`, tokens of the store count, too.
    """

    token: str | None
    is_public: bool = False
    access: Access | None = None

    def holds(self, request: Request) -> bool:
        """Whether whoever asks may do everything."""
        return self.known(request).may

    def known(self, request: Request) -> Known:
        """Who asks. Clients of XML-RPC and browsers send a token as a password.

        Behind a proxy everybody seems to be this machine, and a page in a browser can be made to believe that its own
        site is here (DNS rebinding): then the host that is asked for is another one.
        """
        given = _password(request.headers.get("authorization", ""))
        caller = self.access.who(given) if self.access and given else None
        if caller is not None:  # whoever says who they are is taken for that, on this machine, too
            return Known(caller.is_administrator, caller, caller.token.id)
        if self.token:
            is_it = hmac.compare_digest(given.encode(), self.token.encode())
            return Known(is_it, token=TOKEN if is_it else None)
        proxied = self.is_public or any(name in request.headers for name in FORWARDED)
        here = _is_loopback(request.client.host if request.client else "")
        return Known(here and not proxied and _is_loopback(request.url.hostname or ""))


@dataclass(frozen=True, slots=True)
class Known:
    """Whether whoever asks may do everything, who they are if a token of the store says so, and what tells their token
    from others, if they have a good one.
    """

    may: bool
    caller: Caller | None = None
    token: str | None = None

    def count(self, request: Request) -> None:
        """Refuse whoever asks too often with a token."""
        if self.token:
            count_request(request, self.token)


def only_for(trust: Trust, what: str) -> Callable[[Request], None]:
    """Return a dependency that admits trusted callers only: 401 without a valid token, 403 with another one."""

    def trusted(request: Request) -> None:
        known = trust.known(request)
        known.count(request)
        if not known.may:
            raise refusal(known, what)

    return trusted


def refusal(known: Known, what: str) -> Refused:
    """Return the refusal of a caller who may not do everything; 403 if a valid token says who it is."""
    if known.caller is None:
        return Refused(401, NotAllowed(f"{what} needs the token of the service", hint=SEND))
    received = ", ".join(sorted(known.caller.token.scopes))
    problem = f"{what} needs an administrator's token"
    return Refused(403, NotAllowed(problem, received=received, accepted=Scope.ADMINISTER, hint=MAKE))


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
