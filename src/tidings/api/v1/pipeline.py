"""`/v1/pipeline`: telemetry of the stream and of delivery, now and over time. The console draws it."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query

from tidings.api.authentication import AdministerCaller
from tidings.api.v1.route_classes import VersionedRoute
from tidings.service.context import ServiceContext
from tidings.service.pipeline import read_pipeline
from tidings.store.encoding import format_instant
from tidings.store.telemetry import TimeSeriesPoint

Minutes = Annotated[int, Query(ge=1, le=60 * 24 * 31)]
Points = Annotated[int, Query(ge=1, le=1_000)]


def router_for(context: ServiceContext) -> APIRouter:
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
    return {
        "at": format_instant(point.at),
        "count": point.count,
        "total": point.total,
        "most": point.most,
    }
