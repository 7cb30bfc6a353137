"""Who asks: by `Authorization: Bearer tdg_...`, or by the cookie of the console.

    def things(caller: Subscribing) -> ...      a route for whoever has a token with that scope

Without a good token the answer is 401, with one that is for something else 403. The application has the tokens in
`app.state.asking`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.requests import HTTPConnection

from tidings.errors import Absent, NotAllowed
from tidings.interfaces.http.answers import refuse_unknown_parameters
from tidings.interfaces.http.gathering import Gathering
from tidings.interfaces.http.rates import Rates
from tidings.interfaces.http.refused import Refused
from tidings.interfaces.http.same_origin import changes, foreign, is_same_origin
from tidings.service.access import Access, Caller, Scope

COOKIE = "tidings"
"""The console's cookie: the token itself, out of the reach of scripts."""

HINT = "Authorization: Bearer TOKEN; tidings token make NAME --as SUBSCRIBER makes one"
NOT_GOOD = "it may be mistyped, have ended, or been revoked; tidings token make NAME --as SUBSCRIBER makes another one"

_scheme = HTTPBearer(auto_error=False, description="A token of `tidings token make`")


class Asking:
    """Finds out who asks, and refuses whoever may not."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._gathering: Gathering[str, Caller | None] = Gathering(self._found, "requests")

    async def allowed(self, connection: HTTPConnection, scope: Scope) -> Caller:
        """The caller of a request or of a WebSocket, or a refusal."""
        secret = given_by(connection)
        return self._checked(await self._by(secret), scope, secret)

    def presumed(self, connection: HTTPConnection, scope: Scope) -> Caller | None:
        """The caller, if the token was good for that when it was last looked at; else nobody. The store is not asked
        here. Whoever relies on it asks again, in the transaction that does what is wanted, before anything is answered
        that is not in the request itself.
        """
        found = self._access.presumably(given_by(connection))
        return found if found is not None and found.may(scope) else None

    async def allowed_by(self, secret: str, scope: Scope) -> Caller:
        """The same for a token that came otherwise, in a message say."""
        return self._checked(await self._by(secret), scope, secret)

    def _checked(self, found: Caller | None, scope: Scope, secret: str) -> Caller:
        if found is None and secret:
            raise Refused(401, NotAllowed("this token is not good", hint=NOT_GOOD))
        if found is None:
            raise Refused(401, NotAllowed("a token is needed", hint=HINT))
        if not found.may(scope):
            received = ", ".join(sorted(found.token.scopes))
            raise Refused(
                403, NotAllowed("this token is for something else", received=received, accepted=scope)
            )
        return found

    async def who(self, connection: HTTPConnection) -> Caller | None:
        """Whoever asks, if their token is good now. A cookie counts for what a page of this service sent."""
        return await self._by(given_by(connection))

    async def _by(self, secret: str) -> Caller | None:
        return await self._gathering.add(secret) if secret else None

    def _found(self, secrets: Sequence[str]) -> list[Caller | None]:
        found = self._access.who_all(secrets)
        return [found.get(secret) for secret in secrets]


def asking(connection: HTTPConnection) -> Asking:
    """That of the application."""
    found: Asking = connection.app.state.asking
    return found


def given_by(connection: HTTPConnection) -> str:
    """The token that came along, good or not."""
    return bearer(connection) or own_cookie(connection)


def bearer(connection: HTTPConnection) -> str:
    """The token that a program sends."""
    kind, _, given = connection.headers.get("authorization", "").partition(" ")
    return given.strip() if kind.lower() == "bearer" else ""


def own_cookie(connection: HTTPConnection) -> str:
    """The token that a browser sends along; what another site's page would change with it is refused."""
    secret = connection.cookies.get(COOKIE, "")
    if secret and changes(connection) and not is_same_origin(connection):
        raise Refused(403, foreign(connection))
    return secret


def needs(scope: Scope) -> Callable[..., Awaitable[Caller]]:
    """A dependency of routes: the caller, whose token has the scope, and who asks for nothing that there is not."""

    async def caller(
        request: Request, _: Annotated[HTTPAuthorizationCredentials | None, Security(_scheme)] = None
    ) -> Caller:
        return _let_in(request, await asking(request).allowed(request, scope))

    return caller


def presumes(scope: Scope, is_quick: Callable[[Request], bool]) -> Callable[..., Awaitable[Caller]]:
    """The same for routes that ask again, as `Asking.presumed` says. With a token that is not good, requests that are
    not quick to read are not read at all.
    """

    async def caller(
        request: Request, _: Annotated[HTTPAuthorizationCredentials | None, Security(_scheme)] = None
    ) -> Caller:
        found = asking(request).presumed(request, scope) if is_quick(request) else None
        return _let_in(request, found or await asking(request).allowed(request, scope))

    return caller


def _let_in(request: Request, found: Caller) -> Caller:
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
    rates: Rates | None = getattr(connection.app.state, "rates", None)
    if rates is None:
        return
    connection.state.token = token
    left = rates.take(token)
    connection.state.headers = rates.headers(left)
    if not left.is_allowed:
        raise rates.problem(left)


Publishing = Annotated[Caller, Depends(needs(Scope.PUBLISH))]
Subscribing = Annotated[Caller, Depends(needs(Scope.SUBSCRIBE))]
Administering = Annotated[Caller, Depends(needs(Scope.ADMINISTER))]


def refuse_strangers(caller: Caller, subscriber: str, what: str) -> None:
    """Somebody else's is answered as if it were not there: whether it is, is theirs to know."""
    if not caller.stands_for(subscriber):
        raise Absent(f"there is no such {what}")
