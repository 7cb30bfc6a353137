"""Reference tables in streams and batch jobs: declared, changed, broken, repaired and removed."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.processes.streams import read_notifications, running
from tidings.errors import InputError
from tidings.model import Publication, Subscription
from tidings.reference_data.declarations import declare
from tidings.reference_data.enrichment import open_lookup
from tidings.service.preview import PreviewBounds, preview_subscription
from tidings.service.tidings import Tidings
from tidings.spark.batch.job import BatchRequest, run_batch_job
from tidings.spark.reference_data import LiveReferences, write_snapshots
from tidings.store.database import sqlite_url
from tidings.store.store import open_store

JSON, XML = "application/json", "application/xml"
IBM = b"<stock><symbol>IBM</symbol></stock>"


@pytest.fixture
def url(tmp_path):
    return sqlite_url(tmp_path / "store.db")


@pytest.fixture
def store(url):
    with open_store(url) as created:
        yield created


def write(path, text):
    """Write a file atomically."""
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").replace(path)


def rows(live, name):
    (snapshot,) = [each for each in live.snapshots if each.reference.name == name]
    table = open_lookup(snapshot)
    return [table.row(number) for number in range(len(pq.read_table(snapshot.path)))]


class TestLiveReferences:
    """Refreshing before a batch; tables in files need no Spark."""

    @pytest.fixture
    def live(self, tmp_path, store):
        return LiveReferences(tmp_path / "references", store)

    @pytest.fixture
    def file(self, tmp_path):
        write(tmp_path / "t.csv", "k,a\n1,x\n")
        return tmp_path / "t.csv"

    def test_refresh_applies_changed_declarations_and_files(self, live, store, file, tmp_path):
        assert (live.refresh(None), live.snapshots) == (0, ())
        store.references.add(declare("t", str(file), "k", "n"))
        assert live.refresh(None) == 0
        assert rows(live, "t") == [{"a": ["x"]}]
        before = live.snapshots
        live.refresh(None)
        assert live.snapshots == before
        write(file, "k,a,b\n1,y,z\n")
        live.refresh(None)
        assert rows(live, "t") == [{"a": ["y"], "b": ["z"]}]
        assert Path(before[0].path).exists()  # until the batch is done
        live.tidy()
        assert [str(path) for path in (tmp_path / "references").iterdir()] == [live.snapshots[0].path]
        store.references.add(declare("t", str(file), "k", "n", ["b"]))
        live.refresh(None)
        assert rows(live, "t") == [{"b": ["z"]}]
        store.references.remove("t")
        live.refresh(None)
        live.tidy()
        assert (live.snapshots, list((tmp_path / "references").iterdir())) == ((), [])

    def test_refresh_broken_table_is_reported_and_keeps_last_rows(self, live, store, file, tmp_path):
        store.references.add(declare("t", str(file), "k", "n"))
        live.refresh(None)
        live.tidy()
        good = live.snapshots
        write(file, "key,a\n1,y\n")
        assert [live.refresh(None), live.refresh(None)] == [1, 0]
        file.unlink()
        assert [live.refresh(None), live.refresh(None)] == [1, 0]
        live.tidy()
        assert live.snapshots == good
        restarted = LiveReferences(tmp_path / "references", store)  # the stream restarts
        assert [restarted.refresh(None), restarted.refresh(None)] == [1, 0]
        assert restarted.snapshots == good
        write(file, "k,a\n1,z\n")
        assert restarted.refresh(None) == 0
        assert rows(restarted, "t") == [{"a": ["z"]}]
        file.unlink()
        assert restarted.refresh(None) == 1  # broken as before, but valid in between
        first, second, third, fourth = store.dead_letters.read(source="references")
        assert first.reason == (
            "the reference table t cannot be used: unknown column; received 'k'; accepted: key, a; "
            "publications are matched with the rows that were read last"
        )
        assert second.reason == third.reason == fourth.reason
        assert "the file does not exist" in second.reason
        assert first.facts["table"] == "t"
        assert first.publication.startswith("t at ")

    def test_refresh_table_that_was_never_valid_is_omitted(self, live, store, file):
        store.references.add(declare("gone", str(file.with_name("gone.csv")), "k", "n"))
        store.references.add(declare("t", str(file), "k", "n"))
        assert live.refresh(None) == 1
        assert [snapshot.reference.name for snapshot in live.snapshots] == ["t"]
        (letter,) = store.dead_letters.read(source="references")
        assert letter.reason.endswith("; publications are matched without it")


def preview_reasons(tidings, id, after):
    """Return the matches that a preview shows for publications after a position, with reasons."""
    subscription = tidings.store.subscriptions.find(id)
    tools = tidings.store, tidings.preview_tables, tidings.subscribing(), None
    preview = preview_subscription(
        *tools, subscription.language, subscription.text, PreviewBounds(100, 10**6, 60), None
    )
    assert (preview.complete, len(preview.notes)) == (True, preview.skipped)
    assert all("not well-formed XML" in note for note in preview.notes)
    publications = [(each.entry.publication, each.because) for each in preview.matches]
    return {publication.id: because for publication, because in publications if publication.position > after}


def notified_reasons(store, subscriber, after):
    return {
        notification.publication: notification.because
        for notification in store.notifications.read(subscriber)
        if int(notification.publication.removeprefix("p")) > after
    }


@pytest.mark.spark
def test_refresh_reads_spark_tables(session, tmp_path, store):
    live = LiveReferences(tmp_path / "references", store)
    data = session.createDataFrame([("IBM", "tech"), ("SAP", None)], "k string, sector string")
    data.createOrReplaceTempView("sectors")
    store.references.add(declare("s", "spark:sectors", "k", "/stock/symbol"))
    store.references.add(declare("wrong", "spark:sectors", "symbol", "/stock/symbol"))
    store.references.add(declare("missing", "spark:nowhere.sectors", "k", "/stock/symbol"))
    assert live.refresh(session) == 2
    assert rows(live, "s") == [{"sector": ["tech"]}, {}]
    session.createDataFrame([("HAL", "space")], "k string, sector string").createOrReplaceTempView("sectors")
    assert live.refresh(session) == 0
    assert rows(live, "s") == [{"sector": ["tech"]}, {}]
    store.references.add(declare("s", "spark:sectors", "k", "/stock/symbol"))
    live.refresh(session)
    assert rows(live, "s") == [{"sector": ["space"]}]
    letters = store.dead_letters.read(source="references")
    reasons = {letter.facts["table"]: letter.reason for letter in letters}
    assert "Spark cannot read the table; received 'nowhere.sectors'" in reasons["missing"]
    assert "unknown column; received 'symbol'; accepted: k, sector" in reasons["wrong"]
    with pytest.raises(InputError, match="the reference table missing cannot be used"):
        write_snapshots(session, [declare("missing", "spark:nowhere.sectors", "k", "k")], tmp_path / "more")


@pytest.mark.spark
def test_stream_changed_table_is_matched_with_new_rows(session, tmp_path, store, url):
    sectors = tmp_path / "sectors.csv"
    write(sectors, "symbol,sector\nIBM,tech\nIBM,services\n")
    store.subscriptions.add(Subscription("s1", "ana", "xpath", '/stock/ref/sector = "tech"'))
    store.subscriptions.add(Subscription("s2", "bo", "xpath", '//ref[sector = "retail" and country = "US"]'))
    store.subscriptions.add(Subscription("s3", "cy", "predicates", "ref.sector = 'retail' and price > 5"))
    store.subscriptions.add(Subscription("s4", "di", "xpath", "/stock"))

    def publish(*bodies):
        first = store.journal.head()
        kinds = [XML if body.startswith(b"<") else JSON for body in bodies]
        named = enumerate(zip(kinds, bodies, strict=True), first + 1)
        store.journal.append([Publication(f"p{n}", kind, body) for n, (kind, body) in named])

    with running(session, tmp_path, url) as stream, Tidings(tmp_path, url) as tidings:
        publish(IBM)
        stream.until(lambda: len(read_notifications(store, "di")["di"]) == 1)
        tidings.add_reference("sectors", str(sectors), "symbol", "/stock/symbol")
        tidings.add_reference("prices", str(sectors), "symbol", "symbol")
        publish(IBM, b"<stock>")
        stream.until(lambda: read_notifications(store, "ana")["ana"])
        write(sectors, "symbol,sector,country\nIBM,retail,US\n")
        publish(IBM, b'{"symbol": "IBM", "price": 7}', b'{"symbol": "SAP", "price": 7}')
        stream.until(lambda: read_notifications(store, "bo")["bo"] and read_notifications(store, "cy")["cy"])
        assert preview_reasons(tidings, "s2", after=3) == notified_reasons(store, "bo", after=3) != {}
        assert preview_reasons(tidings, "s3", after=3) == notified_reasons(store, "cy", after=3) != {}
        sectors.unlink()
        publish(IBM)
        stream.until(lambda: len(read_notifications(store, "bo")["bo"]) == 2)
        assert preview_reasons(tidings, "s2", after=3) == notified_reasons(store, "bo", after=3), (
            "the rows read last"
        )
        assert tidings.remove_reference("sectors")
        publish(IBM)
        stream.until(lambda: len(read_notifications(store, "di")["di"]) == 5)
    assert read_notifications(store, "ana", "bo", "cy") == {
        "ana": [(1, "p2", "s1")],
        "bo": [(1, "p4", "s2"), (2, "p7", "s2")],
        "cy": [(1, "p5", "s3")],
    }
    reasons = {
        subscriber: [
            (each.predicate, each.value, each.at) for each in store.notifications.read(subscriber)[0].because
        ]
        for subscriber in ("ana", "bo", "cy")
    }
    assert reasons["ana"][0][1:] == ("tech", "/stock[1]/ref[1]/sector[1]")
    assert [one[1:] for one in reasons["bo"]] == [
        ("retail", "/stock[1]/ref[1]/sector[1]"),
        ("US", "/stock[1]/ref[1]/country[1]"),
    ]
    assert [one[1:] for one in reasons["cy"]] == [("retail", "/ref/sector"), (7, "/price")]
    assert [one.publication for one in store.dead_letters.read(source="journal")] == ["p3"]
    letters = store.dead_letters.read(source="references")
    assert sorted(one.facts["table"] for one in letters) == ["prices", "sectors"]
    assert stream.news[-1].total_dead_letters == 3


@pytest.mark.spark
def test_batch_job_joins_reference_tables_before_matching(session, tmp_path):
    write(tmp_path / "sectors.csv", "symbol,sector\nIBM,tech\n")
    texts = {"s1": ("xpath", '//ref/sector = "tech"'), "s2": ("predicates", "ref.sector = 'tech'")}
    lines = [
        json.dumps({"id": id, "subscriber": "ana", "language": language, "text": text})
        for id, (language, text) in texts.items()
    ]
    write(tmp_path / "subs.jsonl", "\n".join(lines))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.xml").write_bytes(IBM)
    (tmp_path / "in" / "b.xml").write_bytes(b"<stock><symbol>SAP</symbol></stock>")
    (tmp_path / "in" / "c.jsonl").write_text('{"symbol": "IBM"}\n{"symbol": "SAP"}\n')
    tables = [
        declare(name, str(tmp_path / "sectors.csv"), "symbol", on)
        for name, on in (("documents", "//symbol"), ("events", "symbol"))
    ]
    out = tmp_path / "out"
    request = BatchRequest(tmp_path / "subs.jsonl", tmp_path / "in", out, references=tuple(tables))
    run_batch_job(session, request)
    pairs = {tuple(row.values()) for row in pq.read_table(out).to_pylist()}
    assert pairs == {("a.xml", "s1"), ("c.jsonl:1", "s2")}
    gone = declare("gone", str(tmp_path / "gone.csv"), "symbol", "symbol")
    with pytest.raises(InputError, match="the reference table gone cannot be used: the file does not exist"):
        run_batch_job(
            session,
            BatchRequest(tmp_path / "subs.jsonl", tmp_path / "in", out, force=True, references=(gone,)),
        )
