"""The pipeline as a table, with the numbers of its charts, for screen readers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.console.place import Place
from tidings.console.pipeline import CHARTS, build_rows
from tidings.service.pipeline_status import PipelineReport, read_status
from tidings.store.telemetry import TimeSeriesPoint


def test_build_rows_incomplete_step_is_weighted_by_duration(place: Place) -> None:
    start, previous = (datetime(2026, 1, 1, 12, minute, tzinfo=UTC) for minute in (1, 0))
    series = {"publications": [TimeSeriesPoint("publications", at, 1, 120, 120) for at in (previous, start)]}
    report = PipelineReport(read_status(place.tidings.store), previous, 60, series)
    assert CHARTS[0].lines[0].measure == "publications"
    rates = [cells[0] for _, cells in build_rows(report, start + timedelta(seconds=10))]
    assert rates == ["12", "2"]
