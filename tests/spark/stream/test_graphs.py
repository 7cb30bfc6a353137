"""Tasks with graphs, events and documents: decoding, matching, reasons and bindings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tidings.graphs.taxonomy_files import taxonomy_in, write_taxonomy
from tidings.matching.compiler.compilation import compile_many
from tidings.matching.index.index import Index
from tidings.model import Subscription
from tidings.spark.batch import batch_task
from tidings.spark.sources.chunks import ChunkList, plan_chunks
from tidings.spark.sources.files import Location
from tidings.spark.sources.position_reader import JOURNAL_SCHEMA
from tidings.spark.stream.match_output import DEAD_LETTERS, MATCHES
from tidings.spark.stream.match_task import MatchJob, build_match_stage

TURTLE, XML, JSON = "text/turtle", "application/xml", "application/json"
PREFIX = "PREFIX ex: <http://example.org/> "
SUBSCRIPTIONS = [
    Subscription("event", "ana", "predicates", "price > 50"),
    Subscription("path", "ana", "xpath", "//price > 50"),
    Subscription("recent", "ana", "gql", "SELECT ?page WHERE (?page, dc:date, ?d) AND ?d >= 2004"),
    Subscription(
        "class", "bo", "gql", PREFIX + "SELECT * WHERE (?page, dc:subject, ?s) AND ?s <= ex:Academia"
    ),
]
TAXONOMY = b"""@prefix ex: <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
ex:Lab rdfs:subClassOf ex:Academia . ex:topss a ex:Lab ."""
DC = "http://purl.org/dc/elements/1.1/"
PAGE = f"<http://example.org/{{0}}> <{DC}date> {{1}} ; <{DC}subject> <http://example.org/{{2}}> ."


def run_match_task(
    folder: Path, publications: list[tuple[str, bytes]], taxonomy: bytes = TAXONOMY
) -> tuple[list[Any], list[Any]]:
    """Run a match task and return the rows of matches and of dead letters."""
    index = Index.create(folder / "segments")
    for subscription in SUBSCRIPTIONS:
        index.add(compile_many([subscription]))
    rows = [
        (position, f"p{position}", f"p{position}", media_type, body, None)
        for position, (media_type, body) in enumerate(publications, start=1)
    ]
    arrays = [
        pa.array(column, field.type)
        for column, field in zip(zip(*rows, strict=True), JOURNAL_SCHEMA, strict=True)
    ]
    taxonomy_file = write_taxonomy(folder / "taxonomies", taxonomy_in(taxonomy, TURTLE))
    job = MatchJob(str(index.folder), index.version, None, "id", str(folder), True, taxonomy=taxonomy_file)
    [report] = build_match_stage(job)([pa.RecordBatch.from_arrays(arrays, schema=JOURNAL_SCHEMA)])
    fields = json.loads(report["report"][0].as_py())
    return tuple(  # type: ignore[return-value]
        pa.ipc.open_stream(pa.OSFile(f"{fields['output']}-{kind}")).read_all().to_pylist() if count else []
        for kind, count in ((MATCHES, fields["found"]), (DEAD_LETTERS, fields["dead"]))
    )


def test_match_task_all_kinds_keep_order(tmp_path: Path) -> None:
    matches, dead = run_match_task(
        tmp_path,
        [
            (TURTLE, PAGE.format("one", 2005, "topss").encode()),
            (JSON, b'{"price": 60}'),
            (XML, b"<lot><price>70</price></lot>"),
            (TURTLE, PAGE.format("two", 2003, "Academia").encode()),
            ("application/n-triples", b"<urn:a> <urn:b> <urn:c> .\n"),
        ],
    )
    assert dead == []
    assert sorted((row["publication"], row["subscription"]) for row in matches) == [
        ("p1", "class"), ("p1", "recent"), ("p2", "event"), ("p3", "path"), ("p4", "class"),
    ]  # fmt: skip
    assert [row["publication"] for row in matches] == sorted(row["publication"] for row in matches)


def test_match_task_graph_matches_have_reasons_and_bindings(tmp_path: Path) -> None:
    matches, _ = run_match_task(tmp_path, [(TURTLE, PAGE.format("one", 2005, "topss").encode())])
    recent = next(row for row in matches if row["subscription"] == "recent")
    assert json.loads(recent["bindings"]) == {
        "head": {"vars": ["page"]},
        "results": {"bindings": [{"page": {"type": "uri", "value": "http://example.org/one"}}]},
    }
    reasons = json.loads(recent["because"])
    assert [reason[0] for reason in reasons] == ["(?page, dc:date, ?d)", "?d >= 2004"]
    assert reasons[1][1:] == [2005, "http://example.org/one"]


def test_match_task_without_taxonomy_ignores_subclasses(tmp_path: Path) -> None:
    matches, _ = run_match_task(tmp_path, [(TURTLE, PAGE.format("one", 2005, "topss").encode())], b"")
    assert [row["subscription"] for row in matches] == ["recent"]


def test_match_task_bad_graphs_are_dead_letters_and_others_match(tmp_path: Path) -> None:
    bomb = b'<!DOCTYPE a [<!ENTITY x "ha">]><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">&x;</rdf:RDF>'
    matches, dead = run_match_task(
        tmp_path,
        [
            (TURTLE, b"<urn:a> <urn:b> ."),
            ("application/rdf+xml", bomb),
            ("application/rss+xml", b"<rss/>"),
            (TURTLE, PAGE.format("one", 2005, "x").encode()),
        ],
    )
    assert [row["publication"] for row in matches] == ["p4"]
    assert sorted(row["publication"] for row in dead) == ["p1", "p2", "p3"]


def run_batch_task(
    tmp_path: Path, files: dict[str, str], *more: Subscription
) -> tuple[list[tuple[str, str]], list[Any], int]:
    """Run tasks of a batch job on files and return pairs, rejects and the number of publications."""
    index = Index.create(tmp_path / "segments")
    index.add(compile_many([*SUBSCRIPTIONS, *more]))
    pages = tmp_path / "pages"
    pages.mkdir()
    for name, text in files.items():
        (pages / name).write_text(text)
    taxonomy = write_taxonomy(tmp_path / "taxonomies", taxonomy_in(TAXONOMY, TURTLE))
    place, out = Location.of(pages), Location.of(tmp_path)
    job = batch_task.BatchTaskJob(
        place.uri, out.uri, ChunkList("", ()), str(index.folder), index.version, "id", None, (), taxonomy
    )
    reports = [batch_task.match_chunk(job, number, chunk) for number, chunk in enumerate(plan_chunks(pages))]
    rows = [
        (row["publication"], row["subscription"])
        for report in reports
        if report.matches_file
        for row in pq.read_table(tmp_path / report.matches_file).to_pylist()
    ]
    rejects = [
        json.loads(line)
        for report in reports
        if report.rejects_file
        for line in (tmp_path / report.rejects_file).read_text().splitlines()
    ]
    return sorted(rows), rejects, sum(report.events for report in reports)


def test_batch_task_matches_graph_files(tmp_path: Path) -> None:
    files = {
        "one.ttl": PAGE.format("one", 2005, "topss"),
        "two.nt": '<urn:a> <http://purl.org/dc/elements/1.1/date> "2005" .\n',
        "lots.jsonl": '{"id": "lot", "price": 60}\n',
    }
    rows, rejects, events = run_batch_task(tmp_path, files)
    assert rows == [("lot", "event"), ("one.ttl", "class"), ("one.ttl", "recent")]
    assert (rejects, events) == ([], 3)


def rss(*years: int) -> str:
    items = (
        f"<item><link>http://e.org/{y}</link><pubDate>1 May {y} 12:00 GMT</pubDate></item>" for y in years
    )
    return f'<rss version="2.0"><channel><title>News</title>{"".join(items)}</channel></rss>'


JSON_LD = '{"@id": "urn:%s", "@graph": [{"@id": "urn:x", "http://purl.org/dc/elements/1.1/date": %d}]}'


def test_batch_task_splits_files_with_several_publications(tmp_path: Path) -> None:
    """Files whose second graph or item matches, files without a match, and empty files."""
    files = {
        "days.trig": f"<urn:a> {{ {PAGE.format('a', 2001, 'x')} }} <urn:b> {{ {PAGE.format('b', 2005, 'topss')} }}",
        "days.nq": f"<urn:a> <{DC}date> 2001 <urn:g> .\n".replace("2001", '"x"'),
        "news.rss": rss(2001, 2005, 2006),
        "empty.rss": rss(),
        "one.jsonld": JSON_LD % ("a", 2005),
        "two.jsonld": f"[{JSON_LD % ('a', 2001)}, {JSON_LD % ('b', 2005)}]",
        "page.ttl": PAGE.format("one", 2005, "x"),
    }
    dated = Subscription("dated", "cy", "gql", "SELECT ?i WHERE (?i, dc:date, ?d) AND ?d >= 2004-01-01")
    rows, rejects, events = run_batch_task(tmp_path, files, dated)
    assert rows == [
        ("days.trig:2", "class"), ("days.trig:2", "recent"),
        ("news.rss:2", "dated"), ("news.rss:3", "dated"),
        ("one.jsonld", "recent"), ("page.ttl", "recent"), ("two.jsonld:2", "recent"),
    ]  # fmt: skip
    assert (rejects, events) == ([], 2 + 1 + 3 + 0 + 1 + 2 + 1)


def test_batch_task_files_that_cannot_be_split_are_rejected(tmp_path: Path) -> None:
    files = {
        "bad.trig": "<urn:a> { <urn:a> <urn:b> }",
        "page.rss": "<!DOCTYPE html><html/>",
        "plain.jsonld": '{"price": 5}',
        "good.trig": f"<urn:a> {{ {PAGE.format('a', 2005, 'x')} }}",
        "large.rss": rss(*range(1000, 1005)).replace("1004", "x" * 1_000_001),
    }
    rows, rejects, events = run_batch_task(tmp_path, files)
    assert rows == [("good.trig:1", "recent")]
    assert sorted((reject["id"], reject["file"]) for reject in rejects) == sorted(
        (n, n) for n in files if n != "good.trig"
    )
    assert {reject["facts"]["error"] for reject in rejects} == {"DecodeProblem"}
    reasons = {reject["id"]: reject["reason"] for reject in rejects}
    assert reasons["bad.trig"].startswith("invalid TriG") and "HTML page" in reasons["page.rss"]
    assert "term" in reasons["large.rss"]
    assert events == 5
