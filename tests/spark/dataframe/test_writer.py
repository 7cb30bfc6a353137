"""`write_matches`: the rows of `match`, each once, and nothing visible of tasks and jobs that fail."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import TaskContext, cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.spark import workload
from tests.support.paths import ROOT
from tidings import Index, InputError, Subscription, compile_many
from tidings.matching.index.matches import Matches
from tidings.spark import Subscriptions, match, write_matches
from tidings.spark.batch.output import publish_result, working_folder
from tidings.spark.dataframe import writer
from tidings.spark.dataframe.match_stage import NUMBERS, BatchMatch, MatchStage
from tidings.spark.dataframe.writer import COLUMNS, WriteStage
from tidings.spark.sources.files import Location

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # tasks run the stages below

PROGRAM = ROOT / "tests/support/processes/write_program.py"
WANTED = workload.subscriptions(60)
NAMED = {f"e{number}": body for number, body in enumerate(workload.events(200))}
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
CHEAP = [Subscription("s", "ana", "predicates", "price < 5")]


@pytest.fixture
def events(session: SparkSession) -> DataFrame:
    rows = [(name, body.decode()) for name, body in NAMED.items()]
    return session.createDataFrame(rows, "id string, value string").repartition(3)


def list_result(folder: Path) -> list[tuple[str, str, str]]:
    table = pq.read_table(folder)
    assert table.column_names == list(COLUMNS)
    return sorted(zip(*table.to_pydict().values(), strict=True))


def list_all(folder: Path) -> list[str]:
    """List everything in a folder, also what readers ignore."""
    return sorted(path.name for path in folder.iterdir())


@dataclass(frozen=True)
class FailsOnce(WriteStage):
    """Writes everything and reports it; the first attempt of each task fails then."""

    def __call__(self, batches):
        yield from super().__call__(batches)
        if TaskContext.get().attemptNumber() == 0:
            raise RuntimeError("the report was on its way already")


def test_write_matches_has_rows_of_match_for_every_reader(session, events, tmp_path):
    out = tmp_path / "matches"
    written = write_matches(events, WANTED, out)
    match(events, WANTED).write.parquet(str(tmp_path / "by-spark"))
    expected = list_result(tmp_path / "by-spark")
    assert {row[:2] for row in expected} == workload.expected(NAMED, WANTED)
    assert list_result(out) == expected
    assert sorted(map(tuple, session.read.parquet(str(out)).collect())) == expected
    assert sorted(duckdb.sql(f"FROM '{out}/*.parquet'").fetchall()) == expected
    assert (written.publications, written.matches, written.rejects) == (200, len(expected), 0)
    assert (out / "_SUCCESS").exists()
    assert list_all(tmp_path) == ["by-spark", "matches"]


@pytest.mark.parametrize("groups", [2, 4, 8])
def test_write_matches_groups_write_each_match_once(session, events, tmp_path, groups):
    index = Index.create()
    for first in range(8):
        index.add(compile_many(WANTED[first::8]))
    bad = session.createDataFrame([("bad", "{price")], "id string, value string")
    written = write_matches(events.union(bad), index, tmp_path / "out", groups=groups)
    rows = list_result(tmp_path / "out")
    assert {row[:2] for row in rows} == workload.expected(NAMED, WANTED)
    assert (written.publications, written.matches, written.rejects) == (201, len(rows), 1)


def test_write_matches_retried_tasks_count_once(tmp_path):
    """A master of its own: `local[2]` gives up at the first failure of a task."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), "retry", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env=ENVIRONMENT,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    summary = json.loads(done.stdout.splitlines()[-1])
    rows = list_result(tmp_path / "matches")
    assert summary["files"] == 6, "the tasks have not written twice"
    assert {row[:2] for row in rows} == workload.expected(NAMED, WANTED)
    assert summary["matches"] == len(rows) == len(set(rows))
    assert list_all(tmp_path) == ["matches"]


