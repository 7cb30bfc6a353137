"""Probes and telemetry for operators.

/healthz        liveness
/readyz         readiness, with reasons
/metrics        Prometheus metrics
/v1/pipeline    measures of the stream and of delivery, now and over time; the console draws them
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import JSONResponse

from tidings.api.authentication import AdministerCaller, require_scope
from tidings.api.routes import ProblemRoute
from tidings.api.v1.route_classes import VersionedRoute
from tidings.errors import TidingsError
from tidings.service.authorization import Scope
from tidings.service.context import ServiceContext
from tidings.service.pipeline_status import read_pipeline
from tidings.store.encoding import format_instant
from tidings.store.telemetry import TimeSeriesPoint

NO_STORE = {"Cache-Control": "no-store"}

Minutes = Annotated[int, Query(ge=1, le=60 * 24 * 31)]
Points = Annotated[int, Query(ge=1, le=1_000)]


def router_for(context: ServiceContext) -> APIRouter:
    """Return the probes, which need no token. Metrics are for administrators, unless a setting opens them."""
    router = APIRouter(tags=["operating"], route_class=ProblemRoute)
    dependencies = [] if context.settings.metrics == "open" else [Depends(require_scope(Scope.ADMINISTER))]
    context.health.watch("store", lambda: _check_store(context))

    @router.get("/healthz")
    async def healthz() -> Response:
        """Report liveness. It fails only if restarting the process helps."""
        if ended := context.health.list_ended_parts():
            return JSONResponse({"status": "ended", "parts": ended}, 503, NO_STORE)
        return JSONResponse({"status": "alive"}, headers=NO_STORE)

    @router.get("/readyz")
    def readyz() -> Response:
        """Report each part of this process and its problem, if it has one."""
        problems = context.health.report()
        is_ready = not any(problems.values())
        report = {
            "status": "ready" if is_ready else "not ready",
            "checks": {name: problem or "ok" for name, problem in problems.items()},
        }
        return JSONResponse(report, 200 if is_ready else 503, NO_STORE)

    @router.get("/metrics", dependencies=dependencies)
    def metrics(request: Request) -> Response:
        text, media_type = context.metrics.text(request.headers.get("accept", ""))
        return Response(text, media_type=media_type, headers=NO_STORE | {"Vary": "Accept"})

    return router


def _check_store(context: ServiceContext) -> str | None:
    """Return the problem of the store: it does not answer, or has tables of another version."""
    try:
        context.tidings.store.check()
    except TidingsError as problem:
        return problem.what
    return None


def pipeline_router_for(context: ServiceContext) -> APIRouter:
    router = APIRouter(tags=["operating"], route_class=VersionedRoute)

    @router.get("/v1/pipeline")
    def show(caller: AdministerCaller, minutes: Minutes = 60, points: Points = 120) -> dict[str, Any]:
        """Read the time series of each measure: count, sum and maximum of each step of `step` seconds.

        `now` has the current values.
        """
        report = read_pipeline(context.tidings.store, timedelta(minutes=minutes), points)
        now = asdict(report.now) | {"seen": format_instant(report.now.seen) if report.now.seen else None}
        series = {name: [_build_point(point) for point in line] for name, line in report.series.items()}
        return {"now": now, "since": format_instant(report.since), "step": report.step, "series": series}

    return router


def _build_point(point: TimeSeriesPoint) -> dict[str, Any]:
    return {"at": format_instant(point.at), "count": point.count, "total": point.total, "most": point.most}
