"""`/v1/pipeline`: how the stream and delivery are doing, now and over time. The console draws it."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query

from tidings.interfaces.http.access import Administering
from tidings.interfaces.http.context import Context
from tidings.interfaces.http.v1.answering import Versioned
from tidings.service.pipeline import pipeline
from tidings.store import Measured, instant

Minutes = Annotated[int, Query(ge=1, le=60 * 24 * 31)]
Points = Annotated[int, Query(ge=1, le=1_000)]


def router_for(context: Context) -> APIRouter:
    router = APIRouter(tags=["operating"], route_class=Versioned)

    @router.get("/v1/pipeline")
    def show(caller: Administering, minutes: Minutes = 60, points: Points = 120) -> dict[str, Any]:
        """Of each measure, what it came to in steps of `step` seconds: how often it was added to, the sum, the
        greatest value. `now` is where everything is at this moment.
        """
        found = pipeline(context.tidings.store, timedelta(minutes=minutes), points)
        now = asdict(found.now) | {"seen": instant(found.now.seen) if found.now.seen else None}
        series = {name: [_point(one) for one in ones] for name, ones in found.series.items()}
        return {"now": now, "since": instant(found.since), "step": found.step, "series": series}

    return router


def _point(one: Measured) -> dict[str, Any]:
    return {"at": instant(one.at), "count": one.count, "total": one.total, "most": one.most}
