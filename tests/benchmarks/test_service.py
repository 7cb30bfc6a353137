"""The service is measured as a whole: every published event is received, streamed and posted."""

from __future__ import annotations

import pytest

from benchmarks import recovery, service
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
def test_service_benchmark_measures_every_part() -> None:
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


def test_service_benchmark_limit_is_server_without_matching() -> None:
    """Nothing may be lost there either: its streams and requests are counted like those of the service."""
    bench = Bench(TINY.runs, lambda _: None, TINY.budget)
    with service.limit_server(10) as bare:
        service.measure(bench, bare, TINY)
    assert [row.workload for row in bench.rows] == WORKLOADS
    assert {row.role for row in bench.rows} == {"limit"}


def test_service_benchmark_goal_is_median_within_one_second() -> None:
    def row(p50: float, role: Role = "ours") -> Row:
        workload = f"{service.PUBLISH_TO_RECEIPT}, 1 events a second"
        return Row(workload, 10, "x", 1, None, None, None, p50_seconds=p50, role=role)

    assert "| at most 1 s | 500 ms | met |" in goals([row(0.5)])
    assert "| at most 1 s | 2 s | missed: 50% of it |" in goals([row(2.0)])
    assert "| met |" not in goals([row(2.0), row(0.001, "limit")]), "the limit is not a result of Tidings"


@pytest.mark.long
@pytest.mark.spark
def test_recovery_every_kill_ends_with_a_notification() -> None:
    bench = Bench(TINY.runs, lambda _: None, TINY.budget)
    recovery.run(bench, TINY)
    assert [row.workload.split(", ", 1)[1] for row in bench.rows] == [
        "kill -9 of the service, publication accepted",
        "kill -9 of the service, notification written",
        "kill -9 of Spark's JVM, publication accepted",
        "kill -9 of Spark's JVM, notification written",
    ]
    accepted, notified = bench.rows[0].p50_seconds, bench.rows[1].p50_seconds
    assert accepted and notified and accepted < notified
