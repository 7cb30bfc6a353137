"""The benchmark harness: agreement of engines, budgets, missing engines, time of other processes, rows and tables."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.budget import Budget, TooLong, at_most
from benchmarks.child import Child, ChildError
from benchmarks.engines import IndexEngine
from benchmarks.goals import goals
from benchmarks.harness import Bench, Counts, Disagreement, Engine
from benchmarks.rows import Row, cells, compared, duration, load, markdown, merged, save, table
from benchmarks.workloads import Events, Subscriptions, equalities
from tests.support.packages import Unavailable

WORKLOAD = equalities(500, 200)


def quiet(**options: object) -> Bench:
    return Bench(1, lambda _: None, **options)  # type: ignore[arg-type]


class Counting(Engine):
    """An engine that finds nothing and records its calls."""

    name = "counting"

    def __init__(self, pace: float = 0.0) -> None:
        self.pace, self.closed, self.batches = pace, 0, [0]

    def prepare(self, subscriptions: Subscriptions) -> None:
        self.size = len(subscriptions)

    def build(self) -> None:
        pass

    def give(self, events: Events) -> None:
        self.batches.append(len(events))

    def match(self) -> int:
        return self.batches[-1]

    def counts(self, answer: int) -> Counts:
        return np.zeros(answer, np.int64)

    def seconds(self) -> float:
        return self.pace * self.batches[-1]

    def close(self) -> None:
        self.closed += 1


def test_measure_disagreeing_engines_raises_disagreement() -> None:
    bench, forgetful = quiet(), Counting()
    bench.measure(IndexEngine(), WORKLOAD, 200)
    with pytest.raises(Disagreement, match="counting found 0 matches, index found"):
        bench.measure(forgetful, WORKLOAD, 200)
    assert forgetful.closed == 1


def test_measure_limits_events_by_time_budget() -> None:
    slow, fast = Counting(pace=0.01), Counting(pace=1e-6)
    rows = [quiet(budget=Budget(run=1.0)).measure(engine, WORKLOAD, 200) for engine in (slow, fast)]
    assert (slow.batches[-1], fast.batches[-1]) == (100, 200)
    assert [row.events_per_cpu_second for row in rows] == pytest.approx([100, 1e6])


def test_measure_slow_engine_gets_one_event_and_one_run() -> None:
    class Slow(Counting):
        once, calls = True, 0

        def match(self) -> int:
            self.calls += 1
            return super().match()

    bench, engine = quiet(), Slow(pace=0.5)
    row = bench.measure(engine, WORKLOAD, 200)
    assert (engine.batches, engine.calls, row.seconds_per_event) == ([0, 1], 1, 0.5)


def test_measure_uses_seconds_reported_by_engine() -> None:
    row = quiet().measure(Counting(pace=0.001), WORKLOAD, 200)
    assert row.seconds_per_event == pytest.approx(0.001)


def test_measure_unavailable_engine_gives_row_with_reason() -> None:
    class Missing(Counting):
        def prepare(self, subscriptions: Subscriptions) -> None:
            raise Unavailable("no Java")

    missing = Missing()
    row = quiet().measure(missing, WORKLOAD, 200)
    assert (row.note, row.events_per_cpu_second, row.role) == ("not available: no Java", None, "peer")
    assert missing.closed == 1


def test_measure_engine_over_build_budget_is_stopped_and_skipped_later() -> None:
    class Endless(Counting):
        def build(self) -> None:
            time.sleep(60)

    bench, second = quiet(budget=Budget(build=0.05)), Endless()
    assert (
        bench.measure(Endless(), WORKLOAD, 200).note == "building took more than 50 ms at 500 subscriptions"
    )
    more = bench.measure(second, replace(WORKLOAD, subscriptions=equalities(600, 1).subscriptions), 200)
    assert (more.subscriptions, more.note) == (600, "building took more than 50 ms at 500 subscriptions")
    assert not hasattr(second, "size") and second.closed == 0, "the engine was tried again"


def test_measure_engine_with_high_overhead_is_skipped() -> None:
    slow = Counting()
    slow.overhead = 5.0
    row = quiet(budget=Budget(overhead=1.0)).measure(slow, WORKLOAD, 200)
    assert row.note.startswith("only in full runs") and slow.batches == [0]
    assert quiet().measure(slow, WORKLOAD, 200).note == ""


def test_at_most_replaces_error_raised_by_interruption() -> None:
    with pytest.raises(TooLong, match="sleeping took more than 50 ms"), at_most(0.05, "sleeping"):
        try:
            time.sleep(5)
        except TooLong:
            raise RuntimeError("Query interrupted") from None
    with pytest.raises(RuntimeError, match="a fault"), at_most(5, "failing"):
        raise RuntimeError("a fault")


def test_at_most_inner_timer_restores_outer_timer() -> None:
    with pytest.raises(TooLong, match="outer"), at_most(0.2, "outer"):
        with at_most(10, "inner"):
            pass
        time.sleep(5)


def test_compared_rows_have_ratio_to_best_peer_and_limit() -> None:
    def row(engine: str, rate: float | None, role: str, size: int = 10) -> Row:
        return Row("w", size, engine, rate, None, None, None, role=role)  # type: ignore[arg-type]

    rows = [
        row("index", 50, "ours"),
        row("a", 10, "peer"),
        row("b", 5, "peer"),
        row("c", None, "peer"),
        row("limit", 100, "limit"),
        row("index", 50, "ours", 20),
    ]
    rows_compared = compared(rows)
    assert [each.ratio_to_best_peer for each in rows_compared] == [5, 1, 0.5, None, 10, None]
    assert [each.fraction_of_limit for each in rows_compared] == [0.5, 0.1, 0.05, None, 1, None]


def test_merged_later_run_replaces_measured_workloads_and_sizes() -> None:
    """With their peers, because ratios are of one run. Engines of Tidings that were not measured stay, with their
    ratios.
    """
    before = [
        *(Row(name, size, "e", 1.0, None, None, 0.0) for name, size in (("a", 1), ("a", 5), ("b", 5))),
        Row("a", 5, "f", 1.0, None, None, 0.0),
        Row("a", 5, "peer", 1.0, None, None, 0.0, role="peer"),
        Row("a", 5, "plan", 4.0, None, None, 0.0, ratio_to_best_peer=4.0),
    ]
    now = [
        Row("a", 5, "e", 3.0, None, None, 0.0),
        Row("a", 5, "f", 3.0, None, None, 0.0),
        Row("a", 5, "new peer", 2.0, None, None, 0.0, role="peer"),
    ]
    ratios = {
        (row.workload, row.subscriptions, row.engine): row.ratio_to_best_peer for row in merged(before, now)
    }
    assert ratios == {
        **{("a", 1, "e"): None, ("b", 5, "e"): None, ("a", 5, "plan"): 4.0},
        **{("a", 5, "e"): 1.5, ("a", 5, "f"): 1.5, ("a", 5, "new peer"): 1.0},
    }


def test_save_and_load_rows_round_trip(tmp_path: Path) -> None:
    rows = [
        quiet().measure(IndexEngine(), WORKLOAD, 200),
        Row("w", 1, "e", None, None, None, None, note="not available"),
    ]
    save(rows, tmp_path / "results" / "latest.json")
    assert load(tmp_path / "results" / "latest.json") == rows


def test_markdown_and_table_omit_empty_columns() -> None:
    rows = [
        Row("w", 1000, "e", 1234.5, None, None, 2.0),
        Row("w", 10, "f", None, None, None, None, note="no"),
    ]
    assert markdown(rows).splitlines() == [
        "| workload | subscriptions | engine | events / CPU s | matches / event | note |",
        "| --- | ---: | --- | ---: | ---: | --- |",
        "| w | 1,000 | e | 1,234 | 2.0 |  |",
        "| w | 10 | f |  |  | no |",
    ]
    assert table(rows).splitlines()[1] == "w                 1,000  e                1,234              2.0"


def test_duration_uses_fitting_unit() -> None:
    assert [duration(s) for s in (12.0, 0.0321, 4.2e-6, 5e-10)] == ["12 s", "32.1 ms", "4.2 µs", "0.5 ns"]
    assert cells(Row("w", 1000, "e", 1234.5, None, None, 2.0))[:4] == ("w", "1,000", "e", "1,234")


def test_goals_state_shortfall() -> None:
    def row(workload: str, fraction: float) -> Row:
        return Row(workload, 1_000_000, "index", 1.0, None, None, 1.0, fraction_of_limit=fraction)

    latency = Row("latency", 10, "index", 1.0, None, None, 1.0, p50_seconds=15e-6, p99_seconds=200e-6)
    report = goals([row("stock", 0.6), row("intervals", 0.4), latency])
    assert "stock, 1,000,000 subscriptions: fraction of the limit | at least 0.50 | 0.60 | met |" in report
    assert "| at least 0.50 | 0.40 | missed: 80% of it |" in report
    assert "half of the calls take | at most 20 µs | 15 µs | met |" in report
    assert "| at most 100 µs | 200 µs | missed: 50% of it |" in report


ECHO = """
import json, sys
for line in sys.stdin:
    words = line.rstrip("\\n").split("\\t")
    if words[0] == "leave":
        sys.exit(3)
    print(json.dumps({"error": "what?"} if words[0] == "wrong" else {"words": words}), flush=True)
"""


def test_child_answers_each_line_and_reports_errors() -> None:
    child = Child([sys.executable, "-c", ECHO])
    try:
        assert child.ask("load", Path("/a b"), 7) == {"words": ["load", "/a b", "7"]}
        with pytest.raises(ChildError, match="wrong: what"):
            child.ask("wrong")
        with pytest.raises(ChildError, match="ended with code 3"):
            child.ask("leave")
    finally:
        child.close()
