"""Pipeline page, for administrators: throughput, latency and lag over time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Response

from tidings.console.pages import console_router
from tidings.console.session import AdministerVisitor, render_page
from tidings.service.pipeline_status import PipelineReport, read_pipeline
from tidings.service.tidings import Tidings
from tidings.store.encoding import format_instant, utc_now
from tidings.store.telemetry import TimeSeriesPoint

HERE = "pipeline"
POINTS = 60
SPANS = {15: "15 minutes", 60: "1 hour", 360: "6 hours", 2_880: "2 days"}


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a chart: a measure and its aggregate.

    `rate` is the sum per second, `sum` the sum, `mean` the sum divided by the count, `most` the maximum.
    """

    measure: str
    drawn: str
    name: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart and its unit. `stands` names the current value, if there is one: the last measurement may be outdated."""

    title: str
    unit: str
    lines: tuple[Line, ...]
    stands: str = ""


CHARTS = (
    Chart(
        "Throughput",
        "/s",
        (Line("publications", "rate", "publications"), Line("notifications", "rate", "notifications")),
    ),
    Chart(
        "Latency, publish to notification",
        "s",
        (Line("latency_seconds", "mean", "mean"), Line("latency_seconds", "most", "most")),
    ),
    Chart("Batch time", "s", (Line("batch_seconds", "mean", "mean"), Line("batch_seconds", "most", "most"))),
    Chart("Lag", "publications", (Line("lag", "most", "not matched yet"),), "lag"),
    Chart("Segments", "", (Line("segments", "most", "segments"),), "segments"),
    Chart("Dead letters", "", (Line("dead_letters", "sum", "dead letters"),)),
)
"""The charts, which the script draws and the page shows as a table."""

Minutes = Annotated[int, Query(ge=1, le=60 * 24 * 31)]


def router_for(tidings: Tidings, find_spark_ui: Callable[[], str | None] = lambda: None) -> APIRouter:
    """Return the page. Its script polls `/v1/pipeline`. It links to Spark's user interface if there is one."""
    router = console_router(HERE)

    @router.get("")
    def show(visitor: AdministerVisitor, minutes: Minutes = 60) -> Response:
        report = read_pipeline(tidings.store, timedelta(minutes=minutes), POINTS)
        values = {
            "now": report.now,
            "charts": CHARTS,
            "rows": list(build_rows(report, utc_now())),
            "spans": SPANS,
            "spark_ui": find_spark_ui(),
        }
        return render_page("pipeline.html", visitor, HERE, values | {"minutes": minutes, "points": POINTS})

    return router


def build_rows(report: PipelineReport, until: datetime) -> Iterable[tuple[str, list[str]]]:
    """Yield the values of the charts as table rows, newest first. The last step may have just begun."""
    points = {(name, point.at): point for name, series in report.series.items() for point in series}
    for moment in sorted({moment for _, moment in points}, reverse=True):
        lasted = min(report.step, max(1.0, (until - moment).total_seconds()))
        cells = [
            _show_point(points.get((line.measure, moment)), line, lasted)
            for chart in CHARTS
            for line in chart.lines
        ]
        yield format_instant(moment), cells


def _show_point(point: TimeSeriesPoint | None, line: Line, seconds: float) -> str:
    if point is None:
        return ""
    drawn = {
        "rate": point.total / seconds,
        "sum": point.total,
        "mean": point.total / point.count if point.count else 0.0,
        "most": point.most,
    }
    return f"{drawn[line.drawn]:.3g}"
