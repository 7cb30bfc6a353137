"""Who asks: by `Authorization: Bearer tdg_...`, or by the cookie of the console.

    def things(caller: Subscribing) -> ...      a route for whoever has a token with that scope

Without a good token the answer is 401, with one that is for something else 403. The application has the tokens in
`app.state.asking`.
"""

from __future__ import annotations

import hmac
from base64 import b64decode
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Annotated

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.requests import HTTPConnection

from tidings.api.batcher import Batcher
from tidings.api.http_error import HttpError
from tidings.api.middleware.csrf import build_csrf_error, is_same_origin, is_state_changing
from tidings.api.middleware.rate_limiter import RateLimiter
from tidings.api.routes import refuse_unknown_parameters
from tidings.errors import Absent, NotAllowed
from tidings.service.access import Access, Caller, Scope

COOKIE = "tidings"
"""The console's cookie: the token itself, out of the reach of scripts."""

TOKEN_HINT = "Authorization: Bearer TOKEN; tidings token make NAME --as SUBSCRIBER makes one"
INVALID_TOKEN_HINT = (
    "the token may be mistyped, expired or revoked; `tidings token make NAME --as SUBSCRIBER` makes a new one"
)

_scheme = HTTPBearer(auto_error=False, description="A token of `tidings token make`")


class Authenticator:
    """Finds out who asks, and refuses whoever may not."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._gathering: Batcher[str, Caller | None] = Batcher(self._found, "requests")

    async def allowed(self, connection: HTTPConnection, scope: Scope) -> Caller:
        """The caller of a request or of a WebSocket, or a refusal."""
        secret = find_token(connection)
        return self._checked(await self._by(secret), scope, secret)

    def presumed(self, connection: HTTPConnection, scope: Scope) -> Caller | None:
        """The caller, if the token was good for that when it was last looked at; else nobody. The store is not asked
        here. Whoever relies on it asks again, in the transaction that does what is wanted, before anything is answered
        that is not in the request itself.
        """
        found = self._access.presumably(find_token(connection))
        return found if found is not None and found.may(scope) else None

    async def allowed_by(self, secret: str, scope: Scope) -> Caller:
        """The same for a token that came otherwise, in a message say."""
        return self._checked(await self._by(secret), scope, secret)

    def _checked(self, found: Caller | None, scope: Scope, secret: str) -> Caller:
        if found is None and secret:
            raise HttpError(401, NotAllowed("this token is not good", hint=INVALID_TOKEN_HINT))
        if found is None:
            raise HttpError(401, NotAllowed("a token is needed", hint=TOKEN_HINT))
        if not found.may(scope):
            received = ", ".join(sorted(found.token.scopes))
            raise HttpError(
                403, NotAllowed("this token is for something else", received=received, accepted=scope)
            )
        return found

    async def who(self, connection: HTTPConnection) -> Caller | None:
        """Whoever asks, if their token is good now. A cookie counts for what a page of this service sent."""
        return await self._by(find_token(connection))

    async def _by(self, secret: str) -> Caller | None:
        return await self._gathering.add(secret) if secret else None

    def _found(self, secrets: Sequence[str]) -> list[Caller | None]:
        found = self._access.who_all(secrets)
        return [found.get(secret) for secret in secrets]


def get_authenticator(connection: HTTPConnection) -> Authenticator:
    """That of the application."""
    found: Authenticator = connection.app.state.asking
    return found


def find_token(connection: HTTPConnection) -> str:
    """The token that came along, good or not."""
    return read_bearer_token(connection) or read_cookie_token(connection)


def read_bearer_token(connection: HTTPConnection) -> str:
    """The token that a program sends."""
    kind, _, given = connection.headers.get("authorization", "").partition(" ")
    return given.strip() if kind.lower() == "bearer" else ""


def read_cookie_token(connection: HTTPConnection) -> str:
    """The token that a browser sends along; what another site's page would change with it is refused."""
    secret = connection.cookies.get(COOKIE, "")
    if secret and is_state_changing(connection) and not is_same_origin(connection):
        raise HttpError(403, build_csrf_error(connection))
    return secret


def require_scope(scope: Scope) -> Callable[..., Awaitable[Caller]]:
    """A dependency of routes: the caller, whose token has the scope, and who asks for nothing that there is not."""

    async def caller(
        request: Request, _: Annotated[HTTPAuthorizationCredentials | None, Security(_scheme)] = None
    ) -> Caller:
        return _admit_caller(request, await get_authenticator(request).allowed(request, scope))

    return caller


