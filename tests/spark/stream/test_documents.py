"""Tasks with documents and events: decoding, matching and explanation in order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tidings.matching.compiler.compilation import compile_many
from tidings.matching.index.index import Index
from tidings.model import Subscription
from tidings.spark.batch import batch_task
from tidings.spark.sources.chunks import ChunkList, plan_chunks
from tidings.spark.sources.files import Location
from tidings.spark.sources.position_reader import JOURNAL_SCHEMA
from tidings.spark.stream.match_output import DEAD_LETTERS, MATCHES
from tidings.spark.stream.match_task import MatchJob, build_match_stage

JSON, XML = "application/json", "application/xml"
SUBSCRIPTIONS = [
    Subscription("event", "ana", "predicates", "price > 50"),
    Subscription("none", "ana", "predicates", "not exists price"),
    Subscription("path", "ana", "xpath", '//stock[symbol = "YHOO" and price > 50]'),
    Subscription("negative", "ana", "xpath", "not(//closed)"),
]
QUOTE = "<quotes><stock><symbol>{}</symbol><price>{}</price></stock></quotes>"


def make_index(folder: Path) -> Index:
    index = Index.create(folder / "segments")
    for subscription in SUBSCRIPTIONS:
        index.add(compile_many([subscription]))
    return index


def run_match_task(folder: Path, publications: list[tuple[str, bytes | None]]) -> tuple[list[Any], list[Any]]:
    """Run a match task and return the rows of matches and of dead letters."""
    index = make_index(folder)
    rows = [
        (position, f"p{position}", f"p{position}", media_type, body, None if body is not None else "gone")
        for position, (media_type, body) in enumerate(publications, start=1)
    ]
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, JOURNAL_SCHEMA, strict=True)]
    job = MatchJob(str(index.folder), index.version, None, "id", str(folder), True)
    [report] = build_match_stage(job)([pa.RecordBatch.from_arrays(arrays, schema=JOURNAL_SCHEMA)])
    fields = json.loads(report["report"][0].as_py())
    return tuple(  # type: ignore[return-value]
        pa.ipc.open_stream(pa.OSFile(f"{fields['output']}-{kind}")).read_all().to_pylist() if count else []
        for kind, count in ((MATCHES, fields["found"]), (DEAD_LETTERS, fields["dead"]))
    )


def test_match_task_events_and_documents_keep_order(tmp_path: Path) -> None:
    matches, dead = run_match_task(
        tmp_path,
        [
            (XML, QUOTE.format("YHOO", 70.2).encode()),
            (JSON, b'{"price": 60}'),
            (XML, QUOTE.format("IBM", 70.2).encode()),
            (JSON, b'{"title": "clock"}'),
            ("text/xml", b"<quotes><closed/></quotes>"),
            (XML, QUOTE.format("YHOO", 51).encode()),
        ],
    )
    assert dead == []
    assert [
        (row["publication"], row["subscription"]) for row in matches if row["subscription"] != "negative"
    ] == [
        ("p1", "path"),
        ("p2", "event"),
        ("p4", "none"),
        ("p6", "path"),
    ]
    assert [row["publication"] for row in matches if row["subscription"] == "negative"] == ["p1", "p3", "p6"]
    because = json.loads(next(row["because"] for row in matches if row["subscription"] == "path"))
    assert because == [
        ['symbol = "YHOO"', "YHOO", "/quotes[1]/stock[1]/symbol[1]"],
        ["price > 50", "70.2", "/quotes[1]/stock[1]/price[1]"],
    ]


def test_match_task_bad_documents_are_dead_letters_and_others_match(tmp_path: Path) -> None:
    bomb = b'<!DOCTYPE a [<!ENTITY x "ha"><!ENTITY y "&x;&x;">]><a>&y;</a>'
    matches, dead = run_match_task(
        tmp_path,
        [
            (XML, b"<a><b></a>"),
            (XML, bomb),
            (XML, b"<a>" * 300 + b"</a>" * 300),
            (XML, QUOTE.format("YHOO", 99).encode()),
            (XML, None),
        ],
    )
    assert [row["publication"] for row in matches] == ["p4", "p4"]
    assert [(row["publication"], row["position"]) for row in dead] == [
        ("p1", 1),
        ("p2", 2),
        ("p3", 3),
        ("p5", 5),
    ]
    reasons = [row["reason"] for row in dead]
    assert "not well-formed" in reasons[0] and "DOCTYPE" in reasons[1] and "200" in reasons[2]
    assert reasons[3] == "gone (p5)" and dead[1]["body"] == bomb


def test_batch_task_events_and_documents_in_one_folder_match(tmp_path: Path) -> None:
    index, inbox, results = make_index(tmp_path), tmp_path / "in", tmp_path / "out"
    inbox.mkdir()
    results.mkdir()
    (inbox / "a.xml").write_text(QUOTE.format("YHOO", 70))
    (inbox / "b.json").write_text('{"price": 70}')
    (inbox / "c.XML").write_text(QUOTE.format("YHOO", 40))
    (inbox / "d.xml").write_text("<a>")
    job = batch_task.BatchTaskJob(
        Location.of(inbox).uri,
        Location.of(results).uri,
        ChunkList("", ()),
        str(index.folder),
        index.version,
        "id",
        None,
    )
    reports = [batch_task.match_chunk(job, number, chunk) for number, chunk in enumerate(plan_chunks(inbox))]
    tables = [pq.read_table(results / report.matches_file) for report in reports if report.matches_file]
    pairs = {(row["publication"], row["subscription"]) for table in tables for row in table.to_pylist()}
    assert pairs == {
        ("a.xml", "path"),
        ("a.xml", "negative"),
        ("b.json", "event"),
        ("c.XML", "negative"),
    }
    assert sum(report.rejects for report in reports) == 1 and sum(report.events for report in reports) == 4
