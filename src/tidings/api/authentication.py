"""Authentication by `Authorization: Bearer tdg_...` or by the console's cookie, and authorization by scope.

    def endpoint(caller: SubscribeCaller) -> ...      requires a token with the scope `subscribe`

Requests without a valid token are answered with 401, those with a token of another scope with 403. The application
keeps its `Authenticator` in `app.state.authenticator`.
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

from tidings.api.csrf import build_csrf_error, is_same_origin, is_state_changing
from tidings.api.group_commit import Batcher
from tidings.api.problem_details import HttpError
from tidings.api.rate_limiter import RateLimiter
from tidings.api.routes import refuse_unknown_parameters
from tidings.errors import NotAllowed, NotFound
from tidings.service.authorization import Access, Caller, Scope

COOKIE = "tidings"
"""The console's cookie: the token itself. Scripts cannot read it."""

TOKEN_HINT = "send Authorization: Bearer TOKEN; `tidings token make NAME --as SUBSCRIBER` creates a token"
INVALID_TOKEN_HINT = (
    "the token may be mistyped, expired or revoked; create one with `tidings token make NAME --as SUBSCRIBER`"
)

_scheme = HTTPBearer(auto_error=False, description="A token that `tidings token make` created")


class Authenticator:
    """Finds the callers of requests; concurrent lookups share one query."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._batcher: Batcher[str, Caller | None] = Batcher(self._find_callers, "requests")

    async def allowed(self, connection: HTTPConnection, scope: Scope) -> Caller:
        """Return the caller of a request or a WebSocket, or raise 401 or 403."""
        return await self.allowed_by(find_token(connection), scope)

    def find_cached_caller(self, connection: HTTPConnection, scope: Scope) -> Caller | None:
        """Return the caller if the token was valid when it was last checked; `None` otherwise. Reads no store.

        The transaction that follows has to check the token again, before anything that is not in the request itself
        is answered.
        """
        caller = self._access.find_cached(find_token(connection))
        return caller if caller is not None and caller.has_scope(scope) else None

    async def allowed_by(self, secret: str, scope: Scope) -> Caller:
        """Return the caller of a token that was sent in another way, such as in a message; or raise 401 or 403."""
        caller = await self._find_caller(secret)
        if caller is None and secret:
            raise HttpError(401, NotAllowed("invalid token", hint=INVALID_TOKEN_HINT))
        if caller is None:
            raise HttpError(401, NotAllowed("a token is needed", hint=TOKEN_HINT))
        if not caller.has_scope(scope):
            received = ", ".join(sorted(caller.token.scopes))
            raise HttpError(403, NotAllowed("this token lacks a scope", received=received, accepted=scope))
        return caller

    async def find_caller(self, connection: HTTPConnection) -> Caller | None:
        """Return the caller if the token is valid. Cookies count only for requests from our own pages."""
        return await self._find_caller(find_token(connection))

    async def _find_caller(self, secret: str) -> Caller | None:
        return await self._batcher.add(secret) if secret else None

    def _find_callers(self, secrets: Sequence[str]) -> list[Caller | None]:
        callers = self._access.authenticate_all(secrets)
        return [callers.get(secret) for secret in secrets]


def get_authenticator(connection: HTTPConnection) -> Authenticator:
    authenticator: Authenticator = connection.app.state.authenticator
    return authenticator


def find_token(connection: HTTPConnection) -> str:
    """Return the token of a request, valid or not."""
    return read_bearer_token(connection) or read_cookie_token(connection)


def read_bearer_token(connection: HTTPConnection) -> str:
    """Return the token in the `Authorization` header."""
    kind, _, token = connection.headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


def read_cookie_token(connection: HTTPConnection) -> str:
    """Return the token in the cookie; refuse state-changing requests from pages of other sites (CSRF)."""
    secret = connection.cookies.get(COOKIE, "")
    if secret and is_state_changing(connection) and not is_same_origin(connection):
        raise HttpError(403, build_csrf_error(connection))
    return secret


def require_scope(
    scope: Scope, may_presume: Callable[[Request], bool] = lambda _: False
) -> Callable[..., Awaitable[Caller]]:
    """Return a dependency that requires a scope, counts the request and refuses unknown parameters.

    A route with `may_presume` checks the token again later, as `Authenticator.presumed` requires. For requests that are
    not quick to read it returns false: the token is checked first, so that callers without one cost little.
    """

    async def caller(
        request: Request, _: Annotated[HTTPAuthorizationCredentials | None, Security(_scheme)] = None
    ) -> Caller:
        authenticator = get_authenticator(request)
        presumed = authenticator.find_cached_caller(request, scope) if may_presume(request) else None
        caller = presumed or await authenticator.allowed(request, scope)
        if not getattr(
            request.state, "is_counted", False
        ):  # with a body, callers are checked before and after
            count_request(request, caller.token.id)
            request.state.is_counted = True
        refuse_unknown_parameters(request)
        return caller

    return caller


def count_request(connection: HTTPConnection, token: str) -> None:
    """Count a request of a token, if the application has rate limits, and refuse it beyond the limit."""
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


def require_owner(caller: Caller, subscriber: str, title: str) -> None:
    """Raise 404 for things of other subscribers: callers cannot learn whether they exist."""
    if not caller.may_act_for(subscriber):
        raise NotFound(f"there is no such {title}")


# Trust: routes for callers with the service's token, for administrators, or for this machine only.

PROXY_HEADERS = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
TOKEN_VARIABLE = "TIDINGS_RPC_TOKEN"
"""The environment variable with the service's token."""

