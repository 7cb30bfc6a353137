"""The relational batch job: same results as the index job."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

from tests.relational import corpus
from tidings.reference_data.declarations import declare
from tidings.relational.job import run
from tidings.relational.tables import Layout, Plan
from tidings.spark.batch.job import BatchRequest, IndexBuilt

pytestmark = pytest.mark.spark


def write_subscriptions(path, texts):
    rows = [{"id": id, "subscriber": "ana", "language": "xpath", "text": text} for id, text in texts.items()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_run_matches_files_as_specification(session, tmp_path):
    bodies, texts = corpus.draw_quotes(20, 30, 5)
    folder = tmp_path / "documents"
    (folder / "deep").mkdir(parents=True)
    named = {
        f"deep/{name}.xml" if n % 2 else f"{name}.xml": body for n, (name, body) in enumerate(bodies.items())
    }
    for name, body in named.items():
        (folder / name).write_bytes(body)
    write_subscriptions(tmp_path / "subs.jsonl", texts)
    progress = []
    out = tmp_path / "mätches #1 %20"
    summary = run(
        session, BatchRequest(tmp_path / "subs.jsonl", folder, out), Layout(Plan.UNROLL), progress.append
    )
    rows = pq.read_table(out)
    assert rows.column_names == ["publication", "subscription"]
    pairs = [(row["publication"], row["subscription"]) for row in rows.to_pylist()]
    assert set(pairs) == corpus.expected_pairs(named, texts)
    assert len(pairs) == len(set(pairs)) == summary.matches > 0
    assert (summary.events, summary.rejects) == (20, 0)
    assert isinstance(progress[0], IndexBuilt) and progress[0].subscriptions == 30
    assert sorted(path.name for path in tmp_path.iterdir()) == ["documents", out.name, "subs.jsonl"]
    assert (out / "_SUCCESS").exists()


def test_run_reference_tables_are_joined_and_rejects_listed(session, tmp_path):
    """Documents are joined with reference tables first; invalid documents and subscriptions are listed as rejects."""
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "a.xml").write_bytes(b"<stock><symbol>YHOO</symbol><b>1</b></stock>")
    (folder / "b.xml").write_bytes(b"<stock><symbol>ACME</symbol></stock>")
    (folder / "bad.xml").write_bytes(b"<a><b>1</a>")
    (folder / "event.json").write_bytes(b'{"symbol": "YHOO"}')
    (tmp_path / "sectors.csv").write_text("symbol,sector\nYHOO,web\nACME,anvils\n")
    paths = {"one": "//b = 1", "web": "//ref//sector = 'web'", "others": "not(//ref//sector = 'web')"}
    write_subscriptions(tmp_path / "subs.jsonl", paths | {"second": "//b[2]"})
    with (tmp_path / "subs.jsonl").open("a") as file:
        file.write('{"id": "price", "subscriber": "bob", "text": "price < 5"}\nnot json\n')
    sectors = declare("sectors", str(tmp_path / "sectors.csv"), "symbol", "/stock/symbol")
    rejects = tmp_path / "rejects.jsonl"
    request = BatchRequest(tmp_path / "subs.jsonl", folder, tmp_path / "out", rejects, references=(sectors,))
    summary = run(session, request, Layout(Plan.SHARE))
    listed = [(each["what"], each["id"]) for each in map(json.loads, rejects.read_text().splitlines())]
    assert listed[:3] == [
        ("subscription", "subs.jsonl:6"),
        ("subscription", "price"),
        ("subscription", "second"),
    ]
    assert sorted(listed[3:]) == [("publication", "bad.xml"), ("publication", "event.json")]
    assert (summary.rejected_subscriptions, summary.rejected_publications) == (3, 2)
    assert sorted(reject.id for reject in summary.examples) == sorted(id for _, id in listed)
    pairs = {(row["publication"], row["subscription"]) for row in pq.read_table(tmp_path / "out").to_pylist()}
    assert pairs == {("a.xml", "one"), ("a.xml", "web"), ("b.xml", "others")}


def test_run_without_matches_writes_empty_table(session, tmp_path):
    (tmp_path / "d.xml").write_bytes(b"<a/>")
    write_subscriptions(tmp_path / "subs.jsonl", {"s1": "//b"})
    out = tmp_path / "out"
    summary = run(
        session, BatchRequest(tmp_path / "subs.jsonl", tmp_path / "d.xml", out), Layout(Plan.SHARE_BUCKET)
    )
    assert (summary.matches, pq.read_table(out).column_names) == (0, ["publication", "subscription"])
