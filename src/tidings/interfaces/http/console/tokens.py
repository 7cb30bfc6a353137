"""Tokens, for administrators: make one, see who has which, revoke."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool

from tidings.errors import Absent, InputError
from tidings.interfaces.http.console.answering import HOME, moved, pages_at
from tidings.interfaces.http.console.visiting import Administrator, Visitor, form_of, page
from tidings.service.access import Access, Made, Scope
from tidings.store import instant, utc

HERE = "tokens"
FIELDS = ("name", "subscriber", "lasting")


def router_for(access: Access) -> APIRouter:
    """The page of tokens."""
    router = pages_at("tokens")

    @router.get("")
    def tokens(visitor: Administrator) -> Response:
        return _page(access, visitor)

    @router.post("")
    async def make(request: Request, visitor: Administrator) -> Response:
        given = await form_of(request, visitor)
        return await run_in_threadpool(_make, access, visitor, given)

    @router.post("/{id}/revoke")
    async def revoke(id: str, request: Request, visitor: Administrator) -> Response:
        await form_of(request, visitor)
        if not await run_in_threadpool(access.revoke, id):
            raise Absent("there is no such token, or it was revoked before", received=id)
        return moved(f"{HOME}/{HERE}")

    return router


def _make(access: Access, visitor: Visitor, given: dict[str, str]) -> Response:
    """The token itself is on the page that answers, and nowhere else."""
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
    made: Made | None = None,
    given: dict[str, str] | None = None,
    problem: InputError | None = None,
) -> Response:
    values = {
        "tokens": access.list()[::-1],
        "made": made,
        "given": given or {},
        "problem": problem,
        "scopes": list(Scope),
        "now": instant(utc()),
    }
    return page("tokens.html", visitor, HERE, values, 422 if problem else 200)