def test_write_stage_that_runs_twice_shows_the_reported_files_only(session, tmp_path):
    """As with speculation: both attempts of a task write all matches, and Spark takes one of the reports."""
    compiled = Subscriptions.compile(WANTED)
    stage = MatchStage(compiled.environment(session), "application/json", "id", NUMBERS)
    batch = pa.RecordBatch.from_pydict({"publication": list(NAMED), "body": list(NAMED.values())})
    out = Location.of(tmp_path / "matches")
    with working_folder(out) as work:
        [[winner], _] = [list(WriteStage(stage, work.uri)([batch])) for _ in range(2)]
        assert len(work.inside()) == 2
        report = writer.ChunkReport(**json.loads(winner.column("report")[0].as_py()))
        publish_result(work, out, [report], False, COLUMNS)
    rows = list_result(tmp_path / "matches")
    assert {row[:2] for row in rows} == workload.expected(NAMED, WANTED)
    assert len(rows) == len(set(rows)) == report.matches
    assert list_all(tmp_path) == ["matches"]


def test_write_matches_driver_killed_before_commit_leaves_no_result(tmp_path):
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), "wait", str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    assert process.stdout is not None
    try:
        line = next((line for line in process.stdout if line.startswith("written:")), "")
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait(30)
    assert int(line.removeprefix("written:")) > 0, "no task had written when the driver was killed"
    assert not (tmp_path / "matches").exists()
    [left] = list_all(tmp_path)
    assert re.fullmatch(r"\.matches-[0-9a-f]{8}", left), "readers of the parent would see it"


def test_write_matches_failed_job_leaves_nothing(session, events, tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "WriteStage", FailsOnce)
    with pytest.raises(PySparkException, match="the report was on its way already"):
        write_matches(events, WANTED, tmp_path / "matches")
    assert list_all(tmp_path) == []


def test_write_matches_existing_result_needs_overwrite(session, events, tmp_path):
    write_matches(events, WANTED, tmp_path / "out")
    first = list_all(tmp_path / "out")
    with pytest.raises(InputError, match=r'overwrite existing files.*use mode="overwrite"'):
        write_matches(events, CHEAP, tmp_path / "out")
    assert list_all(tmp_path / "out") == first
    write_matches(events, CHEAP, tmp_path / "out", mode="overwrite")
    assert {row[:2] for row in list_result(tmp_path / "out")} == workload.expected(NAMED, CHEAP)


def test_write_matches_failed_overwrite_keeps_earlier_result(session, events, tmp_path, monkeypatch):
    write_matches(events, WANTED, tmp_path / "out")
    before = list_result(tmp_path / "out")
    monkeypatch.setattr(writer, "WriteStage", FailsOnce)
    with pytest.raises(PySparkException):
        write_matches(events, CHEAP, tmp_path / "out", mode="overwrite")
    assert list_result(tmp_path / "out") == before


def test_write_matches_foreign_files_are_not_replaced(session, events, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="overwrite existing files"):
        write_matches(events, CHEAP, tmp_path, mode="overwrite")
    assert list_all(tmp_path) == ["thesis.txt"]


def test_write_matches_onto_its_own_input_is_rejected(session, events, tmp_path):
    events.write.parquet(str(tmp_path / "events"))
    read = session.read.parquet(str(tmp_path / "events"))
    with pytest.raises(InputError, match="result and its input would be in the same place"):
        write_matches(read, CHEAP, tmp_path / "events", mode="overwrite")
    assert session.read.parquet(str(tmp_path / "events")).count() == 200


def test_write_matches_uri_with_space_and_no_match_writes_empty_table(session, events, tmp_path):
    out = tmp_path / "no matches"
    written = write_matches(events, [Subscription("s", "ana", "predicates", "price = -1")], out.as_uri())
    assert (written.publications, written.matches) == (200, 0)
    assert session.read.parquet(str(out)).columns == list(COLUMNS)
    assert list_result(out) == []


def test_write_matches_counts_and_lists_rejects(session, tmp_path):
    rows = [("good", '{"price": 3}'), ("bad", "{price"), ("null", None)]
    frame = session.createDataFrame(rows, "id string, value string")
    wrong = Subscription("wrong", "ana", "predicates", "price <")
    written = write_matches(frame, [*CHEAP, wrong], tmp_path / "out", rejects=tmp_path / "rejects.jsonl")
    assert (written.publications, written.matches) == (3, 1)
    assert (written.rejects, written.rejected_subscriptions) == (2, 1)
    assert sorted(reject.id for reject in written.examples) == ["bad", "null", "wrong"]
    lines = list(map(json.loads, (tmp_path / "rejects.jsonl").read_text().splitlines()))
    reasons = {line["id"]: line["reason"] for line in lines if line["what"] == "publication"}
    spark_reasons = {row.publication: row.reason for row in match(frame, CHEAP).rejects.collect()}
    assert reasons == spark_reasons != {}


