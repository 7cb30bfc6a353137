"""Logging in with a token, which becomes the cookie, and logging out."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from tidings.counts import plural
from tidings.errors import InputError, TooOften
from tidings.interfaces.http.access import COOKIE, NOT_GOOD
from tidings.interfaces.http.answers import come_back
from tidings.interfaces.http.console.answering import HOME, LOG_IN, moved, pages_at
from tidings.interfaces.http.console.visiting import Visiting, fields_of, form_of, page
from tidings.interfaces.http.rates import Rates
from tidings.interfaces.http.refused import Refused
from tidings.interfaces.http.same_origin import foreign, is_same_origin
from tidings.service.access import Access

WEEK = 7 * 24 * 3600
"""Seconds that a browser stays logged in, if the token is good for as long."""
LARGEST = 10_000
FAILURES = 10
"""At once from one address, and as many a minute from then on: one every six seconds. A token cannot be guessed, and
nobody should keep the store busy trying. Ten in any minute would shut whoever has mistyped out for up to a minute.
"""

Next = Annotated[str, Query(max_length=2_000)]


def router_for(access: Access, is_secure: bool, attempts: Rates | None = None) -> APIRouter:
    """The pages of log-in and log-out. Behind https (`is_secure`) the cookie goes nowhere else."""
    router = pages_at()
    failures = attempts or Rates(FAILURES, FAILURES)

    @router.get("/login")
    def log_in(next: Next = "") -> Response:
        return page("log_in.html", None, "", {"next": next, "problem": None})

    @router.post("/login")
    async def logged_in(request: Request) -> Response:
        if not is_same_origin(request):
            raise Refused(403, foreign(request))
        given = await fields_of(request, LARGEST)
        address = request.client.host if request.client else ""
        if not (left := failures.look(address)).is_allowed:
            return _later(given, left.seconds)
        secret = given.get("token", "").strip()
        if await run_in_threadpool(access.who, secret) is None:
            failures.take(address)
            problem = InputError("this token is not good", hint=NOT_GOOD)
            return page("log_in.html", None, "", {"next": given.get("next", ""), "problem": problem}, 403)
        return _entered(secret, given.get("next", ""), is_secure or request.url.scheme == "https")

    @router.post("/logout")
    async def logged_out(request: Request, visitor: Visiting) -> Response:
        await form_of(request, visitor)
        response = moved(LOG_IN)
        response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
        return response

    return router


def _entered(secret: str, next: str, is_secure: bool) -> Response:
    """Only to a page of the console: an address that somebody else wrote could lead anywhere."""
    is_ours = next.startswith(f"{HOME}/") and not next.startswith(LOG_IN)
    response = moved(next if is_ours else HOME)
    response.set_cookie(
        COOKIE, secret, max_age=WEEK, path="/", secure=is_secure, httponly=True, samesite="strict"
    )
    return response


def _later(given: dict[str, str], seconds: int) -> Response:
    problem = TooOften("too many attempts", seconds=seconds, hint=f"try again in {plural(seconds, 'second')}")
    response = page("log_in.html", None, "", {"next": given.get("next", ""), "problem": problem}, 429)
    response.headers.update(come_back(problem))
    return response
