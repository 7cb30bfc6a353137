"""The pipeline as a table: the same numbers as in its charts, for those who cannot see them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.console.place import Place
from tidings.console.pipeline import CHARTS, build_rows
from tidings.service.pipeline import PipelineReport, read_status
from tidings.store.telemetry import TimeSeriesPoint


def test_incomplete_step_is_weighted_by_its_duration(place: Place) -> None:
    begun, ended = (datetime(2026, 1, 1, 12, minute, tzinfo=UTC) for minute in (1, 0))
    series = {"publications": [TimeSeriesPoint("publications", at, 1, 120, 120) for at in (ended, begun)]}
    found = PipelineReport(read_status(place.tidings.store), ended, 60, series)
    assert CHARTS[0].lines[0].measure == "publications"
    rates = [cells[0] for _, cells in build_rows(found, begun + timedelta(seconds=10))]
    assert rates == ["12", "2"]