def test_write_matches_on_error_fail_names_publication_and_leaves_nothing(session, tmp_path):
    frame = session.createDataFrame([("bad", "{price")], "id string, value string")
    with pytest.raises(PySparkException, match="publication bad"):
        write_matches(frame, CHEAP, tmp_path / "out", on_error="fail")
    assert list_all(tmp_path) == []


def test_write_matches_typed_columns_and_documents_agree_with_match(session, tmp_path):
    typed = session.createDataFrame([("o1", 3.0), ("o2", 9.0), (None, 1.0)], "order string, price double")
    trig = "<urn:g1> { <urn:a> <urn:p> <urn:b> } <urn:g2> { <urn:c> <urn:p> <urn:d> }"
    graphs = session.createDataFrame([("days", trig)], "id string, body string")
    pattern = [Subscription("g", "ana", "gql", "SELECT ?x WHERE (?x, <urn:p>, ?y)")]
    cases = [
        (typed, CHEAP, {"id": "order"}),
        (typed, CHEAP, {}),
        (graphs, pattern, {"value": "body", "format": "application/trig"}),
    ]
    for number, (frame, subscriptions, options) in enumerate(cases):
        write_matches(frame, subscriptions, tmp_path / str(number), **options)
        expected = sorted(map(tuple, match(frame, subscriptions, **options).collect()))
        assert list_result(tmp_path / str(number)) == expected != []


def test_write_stage_undecided_pairs_are_decided(session, tmp_path, monkeypatch):
    """The kernel leaves a pair undecided when its search is too long; here it leaves all of them."""
    compiled = Subscriptions.compile(WANTED)
    stage = MatchStage(compiled.environment(session), "application/json", "id", NUMBERS)
    batch = pa.RecordBatch.from_pydict({"publication": list(NAMED), "body": list(NAMED.values())})

    def undecided(decoded, media_type, index) -> Iterator[Matches]:
        for first, matches in index.match_parts(decoded.atoms):
            yield Matches([], matches.shift(first)._pairs)

    monkeypatch.setattr("tidings.spark.dataframe.match_stage.match_decoded", undecided)
    [report] = WriteStage(stage, tmp_path.as_uri())([batch])
    rows = list_result(tmp_path)
    assert {row[:2] for row in rows} == workload.expected(NAMED, WANTED)
    assert json.loads(report.column("report")[0].as_py())["matches"] == len(rows)


def test_numbered_pairs_do_not_keep_the_batch_in_memory(session):
    """A file waits for the end of its row group; the bodies of all its publications may be larger than memory."""
    compiled = Subscriptions.compile(WANTED)
    stage = MatchStage(compiled.environment(session), "application/json", "id", NUMBERS)
    index, decoder = stage.environment.open("id")
    before = pa.total_allocated_bytes()
    bodies = [json.dumps({"price": 3, "text": "long " * 10_000}).encode()] * 100
    batch = pa.RecordBatch.from_pydict({"publication": list(NAMED)[:100], "body": bodies})
    assert pa.total_allocated_bytes() - before > 5_000_000
    pairs = list(BatchMatch(stage, index, decoder, batch).run_numbered())
    del batch
    assert len(pairs) == 1 and len(pairs[0].publications) > 0
    assert pa.total_allocated_bytes() - before < 500_000


def test_write_matches_stream_is_rejected(session, tmp_path):
    (tmp_path / "in").mkdir()
    with pytest.raises(InputError, match="this DataFrame is a stream"):
        write_matches(session.readStream.text(str(tmp_path / "in")), CHEAP, tmp_path / "out")


@pytest.mark.parametrize("options", [{"mode": "append"}, {"on_error": "drop"}])
def test_write_matches_unknown_option_is_rejected(events, tmp_path, options):
    with pytest.raises(InputError, match="unknown value"):
        write_matches(events, CHEAP, tmp_path / "out", **options)
