"""Reference tables in stream and batch job: declared, changed, broken, repaired, removed."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.processes.streams import running, told
from tidings.errors import InputError
from tidings.model import Publication, Subscription
from tidings.reference_data.declarations import declare
from tidings.reference_data.enrichment import opened
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
    with open_store(url) as opened:
        yield opened


def write(path, text):
    """Write a file atomically."""
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").replace(path)


def rows(live, name):
    (snapshot,) = [one for one in live.snapshots if one.reference.name == name]
    table = opened(snapshot)
    return [table.row(number) for number in range(len(pq.read_table(snapshot.path)))]


class TestFollowing:
    """The refresh before a batch; tables in files need no Spark."""

    @pytest.fixture
    def live(self, tmp_path, store):
        return LiveReferences(tmp_path / "references", store)

    @pytest.fixture
    def file(self, tmp_path):
        write(tmp_path / "t.csv", "k,a\n1,x\n")
        return tmp_path / "t.csv"

    def test_refresh_follows_declarations_and_files(self, live, store, file, tmp_path):
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

    def test_refresh_of_a_broken_table_reports_it_and_keeps_its_last_rows(self, live, store, file, tmp_path):
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
        again = LiveReferences(tmp_path / "references", store)  # the stream is started again
        assert [again.refresh(None), again.refresh(None)] == [1, 0]
        assert again.snapshots == good
        write(file, "k,a\n1,z\n")
        assert again.refresh(None) == 0
        assert rows(again, "t") == [{"a": ["z"]}]
        file.unlink()
        assert again.refresh(None) == 1  # broken as before, but it was good in between
        first, second, third, fourth = store.dead_letters.read(source="references")
        assert first.reason == (
            "the reference table t cannot be used: there is no such column; received 'k'; accepted: key, a; "
            "publications are matched with the rows that were read last"
        )
        assert second.reason == third.reason == fourth.reason
        assert "there is no such file" in second.reason
        assert first.facts["table"] == "t"
        assert first.publication.startswith("t at ")

    def test_refresh_of_a_table_that_was_never_valid_omits_it(self, live, store, file):
        store.references.add(declare("gone", str(file.with_name("gone.csv")), "k", "n"))
        store.references.add(declare("t", str(file), "k", "n"))
        assert live.refresh(None) == 1
        assert [one.reference.name for one in live.snapshots] == ["t"]
        (letter,) = store.dead_letters.read(source="references")
        assert letter.reason.endswith("; publications are matched without it")


def previewed(tidings, id, after):
    """Return the matches that a preview shows for publications after a position, with reasons."""
    one = tidings.store.subscriptions.find(id)
    tools = tidings.store, tidings.preview_tables, tidings.subscribing(), None
    found = preview_subscription(*tools, one.language, one.text, PreviewBounds(100, 10**6, 60), None)
    assert (found.complete, len(found.notes)) == (True, found.skipped)
    assert all("not well-formed XML" in note for note in found.notes)
    publications = [(each.entry.publication, each.because) for each in found.matches]
    return {one.id: because for one, because in publications if one.position > after}


def reasons_told(store, who, after):
    return {
        one.publication: one.because
        for one in store.notifications.read(who)
        if int(one.publication.removeprefix("p")) > after
    }


@pytest.mark.spark
def test_refresh_reads_tables_of_spark(session, tmp_path, store):
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
    reasons = {one.facts["table"]: one.reason for one in store.dead_letters.read(source="references")}
    assert "Spark cannot read the table; received 'nowhere.sectors'" in reasons["missing"]
    assert "there is no such column; received 'symbol'; accepted: k, sector" in reasons["wrong"]
    with pytest.raises(InputError, match="the reference table missing cannot be used"):
        write_snapshots(session, [declare("missing", "spark:nowhere.sectors", "k", "k")], tmp_path / "more")


@pytest.mark.spark
def test_stream_with_a_changed_table_matches_with_its_new_rows(session, tmp_path, store, url):
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
        stream.until(lambda: len(told(store, "di")["di"]) == 1)
        tidings.add_reference("sectors", str(sectors), "symbol", "/stock/symbol")
        tidings.add_reference("prices", str(sectors), "symbol", "symbol")
        publish(IBM, b"<stock>")
        stream.until(lambda: told(store, "ana")["ana"])
        write(sectors, "symbol,sector,country\nIBM,retail,US\n")
        publish(IBM, b'{"symbol": "IBM", "price": 7}', b'{"symbol": "SAP", "price": 7}')
        stream.until(lambda: told(store, "bo")["bo"] and told(store, "cy")["cy"])
        assert previewed(tidings, "s2", after=3) == reasons_told(store, "bo", after=3) != {}
        assert previewed(tidings, "s3", after=3) == reasons_told(store, "cy", after=3) != {}
        sectors.unlink()
        publish(IBM)
        stream.until(lambda: len(told(store, "bo")["bo"]) == 2)
        assert previewed(tidings, "s2", after=3) == reasons_told(store, "bo", after=3), "the rows read last"
        assert tidings.remove_reference("sectors")
        publish(IBM)
        stream.until(lambda: len(told(store, "di")["di"]) == 5)
    assert told(store, "ana", "bo", "cy") == {
        "ana": [(1, "p2", "s1")],
        "bo": [(1, "p4", "s2"), (2, "p7", "s2")],
        "cy": [(1, "p5", "s3")],
    }
    reasons = {
        who: [(one.predicate, one.value, one.at) for one in store.notifications.read(who)[0].because]
        for who in ("ana", "bo", "cy")
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
    with pytest.raises(InputError, match="the reference table gone cannot be used: there is no such file"):
        run_batch_job(
            session,
            BatchRequest(tmp_path / "subs.jsonl", tmp_path / "in", out, force=True, references=(gone,)),
        )
