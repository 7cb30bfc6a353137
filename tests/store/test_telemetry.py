"""Measures over time: sums of ten seconds, on both databases, for as long as they are kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tidings.model import Publication
from tidings.store.store import Store
from tidings.store.telemetry import TimeSeries

BEGIN = datetime(2026, 11, 17, 3, 0, 0, tzinfo=UTC)


def test_time_series_sums_per_step_and_deletes_old_measures(store: Store) -> None:
    now = [BEGIN]
    measures = TimeSeries(store.database, lambda: now[0])
    for second, publications, lag in ((0, 5, 3), (4, 7, 0), (12, 1, 2), (65, 2, 9)):
        now[0] = BEGIN + timedelta(seconds=second)
        measures.add({"publications": publications, "lag": lag})
    fine = [(m.name, (m.at - BEGIN).seconds, m.count, m.total, m.most) for m in measures.read(BEGIN)]
    assert fine == [
        ("lag", 0, 2, 3.0, 3.0),
        ("publications", 0, 2, 12.0, 7.0),
        ("lag", 10, 1, 2.0, 2.0),
        ("publications", 10, 1, 1.0, 1.0),
        ("lag", 60, 1, 9.0, 9.0),
        ("publications", 60, 1, 2.0, 2.0),
    ]
    coarse = [(m.name, m.count, m.total, m.most) for m in measures.read(BEGIN, 60, ["publications"])]
    assert coarse == [("publications", 3, 13.0, 7.0), ("publications", 1, 2.0, 2.0)]
    assert measures.latest(["lag", "nothing"])["lag"].most == 9.0
    now[0] = BEGIN + timedelta(seconds=100)
    measures.add({"lag": 0}, retention=timedelta(seconds=40))
    assert [(m.at - BEGIN).seconds for m in measures.read(BEGIN, names=["publications"])] == [60]


def test_latest_clock_set_back_ignores_future_measures(store: Store) -> None:
    now = [BEGIN]
    measures = TimeSeries(store.database, lambda: now[0])
    measures.add({"lag": 9})
    now[0] = BEGIN - timedelta(days=1)
    assert measures.latest(["lag"]) == {}
    measures.add({"lag": 2})
    assert measures.latest(["lag"])["lag"].most == 2.0


def test_matched_position_advances_with_stream_batches(store: Store) -> None:
    store.journal.append([Publication("p-1", "application/json", b"{}")])
    assert store.notifications.matched() == 0
    assert store.journal.time_of(1) is not None and store.journal.time_of(2) is None
    store.notifications.commit_batch("s", 0, [], position=7)
    store.notifications.commit_batch("s", 0, [], position=7)
    assert store.notifications.matched() == 7
    store.notifications.reach(3)
    assert store.notifications.matched() == 7
    store.notifications.commit_batch("folder", 0, [])
    assert store.notifications.matched() == 7
