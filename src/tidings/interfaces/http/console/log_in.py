"""Logging in with a token, which becomes the cookie, and logging out."""

from __future__ import annotations

import math
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from tidings.errors import InputError
from tidings.interfaces.http.access import COOKIE
from tidings.interfaces.http.answers import Refused
from tidings.interfaces.http.console.answering import HOME, LOG_IN, Shown, moved
from tidings.interfaces.http.console.attempts import Attempts
from tidings.interfaces.http.console.visiting import Visiting, fields_of, form_of, page
from tidings.interfaces.http.same_origin import foreign, is_same_origin
from tidings.service.access import Access

WEEK = 7 * 24 * 3600
"""Seconds that a browser stays logged in, if the token is good for as long."""
LARGEST = 10_000

Next = Annotated[str, Query(max_length=2_000)]


def router_for(access: Access, is_secure: bool, attempts: Attempts | None = None) -> APIRouter:
    """The pages of log-in and log-out. Behind https (`is_secure`) the cookie goes nowhere else."""
    router = APIRouter(route_class=Shown)
    failures = attempts or Attempts()

    @router.get("/login")
    def log_in(next: Next = "") -> Response:
        return page("log_in.html", None, "", {"next": next, "problem": None})

    @router.post("/login")
    async def logged_in(request: Request) -> Response:
        if not is_same_origin(request):
            raise Refused(403, foreign(request))
        given = await fields_of(request, LARGEST)
        address = request.client.host if request.client else ""
        if (wait := failures.wait(address)) > 0:
            return _later(given, wait)
        secret = given.get("token", "").strip()
        if await run_in_threadpool(access.who, secret) is None:
            failures.failed(address)
            problem = InputError("this token is not good", hint="it may have ended, or been revoked")
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


def _later(given: dict[str, str], wait: float) -> Response:
    seconds = str(math.ceil(wait))
    problem = InputError("too many attempts", hint=f"try again in {seconds} seconds")
    response = page("log_in.html", None, "", {"next": given.get("next", ""), "problem": problem}, 429)
    response.headers["Retry-After"] = seconds
    return response