def presume_scope(scope: Scope, is_quick: Callable[[Request], bool]) -> Callable[..., Awaitable[Caller]]:
    """The same for routes that ask again, as `Asking.presumed` says. With a token that is not good, requests that are
    not quick to read are not read at all.
    """

    async def caller(
        request: Request, _: Annotated[HTTPAuthorizationCredentials | None, Security(_scheme)] = None
    ) -> Caller:
        found = get_authenticator(request).presumed(request, scope) if is_quick(request) else None
        return _admit_caller(request, found or await get_authenticator(request).allowed(request, scope))

    return caller


def _admit_caller(request: Request, found: Caller) -> Caller:
    """Where a body is taken, who sends it is looked up before it is read and when it is there: it counts once."""
    if not getattr(request.state, "is_counted", False):
        count_request(request, found.token.id)
        request.state.is_counted = True
    refuse_unknown_parameters(request)
    return found


def count_request(connection: HTTPConnection, token: str) -> None:
    """Whoever asks too often with a token is refused, if the application has limits for that. `token` is what tells it
    from others.
    """
    rates: RateLimiter | None = getattr(connection.app.state, "rates", None)
    if rates is None:
        return
    connection.state.token = token
    left = rates.take(token)
    connection.state.headers = rates.headers(left)
    if not left.is_allowed:
        raise rates.problem(left)


PublishCaller = Annotated[Caller, Depends(require_scope(Scope.PUBLISH))]
SubscribeCaller = Annotated[Caller, Depends(require_scope(Scope.SUBSCRIBE))]
AdministerCaller = Annotated[Caller, Depends(require_scope(Scope.ADMINISTER))]


def require_owner(caller: Caller, subscriber: str, what: str) -> None:
    """Somebody else's is answered as if it were not there: whether it is, is theirs to know."""
    if not caller.stands_for(subscriber):
        raise Absent(f"there is no such {what}")


# Who may use what is not for everybody: those who know the token of the service, administrators by a token of their
# own, or this machine alone.


PROXY_HEADERS = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
TOKEN_VARIABLE = "TIDINGS_RPC_TOKEN"
"""The variable of the environment that has the token."""

SEND_TOKEN_HINT = (
    f"Authorization: Bearer TOKEN, an administrator's, or what {TOKEN_VARIABLE} says at the server"
)
MAKE_TOKEN_HINT = (
    "ask an administrator, who makes such a token with: tidings token make NAME --scope administer"
)


@dataclass(frozen=True, slots=True)
class TrustPolicy:
    """Who knows the token; without a token, this machine, as long as the service is for this machine only. With
    `access`, tokens of the store count, too.
    """

    token: str | None
    is_public: bool = False
    access: Access | None = None

    def holds(self, request: Request) -> bool:
        """Whether whoever asks may do everything."""
        return self.known(request).may

    def known(self, request: Request) -> TrustDecision:
        """Who asks. Clients of XML-RPC and browsers send a token as a password.

        Behind a proxy everybody seems to be this machine, and a page in a browser can be made to believe that its own
        site is here (DNS rebinding): then the host that is asked for is another one.
        """
        given = _password(request.headers.get("authorization", ""))
        caller = self.access.who(given) if self.access and given else None
        if caller is not None:  # whoever says who they are is taken for that, on this machine, too
            return TrustDecision(caller.is_administrator, caller, caller.token.id)
        if self.token:
            is_it = hmac.compare_digest(given.encode(), self.token.encode())
            return TrustDecision(is_it, token=TOKEN_VARIABLE if is_it else None)
        proxied = self.is_public or any(name in request.headers for name in PROXY_HEADERS)
        here = _is_loopback(request.client.host if request.client else "")
        return TrustDecision(here and not proxied and _is_loopback(request.url.hostname or ""))


@dataclass(frozen=True, slots=True)
class TrustDecision:
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


def require_trust(trust: TrustPolicy, what: str) -> Callable[[Request], None]:
    """Return a dependency that admits trusted callers only: 401 without a valid token, 403 with another one."""

    def trusted(request: Request) -> None:
        known = trust.known(request)
        known.count(request)
        if not known.may:
            raise build_trust_error(known, what)

    return trusted


def build_trust_error(known: TrustDecision, what: str) -> HttpError:
    """Return the refusal of a caller who may not do everything; 403 if a valid token says who it is."""
    if known.caller is None:
        return HttpError(401, NotAllowed(f"{what} needs the token of the service", hint=SEND_TOKEN_HINT))
    received = ", ".join(sorted(known.caller.token.scopes))
    problem = f"{what} needs an administrator's token"
    return HttpError(
        403, NotAllowed(problem, received=received, accepted=Scope.ADMINISTER, hint=MAKE_TOKEN_HINT)
    )


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
