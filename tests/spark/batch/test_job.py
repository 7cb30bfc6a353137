"""The batch job: agrees with the specification on all kinds of files, and lists rejects."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.spark import workload
from tests.support.strategies.events import SCHEMA
from tidings.errors import InputError
from tidings.model import Subscription
from tidings.spark.batch.job import BatchProgress, BatchRequest, IndexBuilt, check_request, run_batch_job
from tidings.spark.sources import chunks

pytestmark = pytest.mark.spark


@pytest.fixture
def stored_subscriptions(tmp_path):
    subscriptions = workload.subscriptions(60)
    (tmp_path / "subs.jsonl").write_text(workload.as_lines(subscriptions))
    return subscriptions


def read_pairs(folder):
    rows = pq.read_table(folder).to_pylist()
    matches = {(row["publication"], row["subscription"]) for row in rows}
    assert len(matches) == len(rows)
    return matches


def test_batch_job_all_kinds_of_files_agree_with_specification(
    session, tmp_path, stored_subscriptions, monkeypatch
):
    monkeypatch.setattr(chunks, "SMALLEST_CHUNK", 2_000)
    bodies = workload.events(150)
    (tmp_path / "events" / "deep").mkdir(parents=True)
    (tmp_path / "events" / "a.jsonl").write_bytes(b"\n".join(bodies[:100]))
    (tmp_path / "events" / "deep" / "b.ndjson").write_bytes(b"\r\n".join(bodies[100:140]) + b"\r\n")
    named = {}
    for i, body in enumerate(bodies[:140]):
        file = f"a.jsonl:{i + 1}" if i < 100 else f"deep/b.ndjson:{i - 99}"
        named[json.loads(body).get("id", file)] = body
    for i, body in enumerate(bodies[140:]):
        (tmp_path / "events" / f"{i}.json").write_bytes(body)
        named[f"{i}.json"] = body
    progress = []
    out = tmp_path / "matches.parquet"
    summary = run_batch_job(
        session, BatchRequest(tmp_path / "subs.jsonl", tmp_path / "events", out), progress.append
    )
    assert read_pairs(out) == workload.expected(named, stored_subscriptions)
    assert session.read.parquet(str(out)).count() == summary.matches > 0
    assert (summary.events, summary.rejects) == (150, 0)
    assert isinstance(progress[0], IndexBuilt) and progress[0].subscriptions == 60
    assert isinstance(progress[-1], BatchProgress) and progress[-1].done == progress[-1].total
    assert sorted(path.name for path in tmp_path.iterdir()) == ["events", "matches.parquet", "subs.jsonl"]
    assert (out / "_SUCCESS").exists()


@pytest.mark.parametrize("out", ["events", "events/out", ".", "subs.jsonl"])
def test_check_request_result_inside_input_is_rejected(tmp_path, stored_subscriptions, out):
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "a.jsonl").write_text('{"id": "a"}')
    request = BatchRequest(tmp_path / "subs.jsonl", tmp_path / "events", tmp_path / out, force=True)
    with pytest.raises(InputError, match="would be in the same place"):
        check_request(request)


def test_check_request_with_force_replaces_only_earlier_result(tmp_path, stored_subscriptions):
    (tmp_path / "a.jsonl").write_text('{"id": "a"}')
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "me.png").write_bytes(b"me")
    request = BatchRequest(tmp_path / "subs.jsonl", tmp_path / "a.jsonl", tmp_path / "photos", force=True)
    with pytest.raises(InputError, match="would overwrite existing files"):
        check_request(request)


def test_batch_job_rejected_publications_do_not_match(session, tmp_path):
    subscriptions = [Subscription("without", "ana", "predicates", "not exists price")]
    (tmp_path / "subs.jsonl").write_text(workload.as_lines(subscriptions))
    (tmp_path / "e.jsonl").write_text('{"id": "good"}\n{"id": "bad",}\n[]\n{"id": "dear", "price": 5}\n')
    run_batch_job(session, BatchRequest(tmp_path / "subs.jsonl", tmp_path / "e.jsonl", tmp_path / "out"))
    assert read_pairs(tmp_path / "out") == {("good", "without")}


def test_batch_job_lists_rejects_and_matches_others(session, tmp_path, stored_subscriptions):
    with (tmp_path / "subs.jsonl").open("a") as file:
        file.write('{"id": "bad", "subscriber": "u0", "text": "price < "}\n{"id": "s000"}\n')
    good = workload.events(3)
    (tmp_path / "e.jsonl").write_bytes(b'{"a": 1,}\n' + good[0] + b"\n\n[]\n" + b"\n".join(good[1:]))
    out, rejects = tmp_path / "out", tmp_path / "rejects.jsonl"
    summary = run_batch_job(
        session, BatchRequest(tmp_path / "subs.jsonl", tmp_path / "e.jsonl", out, rejects)
    )
    assert (summary.rejected_subscriptions, summary.rejected_publications, summary.events) == (2, 2, 5)
    assert summary.built.subscriptions == 60
    lines = [json.loads(line) for line in rejects.read_text().splitlines()]
    listed = [(line["what"], line["id"], line.get("file"), line.get("line")) for line in lines]
    assert sorted(listed, key=str) == [
        ("publication", "e.jsonl:1", "e.jsonl", 1),
        ("publication", "e.jsonl:4", "e.jsonl", 4),
        ("subscription", "bad", None, None),
        ("subscription", "s000", "subs.jsonl", 62),
    ]
    assert all(line["reason"] for line in lines)
    assert [reject.id for reject in summary.examples] == [line["id"] for line in lines]
    named = {"e.jsonl:2": good[0], "e1": good[1], "e2": good[2]}
    assert read_pairs(out) == workload.expected(named, stored_subscriptions)


def test_batch_job_unreadable_files_are_rejected_and_others_match(session, tmp_path, stored_subscriptions):
    events, bodies = tmp_path / "events", workload.events(3)
    events.mkdir()
    (events / "a.jsonl.gz").write_bytes(b"no gzip at all")
    (events / "b.jsonl.gz").write_bytes(gzip.compress(bodies[1] + b"\n")[:-4])
    (events / "c.jsonl").symlink_to("/proc/self/mem")
    (events / "d.json").symlink_to("/proc/self/mem")
    (events / "e.jsonl").write_bytes(bodies[2])
    out = tmp_path / "out"
    summary = run_batch_job(
        session, BatchRequest(tmp_path / "subs.jsonl", events, out, tmp_path / "rejects.jsonl")
    )
    assert summary.rejected_publications == 4
    rejected = [json.loads(line) for line in (tmp_path / "rejects.jsonl").read_text().splitlines()]
    assert {line["id"] for line in rejected} == {"a.jsonl.gz", "b.jsonl.gz", "c.jsonl", "d.json"}
    assert all(line["file"] == line["id"] and "cannot be read" in line["reason"] for line in rejected)
    assert workload.expected({"e2": bodies[2]}, stored_subscriptions) <= read_pairs(out)


@pytest.mark.parametrize(
    ("place", "why"),
    [("e.jsonl/below/r.jsonl", "is not a folder"), (".", "it is a folder"), ("s3://bucket/r", "is a URI")],
)
def test_batch_job_unwritable_rejects_file_is_rejected_before_start(
    tmp_path, stored_subscriptions, place, why, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "e.jsonl").write_bytes(b"{}")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match=why):
        run_batch_job(None, BatchRequest("subs.jsonl", "e.jsonl", "out", Path(place)))
    assert sorted(tmp_path.rglob("*")) == before


def test_batch_job_failed_write_of_rejects_keeps_result(session, tmp_path, stored_subscriptions):
    (tmp_path / "e.jsonl").write_bytes(b"nonsense\n")
    rejects, out = tmp_path / "later", tmp_path / "out"
    request = BatchRequest(tmp_path / "subs.jsonl", tmp_path / "e.jsonl", out, rejects)
    with pytest.raises(InputError, match="the result itself is complete"):
        run_batch_job(session, request, lambda _: rejects.mkdir(exist_ok=True))
    assert (out / "_SUCCESS").exists()


def test_batch_job_with_segments_writes_index_to_folder(session, tmp_path, stored_subscriptions):
    (tmp_path / "e.jsonl").write_bytes(b"{}")
    shared, segments = tmp_path / "shared", []
    request = BatchRequest(tmp_path / "subs.jsonl", tmp_path / "e.jsonl", tmp_path / "out", segments=shared)
    run_batch_job(session, request, lambda _: segments.extend(shared.glob(".segments-*/segment-*")))
    assert segments and list(shared.iterdir()) == []


def test_batch_job_remote_result_requires_segments(tmp_path, stored_subscriptions):
    (tmp_path / "e.jsonl").write_bytes(b"{}")
    with pytest.raises(InputError, match="--segments"):
        run_batch_job(None, BatchRequest(tmp_path / "subs.jsonl", tmp_path / "e.jsonl", "mock:///out"))


def test_batch_job_with_schema_checks_subscriptions_and_publications(session, tmp_path):
    subscriptions = [Subscription("s1", "ana", "predicates", "category is a 'dining room' and price < 5")]
    unknown = Subscription("s2", "ana", "predicates", "prise < 5")
    (tmp_path / "subs.jsonl").write_text(workload.as_lines([*subscriptions, unknown]))
    good = b'{"event_type": "furniture", "category": "table", "price": 3, "title": "l1"}'
    (tmp_path / "e.jsonl").write_bytes(good + b'\n{"event_type": "furniture", "price": 3}')
    out = tmp_path / "out"
    summary = run_batch_job(
        session, BatchRequest(tmp_path / "subs.jsonl", tmp_path / "e.jsonl", out, None, "title", SCHEMA)
    )
    assert [(reject.what, reject.id) for reject in summary.examples] == [
        ("subscription", "s2"),
        ("publication", "e.jsonl:2"),
    ]
    assert "rule R2" in summary.examples[1].reason
    assert read_pairs(out) == workload.expected({"l1": good}, subscriptions, SCHEMA) == {("l1", "s1")}


def test_batch_job_without_force_keeps_earlier_result(session, tmp_path, stored_subscriptions):
    (tmp_path / "e.jsonl").write_bytes(b'{"symbol": "no match"}')
    out = tmp_path / "out"
    request = BatchRequest(tmp_path / "subs.jsonl", tmp_path / "e.jsonl", out)
    assert run_batch_job(session, request).matches == 0
    assert read_pairs(out) == set()
    with pytest.raises(InputError, match="overwrite"):
        run_batch_job(session, request)
    bodies = workload.events(1, first=1)
    (tmp_path / "e.jsonl").write_bytes(bodies[0])
    run_batch_job(session, BatchRequest(tmp_path / "subs.jsonl", tmp_path / "e.jsonl", out, force=True))
    assert read_pairs(out) == workload.expected({"e1": bodies[0]}, stored_subscriptions)


def test_batch_job_existing_file_is_not_replaced(session, tmp_path, stored_subscriptions):
    (tmp_path / "e.jsonl").write_bytes(b"{}")
    (tmp_path / "out").write_text("mine")
    with pytest.raises(InputError, match="it is a file"):
        run_batch_job(
            session, BatchRequest(tmp_path / "subs.jsonl", tmp_path / "e.jsonl", tmp_path / "out", force=True)
        )
    assert (tmp_path / "out").read_text() == "mine"
