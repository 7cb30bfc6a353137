"""Probes: `/healthz` says that the process lives, `/readyz` whether it can do its work, and if not, why."""

from __future__ import annotations

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from tidings.errors import TidingsError
from tidings.interfaces.http.context import Context

NO_STORE = {"Cache-Control": "no-store"}


def router_for(context: Context) -> APIRouter:
    """The endpoints that whoever watches over the service asks. They say nothing of anybody's: no token is needed."""
    router = APIRouter(tags=["operating"])
    context.health.watch("store", lambda: _store_problem(context))

    @router.get("/healthz")
    async def healthz() -> Response:
        return JSONResponse({"status": "alive"}, headers=NO_STORE)

    @router.get("/readyz")
    def readyz() -> Response:
        """Each part of this process, and what is wrong with it."""
        found = context.health.report()
        ready = not any(found.values())
        answer = {
            "status": "ready" if ready else "not ready",
            "checks": {name: problem or "ok" for name, problem in found.items()},
        }
        return JSONResponse(answer, 200 if ready else 503, NO_STORE)

    return router


def _store_problem(context: Context) -> str | None:
    """Whether the store answers, with the tables that this version works with."""
    try:
        context.tidings.store.check()
    except TidingsError as problem:
        return problem.what
    return None
