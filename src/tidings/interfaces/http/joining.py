"""Routes of one router taken into another as they are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from fastapi import APIRouter, FastAPI

Lifespan = Callable[[Any], AbstractAsyncContextManager[Any]]


def join(into: FastAPI | APIRouter, *routers: APIRouter) -> None:
    """Take over the routes of routers that say everything themselves, where they are and what they depend on, and what
    works beside them.

    `include_router` would work out each route once more, with what the outer router adds, and each request would be
    looked up in a tree of routers: nothing is added here, and the tree is a list.
    """
    outer = into.router if isinstance(into, FastAPI) else into
    for each in routers:
        outer.routes.extend(each.routes)
        outer.lifespan_context = _both(outer.lifespan_context, each.lifespan_context)


def _both(first: Lifespan, second: Lifespan) -> Lifespan:
    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        async with first(app), second(app):
            yield

    return lifespan
