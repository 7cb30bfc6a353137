"""Streams of documents matched with tables: they follow the store, and each micro-batch counts once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.relational import corpus
from tidings.errors import InputError, SetupError
from tidings.model import Subscription, content_id
from tidings.relational.stream_matcher import RelationalMatcher
from tidings.relational.table_store import TableStore, hold_tables
from tidings.relational.tables import Layout, Plan, StorePosition, Version
from tidings.spark.batch.spark_table import Table
from tidings.spark.stream.table_stream import processor
from tidings.spark.stream.table_stream.definition import TableStream
from tidings.spark.stream.table_stream.index_matcher import IndexMatcher
from tidings.spark.stream.table_stream.sinks import FileSink
from tidings.spark.stream.table_stream.table_runner import run_table_stream
from tidings.store.database import sqlite_url
from tidings.store.store import open_store

pytestmark = pytest.mark.spark


@pytest.fixture
def url(tmp_path):
    return sqlite_url(tmp_path / "store.db")


@pytest.fixture
def store(url):
    with open_store(url) as opened:
        yield opened


@pytest.fixture
def stream(tmp_path, url):
    (tmp_path / "in").mkdir()
    source, sink = Table(str(tmp_path / "in"), "parquet"), Table(str(tmp_path / "out"))
    return TableStream(tmp_path / "home", url, source, sink, value="doc", matcher=RelationalMatcher)


def subscribe(store, texts, language="xpath"):
    store.subscriptions.add_many(Subscription(id, "ana", language, text) for id, text in texts.items())


ROW = pa.schema([("id", pa.string()), ("doc", pa.string()), ("region", pa.string())])


def put(stream, name, *rows):
    """Move a file with these rows into the source."""
    folder = Path(stream.source.address)
    pq.write_table(pa.Table.from_pylist(rows, ROW), folder.parent / name)
    (folder.parent / name).rename(folder / name)


def put_documents(stream, name, bodies):
    put(stream, name, *({"id": id, "doc": body.decode()} for id, body in bodies.items()))


def read_rows(session, stream):
    return [row.asDict() for row in Table(stream.sink.address, "parquet").read(session).collect()]


def pairs(session, stream):
    found = [(row["publication"], row["subscription"]) for row in read_rows(session, stream)]
    assert len(set(found)) == len(found), "a match was written twice"
    return set(found)


def tables(stream):
    return TableStore.open(stream.folder / "tables")


def test_stream_follows_subscriptions_and_matches_as_specification(session, store, stream):
    """Subscriptions are added, changed, paused, resumed and removed between micro-batches."""
    first, texts = corpus.draw_quotes(12, 30, 7)
    subscribe(store, texts | {"no": "not(//zzz)"})
    subscribe(store, {"event": "price < 5"}, "predicates")
    put_documents(stream, "a.parquet", first)
    done = run_table_stream(session, stream, once=True)
    expected = corpus.expected_pairs(first, texts | {"no": "not(//zzz)"})
    assert pairs(session, stream) == expected
    assert (done.total_publications, done.total_matches, done.subscriptions) == (12, len(expected), 31)

    second = {f"n{n}": body for n, body in enumerate(corpus.draw_quotes(6, 1, 8)[0].values())}
    store.subscriptions.remove(["r0", "r1"])
    changed = replace(store.subscriptions.find("r2"), text="//symbol = 'S1'")
    assert store.subscriptions.change(changed)
    [paused, resumed] = ["r3", "r4"]
    for id in (paused, resumed):
        assert store.paused.pause(id, "ana")
    assert store.paused.resume(resumed)
    subscribe(store, {"later": "//price > 9", "r1": "//price < 3"})
    put_documents(stream, "b.parquet", second)
    assert run_table_stream(session, stream, once=True).subscriptions == 30
    now = {id: text for id, text in texts.items() if id not in ("r0", "r3")} | {"no": "not(//zzz)"}
    now |= {"r2": changed.text, "later": "//price > 9", "r1": "//price < 3"}
    assert pairs(session, stream) == expected | corpus.expected_pairs(second, now)
    assert sorted(tables(stream).live_ids()) == sorted(now)


def test_stream_passes_columns_names_documents_and_lists_rejects(session, store, stream):
    """Two documents may have the same id; one without an id is named by its content."""
    subscribe(store, {"s": "//b = 1"})
    stream = replace(stream, keep=("region",))
    good, bad = "<a><b>1</b></a>", "<a>"
    rows = [{"id": "x", "doc": good, "region": "north"}, {"id": "x", "doc": good, "region": "south"}]
    rows += [{"doc": good, "region": "east"}, {"id": "y", "doc": bad}, {"id": "z", "doc": None}]
    put(stream, "a.parquet", *rows)
    done = run_table_stream(session, stream, once=True)
    found = {(row["publication"], row["subscriber"], row["region"]) for row in read_rows(session, stream)}
    assert found == {
        ("x", "ana", "north"),
        ("x", "ana", "south"),
        (content_id(good.encode()), "ana", "east"),
    }
    assert (done.total_publications, done.total_matches, done.total_rejects) == (5, 3, 2)
    letters = {letter.publication: letter for letter in store.dead_letters.read()}
    assert set(letters) == {"y", "z"}
    assert (letters["y"].source, letters["y"].body) == (stream.title, bad.encode())


@pytest.mark.parametrize(
    "step",
    [
        "write",
        pytest.param("publish", marks=pytest.mark.long),
        pytest.param("report", marks=pytest.mark.long),
    ],
)
def test_stream_batch_that_failed_is_repeated_with_its_subscriptions(
    session, store, stream, monkeypatch, step
):
    """As after a kill: before, within and after the files are moved."""
    subscribe(store, {"first": "//b"})
    put_documents(stream, "a.parquet", {"a": b"<b/>", "bad": b"<b>"})
    owner = processor.TableProcessor if step == "report" else FileSink
    name = "_report" if step == "report" else step
    original = getattr(owner, name)

    def failing(self, *arguments):
        original(self, *arguments)
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, failing)
        with pytest.raises(SetupError, match="ended"):
            run_table_stream(session, stream, once=True)
    subscribe(store, {"second": "//b"})
    put_documents(stream, "b.parquet", {"b": b"<b/>"})
    done = run_table_stream(session, stream, once=True)
    assert pairs(session, stream) == {("a", "first"), ("b", "first"), ("b", "second")}
    assert (done.total_publications, done.total_matches, done.total_rejects) == (3, 3, 1)
    assert len(store.dead_letters.read()) == 1


def test_stream_continues_with_another_engine(session, store, stream, monkeypatch):
    """A micro-batch that one engine has begun is begun again by the other one, and those it has finished stay."""
    subscribe(store, {"first": "//b"})
    put_documents(stream, "a.parquet", {"a": b"<b/>"})
    run_table_stream(session, stream, once=True)
    put_documents(stream, "b.parquet", {"b": b"<b/>"})

    def failing(*_):
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(FileSink, "write", failing)
        with pytest.raises(SetupError, match="ended"):
            run_table_stream(session, stream, once=True)
    indexed = replace(stream, matcher=IndexMatcher, value_format="xml")
    assert run_table_stream(session, indexed, once=True).total_matches == 1
    put_documents(stream, "c.parquet", {"c": b"<b/>"})
    assert run_table_stream(session, stream, once=True).total_matches == 1
    assert pairs(session, stream) == {("a", "first"), ("b", "first"), ("c", "first")}


def test_stream_tables_of_another_store_are_built_anew(session, store, stream):
    subscribe(store, {"s": "//b"})
    folder = stream.folder / "tables"
    other = TableStore.create(folder, Layout(Plan.SHARE))
    other.follow(session, [], [], StorePosition("another", 1))
    put_documents(stream, "a.parquet", {"a": b"<b/>"})
    run_table_stream(session, stream, once=True)
    assert pairs(session, stream) == {("a", "s")}
    assert Version.read(folder).follows == StorePosition(store.database.name, store.subscriptions.version())


def test_stream_tables_are_changed_by_the_stream_only(session, store, stream):
    subscribe(store, {"s": "//b"})
    put_documents(stream, "a.parquet", {"a": b"<b/>"})
    run_table_stream(session, stream, once=True)
    with hold_tables(stream.folder / "tables") as held:
        with pytest.raises(InputError, match="follow the subscriptions of a store"):
            held.remove(["s"])
        put_documents(stream, "b.parquet", {"b": b"<b/>"})
        with pytest.raises(SetupError, match="another process"):
            run_table_stream(session, stream, once=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"explain": True}, "does not explain matches"),
        ({"value_format": "json"}, "only matches XML documents"),
        ({"segments": "s3://bucket/place"}, "in a folder that all executors can read"),
        ({"keep": ("colour",)}, "no such column"),
        ({"value": "body"}, "no such column"),
    ],
)
def test_stream_options_that_are_not_supported_are_refused(session, store, stream, change, message):
    put_documents(stream, "a.parquet", {"a": b"<b/>"})
    with pytest.raises(InputError, match=message):
        run_table_stream(session, replace(stream, **change), once=True)
