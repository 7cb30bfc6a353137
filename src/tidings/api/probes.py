"""Probes: `/healthz` says that the process and its parts live, `/readyz` whether it can do its work, and if not, why;
`/metrics` is what it counts, for Prometheus.
"""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse

from tidings.api.authentication import require_scope
from tidings.api.routes import ProblemRoute
from tidings.errors import TidingsError
from tidings.service.access import Scope
from tidings.service.context import ServiceContext

NO_STORE = {"Cache-Control": "no-store"}


def router_for(context: ServiceContext) -> APIRouter:
    """The endpoints that whoever watches over the service asks. Probes say nothing of anybody's: no token is needed.
    Counts do, a little: they are for administrators, unless a setting opens them.
    """
    router = APIRouter(tags=["operating"], route_class=ProblemRoute)
    metered = [] if context.settings.metrics == "open" else [Depends(require_scope(Scope.ADMINISTER))]
    context.health.watch("store", lambda: _store_problem(context))

    @router.get("/healthz")
    async def healthz() -> Response:
        """Whoever has started the process starts it again if this fails: so it fails where that helps, and else not."""
        if ended := context.health.ended():
            return JSONResponse({"status": "ended", "parts": ended}, 503, NO_STORE)
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

    @router.get("/metrics", dependencies=metered)
    def metrics(request: Request) -> Response:
        text, kind = context.metrics.text(request.headers.get("accept", ""))
        return Response(text, media_type=kind, headers=NO_STORE | {"Vary": "Accept"})

    return router


def _store_problem(context: ServiceContext) -> str | None:
    """Whether the store answers, with the tables that this version works with."""
    try:
        context.tidings.store.check()
    except TidingsError as problem:
        return problem.what
    return None
