"""Login with a token, which becomes the session cookie, logout, and the administrators' page of tokens."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from tidings.api.authentication import COOKIE, INVALID_TOKEN_HINT
from tidings.api.csrf import build_csrf_error, is_same_origin
from tidings.api.problem_details import HttpError
from tidings.api.rate_limiter import RateLimiter
from tidings.api.routes import retry_after_headers
from tidings.console.pages import HOME, LOG_IN, console_router, redirect_to
from tidings.console.session import (
    AdministerVisitor,
    AnyVisitor,
    Form,
    Visitor,
    read_fields,
    render_page,
)
from tidings.core.text import plural
from tidings.errors import InputError, NotFound, RateLimited
from tidings.service.authorization import Access, NewToken, Scope
from tidings.store.encoding import format_instant, utc_now

HERE = "tokens"
FIELDS = ("name", "subscriber", "expires_in")

WEEK = 7 * 24 * 3600
"""Seconds that a browser stays logged in, if the token is valid that long."""
LARGEST = 10_000
FAILURES = 10
"""Failed logins from one address: ten at once, then ten a minute, one every six seconds. Tokens cannot be guessed; the
limit keeps attackers from occupying the store. A fixed window of a minute would lock out people who mistype for longer.
"""

Next = Annotated[str, Query(max_length=2_000)]


def login_router_for(access: Access, is_secure: bool, attempts: RateLimiter | None = None) -> APIRouter:
    """Return the login and logout pages. With `is_secure` the cookie is sent over https only."""
    router = console_router()
    failures = attempts or RateLimiter(FAILURES, FAILURES)

    @router.get("/login")
    def log_in(next: Next = "") -> Response:
        return render_page("log_in.html", None, "", {"next": next, "problem": None})

    @router.post("/login")
    async def submit_log_in(request: Request) -> Response:
        if not is_same_origin(request):
            raise HttpError(403, build_csrf_error(request))
        fields = await read_fields(request, LARGEST)
        address = request.client.host if request.client else ""
        if not (left := failures.look(address)).is_allowed:
            return _too_many_attempts(fields, left.seconds)
        secret = fields.get("token", "").strip()
        if await run_in_threadpool(access.authenticate, secret) is None:
            failures.take(address)
            problem = InputError("invalid token", hint=INVALID_TOKEN_HINT)
            return render_page(
                "log_in.html", None, "", {"next": fields.get("next", ""), "problem": problem}, 403
            )
        return _log_in_response(secret, fields.get("next", ""), is_secure or request.url.scheme == "https")

    @router.post("/logout")
    def log_out(visitor: AnyVisitor, form: Form) -> Response:
        response = redirect_to(LOG_IN)
        response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
        return response

    return router


def _log_in_response(secret: str, next: str, is_secure: bool) -> Response:
    """Redirect to a page of the console only: `next` may come from a link that someone else wrote."""
    is_ours = next.startswith(f"{HOME}/") and not next.startswith(LOG_IN)
    response = redirect_to(next if is_ours else HOME)
    response.set_cookie(
        COOKIE, secret, max_age=WEEK, path="/", secure=is_secure, httponly=True, samesite="strict"
    )
    return response


def _too_many_attempts(fields: dict[str, str], seconds: int) -> Response:
    problem = RateLimited(
        "too many attempts", seconds=seconds, hint=f"try again in {plural(seconds, 'second')}"
    )
    response = render_page("log_in.html", None, "", {"next": fields.get("next", ""), "problem": problem}, 429)
    response.headers.update(retry_after_headers(problem))
    return response


def router_for(access: Access) -> APIRouter:
    """Return the page of tokens."""
    router = console_router("tokens")

    @router.get("")
    def tokens(visitor: AdministerVisitor) -> Response:
        return _page(access, visitor)

    @router.post("")
    def make(visitor: AdministerVisitor, form: Form) -> Response:
        """Create a token. Only the response shows its secret."""
        scopes = [scope for scope in Scope if form.get(scope)]
        name, subscriber, expires_in = (form.get(field, "").strip() or None for field in FIELDS)
        try:
            if name is None:
                raise InputError("a token needs a name", hint="who has it, or where: ana's phone")
            return _page(access, visitor, access.make(name, scopes, subscriber, expires_in))
        except InputError as problem:
            return _page(access, visitor, form=form, problem=problem)

    @router.post("/{id}/revoke")
    def revoke(id: str, visitor: AdministerVisitor, form: Form) -> Response:
        if not access.revoke(id):
            raise NotFound("there is no such token, or it is already revoked", received=id)
        return redirect_to(f"{HOME}/{HERE}")

    return router


def _page(
    access: Access,
    visitor: Visitor,
    made: NewToken | None = None,
    form: dict[str, str] | None = None,
    problem: InputError | None = None,
) -> Response:
    values = {
        "tokens": access.list()[::-1],
        "made": made,
        "form": form or {},
        "problem": problem,
        "scopes": list(Scope),
        "now": format_instant(utc_now()),
    }
    return render_page("tokens.html", visitor, HERE, values, 422 if problem else 200)
