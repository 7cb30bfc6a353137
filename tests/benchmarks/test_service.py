"""The service is measured as a whole: every event that was published is received, streamed and posted."""

from __future__ import annotations

import pytest

from benchmarks import service
from benchmarks.goals import goals
from benchmarks.harness import Bench
from benchmarks.rows import Row
from benchmarks.scale import TINY


@pytest.mark.long
@pytest.mark.spark
def test_every_part_is_measured() -> None:
    bench = Bench(TINY.runs, lambda _: None, TINY.budget)
    service.run(bench, TINY)
    assert [row.workload for row in bench.rows] == [
        "service, publish to receipt, 20 events a second",
        "service, durable ingest, 1 in a request",
        "service, durable ingest, 1,000 in a request",
        "service, 5 streams held",
        "service, durable ingest, 1 in a request",
    ]
    assert bench.rows[4].engine == "tidings serve --only api"
    assert all(row.events_per_second and row.events_per_cpu_second for row in bench.rows)
    timed = [row for row in bench.rows if row.p50_seconds is not None]
    assert [row.workload for row in timed] == [bench.rows[0].workload, bench.rows[3].workload]


def test_half_of_the_events_should_arrive_within_a_second() -> None:
    def row(p50: float) -> Row:
        return Row(f"{service.ON_ITS_WAY}, 1 events a second", 10, "x", 1, None, None, None, p50_seconds=p50)

    assert "| at most 1 s | 500 ms | met |" in goals([row(0.5)])
    assert "| at most 1 s | 2 s | missed: 50% of it |" in goals([row(2.0)])