SEND_TOKEN_HINT = (
    f"send Authorization: Bearer TOKEN: an administrator's token, or the server's {TOKEN_VARIABLE}"
)
MAKE_TOKEN_HINT = "ask an administrator for a token: tidings token make NAME --scope administer"


@dataclass(frozen=True, slots=True)
class TrustPolicy:
    """Trusted callers: those with the service's token; if it has none and is not public, this machine.

    With `access`, administrators' tokens of the store count as well.
    """

    token: str | None
    is_public: bool = False
    access: Access | None = None

    def decide(self, request: Request) -> TrustDecision:
        """Decide about a caller. XML-RPC clients and browsers send the token as a password.

        Behind a proxy every caller appears to be this machine, and with DNS rebinding a page of another site may reach
        it: so proxy headers and other host names are refused.
        """
        secret = _read_password(request.headers.get("authorization", ""))
        caller = self.access.authenticate(secret) if self.access and secret else None
        if caller is not None:  # a valid token decides, also for callers on this machine
            return TrustDecision(caller.is_administrator, caller, caller.token.id)
        if self.token:
            is_valid = hmac.compare_digest(secret.encode(), self.token.encode())
            return TrustDecision(is_valid, token=TOKEN_VARIABLE if is_valid else None)
        is_proxied = self.is_public or any(name in request.headers for name in PROXY_HEADERS)
        is_local = _is_loopback(request.client.host if request.client else "")
        return TrustDecision(is_local and not is_proxied and _is_loopback(request.url.hostname or ""))


@dataclass(frozen=True, slots=True)
class TrustDecision:
    """Whether a caller is trusted; the caller, if a token of the store names one; the id of a valid token."""

    may: bool
    caller: Caller | None = None
    token: str | None = None

    def count(self, request: Request) -> None:
        """Count the request of a token, and refuse it beyond the limit."""
        if self.token:
            count_request(request, self.token)


def require_trust(trust: TrustPolicy, route: str) -> Callable[[Request], None]:
    """Return a dependency that admits trusted callers only: 401 without a valid token, 403 with another one."""

    def trusted(request: Request) -> None:
        decision = trust.decide(request)
        decision.count(request)
        if not decision.may:
            raise _build_trust_error(decision, route)

    return trusted


def _build_trust_error(decision: TrustDecision, route: str) -> HttpError:
    if decision.caller is None:
        return HttpError(401, NotAllowed(f"{route} needs the token of the service", hint=SEND_TOKEN_HINT))
    received = ", ".join(sorted(decision.caller.token.scopes))
    problem = f"{route} needs an administrator's token"
    return HttpError(
        403, NotAllowed(problem, received=received, accepted=Scope.ADMINISTER, hint=MAKE_TOKEN_HINT)
    )


def _read_password(authorization: str) -> str:
    """Return the token in `Bearer token`, or the password of `Basic ...`, which XML-RPC clients send."""
    kind, _, credentials = authorization.partition(" ")
    if kind.lower() == "bearer":
        return credentials.strip()
    if kind.lower() != "basic":
        return ""
    try:
        return b64decode(credentials, validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
