"""Probes for operators: `/healthz` (liveness), `/readyz` (readiness, with reasons) and `/metrics` (Prometheus)."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse

from tidings.api.authentication import require_scope
from tidings.api.routes import ProblemRoute
from tidings.errors import TidingsError
from tidings.service.authorization import Scope
from tidings.service.context import ServiceContext

NO_STORE = {"Cache-Control": "no-store"}


def router_for(context: ServiceContext) -> APIRouter:
    """Return the probes, which need no token. Metrics are for administrators, unless a setting opens them."""
    router = APIRouter(tags=["operating"], route_class=ProblemRoute)
    metered = [] if context.settings.metrics == "open" else [Depends(require_scope(Scope.ADMINISTER))]
    context.health.watch("store", lambda: _store_problem(context))

    @router.get("/healthz")
    async def healthz() -> Response:
        """Report liveness. It fails only if restarting the process helps."""
        if ended := context.health.ended():
            return JSONResponse({"status": "ended", "parts": ended}, 503, NO_STORE)
        return JSONResponse({"status": "alive"}, headers=NO_STORE)

    @router.get("/readyz")
    def readyz() -> Response:
        """Report each part of this process and its problem, if it has one."""
        problems = context.health.report()
        ready = not any(problems.values())
        answer = {
            "status": "ready" if ready else "not ready",
            "checks": {name: problem or "ok" for name, problem in problems.items()},
        }
        return JSONResponse(answer, 200 if ready else 503, NO_STORE)

    @router.get("/metrics", dependencies=metered)
    def metrics(request: Request) -> Response:
        text, kind = context.metrics.text(request.headers.get("accept", ""))
        return Response(text, media_type=kind, headers=NO_STORE | {"Vary": "Accept"})

    return router


def _store_problem(context: ServiceContext) -> str | None:
    """Return the problem of the store: it does not answer, or has tables of another version."""
    try:
        context.tidings.store.check()
    except TidingsError as problem:
        return problem.what
    return None
