"""The service is measured as a whole: every event that was published is received, streamed and posted."""

from __future__ import annotations

import pytest

from benchmarks import service
from benchmarks.goals import goals
from benchmarks.harness import Bench
from benchmarks.rows import Role, Row
from benchmarks.scale import TINY

WORKLOADS = [
    "service, publish to receipt, 20 events a second",
    "service, durable ingest, 1 in a request",
    "service, durable ingest, 1,000 in a request",
    "service, 5 streams held",
]


@pytest.mark.long
@pytest.mark.spark
def test_every_part_is_measured() -> None:
    bench = Bench(TINY.runs, lambda _: None, TINY.budget)
    service.run(bench, TINY)
    rows = bench.finished()
    assert [row.workload for row in rows] == [*WORKLOADS, WORKLOADS[1], *WORKLOADS]
    assert [row.engine for row in rows] == [
        *["tidings serve"] * 4,
        "tidings serve --only api",
        *["HTTP and SQLite alone"] * 4,
    ]
    for row in rows:
        assert row.events_per_second and row.events_per_cpu_second and row.fraction_of_limit
        assert (row.p50_seconds is None) == ("ingest" in row.workload)


def test_a_server_with_nothing_to_match_is_the_limit() -> None:
    """Nothing is lost there either: streams and requests are counted as those of the service are."""
    bench = Bench(TINY.runs, lambda _: None, TINY.budget)
    with service.nothing_to_match(10) as bare:
        service.measure(bench, bare, TINY)
    assert [row.workload for row in bench.rows] == WORKLOADS
    assert {row.role for row in bench.rows} == {"limit"}


def test_half_of_the_events_should_arrive_within_a_second() -> None:
    def row(p50: float, role: Role = "ours") -> Row:
        workload = f"{service.ON_ITS_WAY}, 1 events a second"
        return Row(workload, 10, "x", 1, None, None, None, p50_seconds=p50, role=role)

    assert "| at most 1 s | 500 ms | met |" in goals([row(0.5)])
    assert "| at most 1 s | 2 s | missed: 50% of it |" in goals([row(2.0)])
    assert "| met |" not in goals([row(2.0), row(0.001, "limit")]), "that of nothing to match is none of ours"
