"""Every part of the benchmarks runs on sizes too small to time: engines agree, and rows are complete."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from benchmarks import (
    connectors,
    dataframes,
    documents,
    figures,
    graph_decoding,
    heart,
    paper003,
    paper004,
    pipeline,
    report,
)
from benchmarks.__main__ import PARTS, measure
from benchmarks.document_engines import Parsing
from benchmarks.engines import IndexEngine
from benchmarks.goals import goals
from benchmarks.harness import Bench
from benchmarks.peers.duckdb_join import DuckDB
from benchmarks.report import write_docs
from benchmarks.rows import RESULTS, Row, load
from benchmarks.scale import TINY
from benchmarks.workloads import Subscriptions, anthology
from benchmarks.workloads import stock as stock_workload
from benchmarks.workloads.stock_documents import stock_documents
from research.events.catalogue import ALGORITHMS
from tests.support.packages import Unavailable
from tests.support.servers.postgres import find_binaries
from tidings.relational.tables import Plan

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
SPARK = {
    "pipeline",
    "dataframes",
    "connectors",
    "joins",
    "joins-by-matches",
    "objects-on-spark",
    "service",
    "recovery",
}
"""Parts that start Spark, tested below; the last three in `test_objects.py` and `test_service.py`."""


SERVER = {"sink"}
"""Parts that need PostgreSQL."""


@pytest.mark.parametrize("part", [name for name in PARTS if name not in SPARK])
def test_benchmark_part_runs_and_reports(
    part: str, tmp_path: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if part in SERVER and find_binaries() is None:
        pytest.skip("no PostgreSQL")
    monkeypatch.setattr(anthology, "ARCHIVE", archive)
    bench = Bench(TINY.runs, lambda _: None, TINY.budget)
    PARTS[part](bench, TINY)
    rows = bench.finished()
    assert json.loads(json.dumps([asdict(row) for row in rows]))[0].keys() >= set(PROMISED)
    for row in rows:
        _check_row(row)
        _check_best_peer_has_ratio_one([r for r in rows if r.workload == row.workload])
    _check_docs_contain(rows, tmp_path)


def _check_row(row: Row) -> None:
    if row.events_per_cpu_second is None:
        assert row.note and row.role != "ours", "a row has figures or a reason"
    else:
        assert row.events_per_cpu_second > 0 and not row.note
        reads = row.engine == Parsing.name or row.workload.startswith(graph_decoding.NAME)
        assert (row.matches_per_event is None) == reads
        assert row.seconds_per_event == pytest.approx(1 / row.events_per_cpu_second)


def _check_best_peer_has_ratio_one(rows: list[Row]) -> None:
    sizes: dict[int, list[float]] = {}
    for row in rows:
        if row.role == "peer" and row.ratio_to_best_peer is not None:
            sizes.setdefault(row.subscriptions, []).append(row.ratio_to_best_peer)
    assert all(max(ratios) == 1.0 for ratios in sizes.values())


def _check_docs_contain(rows: list[Row], folder: Path) -> None:
    """Check that every row is in a table, and every figure in the page."""
    for name in ("performance.md", "algorithms.md"):
        shutil.copy(report.DOCS / name, folder)
    write_docs(rows, folder)
    page = (folder / "performance.md").read_text()
    assert all(f"| {row.workload} | {row.subscriptions:,} | {row.engine} |" in page for row in rows)
    assert all(f"img/{path.name}" in page for path in (folder / "img").iterdir())


def test_measure_one_part_keeps_goals_and_rows_of_others(tmp_path: Path) -> None:
    results = tmp_path / "latest.json"
    shutil.copy(RESULTS, results)
    rows = measure(
        Bench(TINY.runs, lambda _: None, TINY.budget), TINY, ["churn"], "make bench", False, results
    )
    assert rows == load(results)
    before, churns = load(), [row.workload.startswith("churn") for row in rows]
    others = [row for row in before if not row.workload.startswith("churn")]
    assert others and [row for row, churn in zip(rows, churns, strict=True) if not churn] == others
    assert any(churns)
    assert goals(before).splitlines() == goals(rows).splitlines()


def test_measure_fresh_discards_earlier_rows(tmp_path: Path) -> None:
    results = tmp_path / "latest.json"
    shutil.copy(RESULTS, results)
    bench = Bench(TINY.runs, lambda _: None, TINY.budget)
    rows = measure(bench, TINY, ["churn"], "make bench", True, results)
    assert rows == load(results) == bench.finished()


def test_draw_same_rows_gives_same_figure(tmp_path: Path) -> None:
    rows = [row for row in load() if row.workload == "ads"]
    for folder in ("once", "again"):
        figures.draw(rows, tmp_path / folder)
    (once,), (again,) = (list((tmp_path / folder).iterdir()) for folder in ("once", "again"))
    assert once.read_bytes() == again.read_bytes() and b"<svg" in once.read_bytes()


def test_peers_run_at_their_sizes_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Missing(DuckDB):
        name = "missing"

        def prepare(self, subscriptions: Subscriptions) -> None:
            raise Unavailable("no such thing")

        def close(self) -> None:
            pass

    monkeypatch.setattr(heart, "peers", lambda: [DuckDB(), Missing()])
    monkeypatch.setattr(heart, "joins", lambda: [DuckDB()])
    bench = Bench(TINY.runs, lambda _: None, TINY.budget)
    heart.run(heart.STOCK, bench, replace(TINY, sizes=(300, 400), skewed=(), peers=(400,)))
    rows = [(row.subscriptions, row.role, row.note) for row in bench.rows]
    assert rows == [
        (300, "ours", ""),
        (300, "limit", bench.rows[1].note),  # it has a note where there is no gcc
        (300, "peer", ""),
        (400, "ours", ""),
        (400, "limit", bench.rows[4].note),
        (400, "peer", ""),
        (400, "peer", "not available: no such thing"),
    ]
    assert bench.finished()[2].ratio_to_best_peer is not None


def test_documents_are_measured_by_step_and_against_lxml(archive: Path) -> None:
    bench = Bench(TINY.runs, lambda _: None)
    documents.against_lxml(bench, anthology.anthology(TINY.xpath_peers, archive))
    rows = {row.engine: row for row in bench.finished()}
    assert list(rows) == [
        "parsing alone (lxml)",
        "index",
        "index: decode",
        "index: match",
        "lxml, each XPath in turn",
        "lxml, compiled XPaths in turn",
    ]
    whole, *parts = (
        rows[name].seconds_per_event or 0 for name in ("index", documents.DECODE, documents.MATCH)
    )
    assert 0 < sum(parts) <= whole
    assert rows["index"].linear_paths and rows["index"].fraction_of_limit
    assert rows["index"].matches_per_event == rows["lxml, each XPath in turn"].matches_per_event != 0


def test_documents_without_archive_are_skipped_with_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages: list[str] = []
    monkeypatch.setattr(anthology, "ARCHIVE", tmp_path / "papers.tar.gz")
    bench = Bench(TINY.runs, messages.append)
    documents.real(bench, TINY)
    assert not bench.rows and "skipped: papers.tar.gz not found in" in messages[0]


def test_paper004_compares_all_algorithms() -> None:
    bench = Bench(TINY.runs, lambda _: None)
    paper004.more_subscriptions(bench, TINY)
    assert {row.engine for row in bench.rows} == {*ALGORITHMS, "index"}


def test_pipeline_plain_loop_agrees_with_columns(tmp_path: Path) -> None:
    workload = stock_workload(TINY.stock, TINY.job_events, name=pipeline.JOB)
    bench = Bench(TINY.runs, lambda _: None)
    bench.measure(IndexEngine(), workload, TINY.job_events)
    pipeline.one_core(bench, workload, pipeline.Files.write(workload, tmp_path))
    assert {row.engine.split(",")[0] for row in bench.rows[1:]} == {
        "decode",
        "match",
        "write",
        "decode + match",
    }


@pytest.mark.long
@pytest.mark.spark
def test_relational_plan_agrees_with_index() -> None:
    """One plan is enough here: the tests of plans show that all agree."""
    bench = Bench(TINY.runs, lambda _: None, TINY.budget)
    documents.by_joins(bench, [stock_documents(300, 20, 100.0, symbols=3)], [Plan.UNROLL])
    index, unroll = (row for row in bench.rows if row.engine in paper003.OURS)
    assert (index.engine, unroll.engine) == paper003.OURS[:2]
    assert index.matches_per_event == unroll.matches_per_event != 0
    assert unroll.events_per_second and unroll.bytes_per_subscription


def test_joins_by_matches_run_at_full_size_only() -> None:
    messages: list[str] = []
    documents.joins_by_matches(Bench(TINY.runs, messages.append), TINY)
    assert "with --full only" in messages[-1]


@pytest.mark.spark
@pytest.mark.long  # tests/spark compares the job with the definition
def test_spark_job_agrees_with_plain_loop() -> None:
    bench = Bench(TINY.runs, lambda _: None)
    pipeline.run(bench, TINY)
    job = bench.rows[-1]
    assert job.engine == "Spark job, local[2]"
    assert job.events_per_second is not None and job.events_per_second > 0
    assert {row.matches_per_event for row in bench.rows} == {job.matches_per_event}


@pytest.mark.spark
@pytest.mark.long  # tests/spark/connectors has the connectors, against the specification
def test_connectors_every_program_is_measured_or_says_what_is_missing(tmp_path: Path) -> None:
    bench = Bench(TINY.runs, lambda _: None)
    connectors.run(bench, TINY)
    rows = bench.finished()
    if rows[0].note.startswith("not available"):
        assert len(rows) == 1
    else:
        assert len({row.matches_per_event for row in rows}) == 1
        assert all(row.events_per_second for row in rows)
    _check_docs_contain(rows, tmp_path)


@pytest.mark.spark
@pytest.mark.long  # tests/spark/dataframe has each shape, against the specification
def test_dataframes_every_program_is_measured_and_finds_the_same(tmp_path: Path) -> None:
    bench = Bench(TINY.runs, lambda _: None)
    dataframes.run(bench, TINY)
    rows = bench.finished()
    programs = [row for row in rows if not row.engine.startswith("where per subscription")]
    assert len(programs) == len(rows) - 1
    for workload in {row.workload for row in programs}:
        assert len({row.matches_per_event for row in programs if row.workload == workload}) == 1
    grouped = [row.note for row in rows if row.engine.startswith(dataframes.GROUPED)]
    assert len(grouped) == 4 and all(note.endswith("MB, 0 bytes shuffled") for note in grouped)
    assert sum(row.workload.endswith("executors") for row in rows) == 2
    assert all(row.events_per_second for row in rows)
    _check_docs_contain(rows, tmp_path)
