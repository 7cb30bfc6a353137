"""The benchmarks run, on sizes too small to time: every engine finds the same, and the rows are as promised."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from benchmarks import paper004, pipeline, stock
from benchmarks.engines import IndexEngine, PlainEngine, TextEngine
from benchmarks.harness import Bench, Disagreement
from benchmarks.report import goals
from benchmarks.rows import Row, cells, duration, load, markdown, save, table
from benchmarks.scale import TINY, Scale
from benchmarks.workloads import Workload
from benchmarks.workloads import paper004 as paper_workload
from benchmarks.workloads import stock as stock_workload
from tidings.atoms import Atoms
from tidings.compiler.plan import Relation
from tidings.matching.algorithms.catalogue import ALGORITHMS
from tidings.publications.event import decode

PROMISED = (
    "workload",
    "subscriptions",
    "engine",
    "events_per_cpu_second",
    "build_seconds",
    "bytes_per_subscription",
    "matches_per_event",
    "ratio_to_best_peer",
    "fraction_of_limit",
)
RUNS: dict[str, Callable[[Bench, Scale], None]] = {"paper004": paper004.run, "stock": stock.run}


@pytest.fixture(scope="module", params=RUNS)
def rows(request: pytest.FixtureRequest) -> list[Row]:
    bench = Bench(TINY.runs, say=lambda _: None)
    RUNS[request.param](bench, TINY)
    return bench.finished()


def test_every_row_has_what_was_promised(rows: list[Row]) -> None:
    assert set(PROMISED) <= {each.name for each in fields(Row)}
    for row in rows:
        assert row.note == "" and row.events_per_cpu_second is not None and row.events_per_cpu_second > 0
        assert row.seconds_per_event == pytest.approx(1 / row.events_per_cpu_second)
        assert row.bytes_per_subscription is not None and row.bytes_per_subscription > 0


def test_the_best_peer_has_the_ratio_one(rows: list[Row]) -> None:
    for row in rows:
        group = [r for r in rows if (r.workload, r.subscriptions) == (row.workload, row.subscriptions)]
        ratios = [r.ratio_to_best_peer for r in group if r.role == "peer"]
        assert max(ratios, default=1.0) == 1.0


def test_rows_survive_being_saved(rows: list[Row], tmp_path: Path) -> None:
    save(rows, tmp_path / "results" / "latest.json")
    assert load(tmp_path / "results" / "latest.json") == rows
    assert set(PROMISED) <= json.loads((tmp_path / "results" / "latest.json").read_text())[0].keys()


def test_tables_have_a_line_for_each_row(rows: list[Row]) -> None:
    assert len(table(rows).splitlines()) == len(rows) + 1
    assert len(markdown(rows).splitlines()) == len(rows) + 2
    assert all(row.engine in line for row, line in zip(rows, table(rows).splitlines()[1:], strict=True))
    assert "wanted" in goals(rows)


def test_all_algorithms_are_compared() -> None:
    bench = Bench(TINY.runs, say=lambda _: None)
    paper004.more_subscriptions(bench, TINY)
    assert {row.engine for row in bench.rows} == {*ALGORITHMS, "index"}


def test_the_plain_loop_of_the_pipeline_finds_what_matching_columns_finds() -> None:
    workload = stock_workload(TINY.stock, TINY.job_events, name=pipeline.JOB)
    bench = Bench(TINY.runs, say=lambda _: None)
    bench.measure(IndexEngine(), workload, TINY.job_events)
    assert pipeline.plain_loop(bench, workload, workload.events.json_lines()) > 0


@pytest.mark.spark
def test_the_job_on_spark_finds_what_the_plain_loop_finds() -> None:
    bench = Bench(TINY.runs, say=lambda _: None)
    pipeline.run(bench, TINY)
    job = bench.rows[-1]
    assert job.engine == "Spark job, local[2]"
    assert job.events_per_second is not None and job.events_per_second > 0
    assert {row.matches_per_event for row in bench.rows} == {job.matches_per_event}


def test_engines_that_disagree_are_reported_instead_of_timed() -> None:
    class Forgetful(IndexEngine):
        name = "forgetful"

        def counts(self, answer: object) -> np.ndarray:
            return np.zeros(self._atoms.count, np.int64)

    bench = Bench(TINY.runs, say=lambda _: None)
    workload = paper_workload(500, TINY.index_events)
    bench.measure(IndexEngine(), workload, TINY.index_events)
    with pytest.raises(Disagreement, match="forgetful found 0 matches, index found"):
        bench.measure(Forgetful(), workload, TINY.index_events)


@pytest.mark.parametrize("workload", [paper_workload(300, 40), stock_workload(300, 40)], ids=lambda w: w.name)
class TestWorkloads:
    def test_columns_texts_and_plans_say_the_same(self, workload: Workload) -> None:
        answers = []
        for engine in (IndexEngine(), TextEngine(), PlainEngine("naive", ALGORITHMS["naive"])):
            engine.prepare(workload.subscriptions)
            engine.build()
            engine.give(workload.events)
            answers.append(engine.counts(engine.match()).tolist())
        assert answers[0] == answers[1] == answers[2]

    def test_atoms_dictionaries_and_json_say_the_same(self, workload: Workload) -> None:
        events = workload.events.readable()
        decoded = [decode(line) for line in workload.events.json_lines().splitlines()]
        assert [{p: list(v) for p, v in e.items() if p != "id"} for e in decoded] == [
            {path: list(values) for path, values in event.items()} for event in events
        ]
        atoms, expected = workload.events.atoms, Atoms.of(events, workload.events.atoms.paths)
        assert _readable(atoms) == _readable(expected)

    def test_the_same_seed_gives_the_same_workload(self, workload: Workload) -> None:
        again = (paper_workload if workload.name.startswith("paper") else stock_workload)(300, 40)
        assert np.array_equal(again.subscriptions.low, workload.subscriptions.low)
        assert np.array_equal(again.events.value, workload.events.value)


def _readable(atoms: Atoms) -> list[tuple[int, int, object]]:
    text = atoms.text.tobytes()
    columns = zip(
        atoms.path.tolist(), atoms.kind.tolist(), atoms.payload.tolist(), atoms.length.tolist(), strict=True
    )
    return [(path, kind, text[at : at + length] if length else at) for path, kind, at, length in columns]


def test_no_subscription_of_the_paper_is_without_predicates() -> None:
    asked = paper_workload(5000, 1, p=0.25).subscriptions
    assert np.diff(asked.starts).min() == 1
    numeric = asked.attribute >= 3
    assert (asked.relation[numeric] == Relation.EQ).mean() == pytest.approx(0.25, abs=0.03)
    assert set(asked.relation[~numeric].tolist()) == {Relation.EQ}


def test_an_easier_stock_workload_has_more_matches() -> None:
    found = []
    for ease in (0.0, stock.EASE):
        bench = Bench(1, say=lambda _: None)
        found.append(
            bench.measure(IndexEngine(), stock_workload(20_000, 500, ease=ease), 500).matches_per_event
        )
    assert found[1] > 5 * found[0]


def test_durations_read_well() -> None:
    assert [duration(s) for s in (12.0, 0.0321, 4.2e-6, 5e-10)] == ["12 s", "32.1 ms", "4.2 µs", "0.5 ns"]
    row = Row("w", 1000, "e", 1234.5, None, None, 2.0, seconds_per_event=1 / 1234.5)
    assert cells(row)[:4] == ("w", "1,000", "e", "1,234")
