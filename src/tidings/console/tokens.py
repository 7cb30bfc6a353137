"""Token page, for administrators: create, list and revoke tokens."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool

from tidings.console.pages import HOME, console_router, redirect_to
from tidings.console.session import AdministerVisitor, Visitor, read_form, render_page
from tidings.errors import Absent, InputError
from tidings.service.authorization import Access, NewToken, Scope
from tidings.store.encoding import format_instant, utc_now

HERE = "tokens"
FIELDS = ("name", "subscriber", "lasting")


def router_for(access: Access) -> APIRouter:
    """Return the page of tokens."""
    router = console_router("tokens")

    @router.get("")
    def tokens(visitor: AdministerVisitor) -> Response:
        return _page(access, visitor)

    @router.post("")
    async def make(request: Request, visitor: AdministerVisitor) -> Response:
        given = await read_form(request, visitor)
        return await run_in_threadpool(_make, access, visitor, given)

    @router.post("/{id}/revoke")
    async def revoke(id: str, request: Request, visitor: AdministerVisitor) -> Response:
        await read_form(request, visitor)
        if not await run_in_threadpool(access.revoke, id):
            raise Absent("there is no such token, or it is already revoked", received=id)
        return redirect_to(f"{HOME}/{HERE}")

    return router


def _make(access: Access, visitor: Visitor, given: dict[str, str]) -> Response:
    """Create a token. Only the response shows its secret."""
    scopes = [scope for scope in Scope if given.get(scope)]
    name, subscriber, lasting = (given.get(field, "").strip() or None for field in FIELDS)
    try:
        if name is None:
            raise InputError("a token needs a name", hint="who has it, or where: ana's phone")
        made = access.make(name, scopes, subscriber, lasting)
    except InputError as problem:
        return _page(access, visitor, given=given, problem=problem)
    return _page(access, visitor, made)


def _page(
    access: Access,
    visitor: Visitor,
    made: NewToken | None = None,
    given: dict[str, str] | None = None,
    problem: InputError | None = None,
) -> Response:
    values = {
        "tokens": access.list()[::-1],
        "made": made,
        "given": given or {},
        "problem": problem,
        "scopes": list(Scope),
        "now": format_instant(utc_now()),
    }
    return render_page("tokens.html", visitor, HERE, values, 422 if problem else 200)
