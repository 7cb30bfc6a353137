"""The pipeline as a table: the same numbers as in its charts, for those who cannot see them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.interfaces.console.place import Place
from tidings.interfaces.http.console.pipeline import CHARTS, rows
from tidings.service.pipeline import Pipeline, now
from tidings.store import Measured


def test_a_step_that_has_begun_counts_as_long_as_it_has_lasted(place: Place) -> None:
    begun, ended = (datetime(2026, 1, 1, 12, minute, tzinfo=UTC) for minute in (1, 0))
    series = {"publications": [Measured("publications", at, 1, 120, 120) for at in (ended, begun)]}
    found = Pipeline(now(place.tidings.store), ended, 60, series)
    assert CHARTS[0].lines[0].measure == "publications"
    rates = [cells[0] for _, cells in rows(found, begun + timedelta(seconds=10))]
    assert rates == ["12", "2"]
