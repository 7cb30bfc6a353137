"""`/v1/pipeline`: how the stream and delivery are doing, now and over time. The console draws it."""

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
        """Of each measure, what it came to in steps of `step` seconds: how often it was added to, the sum, the
        greatest value. `now` is where everything is at this moment.
        """
        found = read_pipeline(context.tidings.store, timedelta(minutes=minutes), points)
        now = asdict(found.now) | {"seen": format_instant(found.now.seen) if found.now.seen else None}
        series = {name: [_point(one) for one in ones] for name, ones in found.series.items()}
        return {"now": now, "since": format_instant(found.since), "step": found.step, "series": series}

    return router


def _point(one: TimeSeriesPoint) -> dict[str, Any]:
    return {"at": format_instant(one.at), "count": one.count, "total": one.total, "most": one.most}
