"""The tables of a store as DataFrames, in batches and streams."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from tests.spark import workload
from tidings.model import Publication, Reason, Subscription
from tidings.spark import match
from tidings.spark.data_source import store_reader, store_tables
from tidings.spark.data_source.options import find_url
from tidings.spark.data_source.store_reader import build_reader, build_stream_reader
from tidings.spark.data_source.store_tables import TABLES, JournalTable, NotificationTable
from tidings.spark.sources.admission_control import HAS_ADMISSION_CONTROL
from tidings.store import bulk
from tidings.store.database import sqlite_url
from tidings.store.dead_letters import DeadLetter
from tidings.store.encoding import MatchRow
from tidings.store.store import Store, open_store

pytestmark = pytest.mark.spark

BECAUSE = (Reason("price < 200", 180, "/price"), Reason("not sold = true", None, "/sold"))
BINDINGS = {"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "uri", "value": "urn:a"}}]}}


def load(session: SparkSession, url: str, **options: Any) -> DataFrame:
    return session.read.format("tidings").options(**options).load(url)


def publish(store: Store, *bodies: bytes, audience: str | None = None) -> None:
    first = store.journal.head() + 1
    store.journal.append(
        Publication(f"p{first + i}", "application/json", body, audience=audience)
        for i, body in enumerate(bodies)
    )


def notify(store: Store, *pairs: tuple[str, str]) -> None:
    """Commit a batch of notifications: a subscriber and a publication each."""
    batch = (store.notifications.last_batch("test") or 0) + 1
    rows = [
        MatchRow(publication, f"s-{subscriber}", subscriber, BECAUSE) for subscriber, publication in pairs
    ]
    store.notifications.commit_batch("test", batch, rows)


def fail(store: Store, *ids: str) -> None:
    letters = [DeadLetter(id, "not JSON", {"what": id}, position, b"{") for position, id in enumerate(ids, 1)]
    store.dead_letters.add(f"source {store.dead_letters.count()}", letters)


def test_read_journal_gives_publications_with_times_and_audiences(
    session: SparkSession, store: Store, url: str
) -> None:
    before = datetime.now(UTC)
    publish(store, b'{"a": 1}')
    publish(store, b"{}", audience="staff")
    rows = load(session, url).orderBy("position").collect()
    assert [row.asDict() | {"time": None} for row in rows] == [
        {
            "position": 1,
            "id": "p1",
            "media_type": "application/json",
            "body": b'{"a": 1}',
            "time": None,
            "audience": None,
        },
        {
            "position": 2,
            "id": "p2",
            "media_type": "application/json",
            "body": b"{}",
            "time": None,
            "audience": "staff",
        },
    ]
    assert all(before <= row.time.astimezone(UTC) <= datetime.now(UTC) for row in rows)


def test_read_journal_in_several_partitions(session: SparkSession, store: Store, url: str) -> None:
    bodies = [json.dumps({"n": number}).encode() for number in range(1, 4_501)]
    publish(store, *bodies)
    frame = load(session, url)
    assert frame.rdd.getNumPartitions() == 3
    assert sorted(row.position for row in frame.select("position").collect()) == list(range(1, 4_501))


def test_read_a_range_of_positions(session: SparkSession, store: Store, url: str) -> None:
    publish(store, *[b"{}"] * 10)
    fail(store, *"abcdef")

    def read(kind: str, column: str, **options: str) -> list[int]:
        return sorted(row[column] for row in load(session, url, kind=kind, **options).collect())

    assert read("journal", "position", startingPosition="4", endingPosition="6") == [4, 5, 6]
    assert read("journal", "position", startingPosition="9", endingPosition="99") == [9, 10]
    assert read("journal", "position", startingPosition="99") == []
    assert read("dead_letters", "number", startingPosition="5") == [5, 6]


def test_read_large_bodies_in_pages_of_bounded_size(
    session: SparkSession, store: Store, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bodies = [b'{"a": "%s"}' % (b"x" * size) for size in (30_000_000, 5, 5, 9_000_000, 5)]
    publish(store, *bodies)
    rows = load(session, url).orderBy("position").collect()
    assert [row.body for row in rows] == bodies
    assert [len(page) for page in store.journal.pages(0, 5)] == [1, 2, 1, 1]
    monkeypatch.setattr(bulk, "PAGE_ROWS", 2)
    assert [len(page) for page in store.journal.pages(1, 5)] == [2, 1, 1]


def test_read_journal_written_to_another_store_is_the_same(
    session: SparkSession, store: Store, url: str, tmp_path: Path
) -> None:
    publish(store, b'{"a": 1}', b"{}")
    publish(store, b"{}", audience="staff")
    copy = sqlite_url(tmp_path / "copy.db")
    load(session, url).write.format("tidings").mode("append").save(copy)
    columns = "id", "media_type", "body", "audience"
    ours, theirs = (load(session, each).select(*columns).orderBy("id").collect() for each in (url, copy))
    assert ours == theirs and len(ours) == 3


def test_read_empty_tables(session: SparkSession, store: Store, url: str) -> None:
    assert {kind: load(session, url, kind=kind).count() for kind in TABLES} == dict.fromkeys(TABLES, 0)


def test_read_notifications_explains_them_like_match(session: SparkSession, store: Store, url: str) -> None:
    found = [MatchRow("p1", "s1", "ana", BECAUSE), MatchRow("p1", "s2", "bo", (), BINDINGS)]
    store.notifications.commit_batch("test", 0, [*found, MatchRow("p2", "s1", "ana", BECAUSE)])
    rows = load(session, url, kind="notifications").orderBy("subscriber", "sequence").collect()
    assert [(row.subscriber, row.sequence, row.subscription, row.publication, row.kind) for row in rows] == [
        ("ana", 1, "s1", "p1", "matched"),
        ("ana", 2, "s1", "p2", "matched"),
        ("bo", 1, "s2", "p1", "matched"),
    ]
    assert [tuple(reason) for reason in rows[0].explanation] == [
        ("price < 200", "180", "/price"),
        ("not sold = true", None, "/sold"),
    ]
    assert (rows[0].bindings, rows[2].bindings) == (None, [{"x": "urn:a"}])
    assert [row.id for row in rows[:2]] == [one.id for one in store.notifications.read("ana")]


def test_read_notifications_in_several_partitions(
    session: SparkSession, store: Store, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_tables, "NOTIFICATIONS_A_TASK", 3)
    notify(store, *[(f"u{number % 4}", f"p{number}") for number in range(10)])
    table = NotificationTable()
    parts = table.partitions(store)
    assert len(parts) == 4
    rows = [
        (row.subscriber, row.sequence) for part in parts for page in table.pages(store, part) for row in page
    ]
    assert rows == sorted((f"u{number % 4}", 1 + number // 4) for number in range(10))


def test_read_notifications_of_one_subscriber(session: SparkSession, store: Store, url: str) -> None:
    notify(store, ("ana", "p1"), ("bo", "p1"), ("ana", "p2"), ("ana", "p3"))
    frame = load(session, url, kind="notifications", subscriber="ana", startingPosition="2")
    assert sorted((row.subscriber, row.sequence) for row in frame.collect()) == [("ana", 2), ("ana", 3)]


def test_read_notifications_withholds_what_the_subscriber_may_not_see(
    session: SparkSession, store: Store, url: str
) -> None:
    publish(store, b"{}", audience="staff")
    store.audiences.grant("ana", "staff")
    notify(store, ("ana", "p1"))
    store.audiences.revoke("ana", "staff")
    [row] = load(session, url, kind="notifications").collect()
    assert (row.kind, row.publication, row.explanation) == ("withheld", None, [])


def test_read_dead_letters(session: SparkSession, store: Store, url: str) -> None:
    fail(store, "a", "b")
    [row, _] = load(session, url, kind="dead_letters").orderBy("number").collect()
    assert (row.number, row.source, row.publication, row.position) == (1, "source 0", "a", 1)
    assert (row.reason, json.loads(row.facts), row.body) == ("not JSON", {"what": "a"}, b"{")


def test_read_subscriptions_in_every_state(session: SparkSession, store: Store, url: str) -> None:
    store.subscriptions.add_many(
        [
            Subscription("s1", "ana", "predicates", "price < 200", 60),
            Subscription("s2", "bo", "xpath", "/a"),
            Subscription("s3", "bo", "predicates", "price > 1"),
        ]
    )
    store.paused.pause("s2", "bo")
    store.subscriptions.remove(["s3"])
    rows = load(session, url, kind="subscriptions").orderBy("id").collect()
    assert rows == [
        Row(
            id="s1",
            subscriber="ana",
            language="predicates",
            text="price < 200",
            state="active",
            within=60,
            reason=None,
        ),
        Row(id="s2", subscriber="bo", language="xpath", text="/a", state="paused", within=None, reason=None),
    ]


def test_match_with_subscriptions_of_a_store(session: SparkSession, store: Store, url: str) -> None:
    """Paused ones match nothing, as everywhere."""
    wanted, bodies = workload.subscriptions(30), workload.events(50)
    store.subscriptions.add_many(wanted)
    paused = wanted[0]
    store.paused.pause(paused.id, paused.subscriber)
    publish(store, *bodies)
    subscriptions = load(session, url, kind="subscriptions")
    matches = match(load(session, url), subscriptions, value="body")
    named = {f"p{number}": body for number, body in enumerate(bodies, 1)}
    expected = workload.expected(named, wanted[1:])
    assert {(row.publication, row.subscription) for row in matches.collect()} == expected != set()
    assert matches.rejected_subscriptions.count() == 0


def test_snapshot_of_subscriptions_ignores_later_changes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.store.subscriptions.snapshot.PAGE", 2)
    wanted = [Subscription(f"s{number}", "ana", "predicates", "a = 1") for number in range(9)]
    store.subscriptions.add_many(wanted)
    store.paused.pause("s8", "ana")
    snapshots = store.subscription_snapshots
    ranges = snapshots.cut(3)
    assert len(ranges) == 3
    store.subscriptions.add(Subscription("s2b", "ana", "predicates", "a = 1"))
    store.subscriptions.remove(["s1", "s4"])
    store.subscriptions.change(Subscription("s5", "ana", "predicates", "a = 2"))
    store.paused.pause("s6", "ana")
    read = [one for part in ranges for page in snapshots.read(part) for one in page]
    assert read == wanted[:8]
    others = [one.subscription.id for page in snapshots.others(ranges[0].version) for one in page]
    assert others == ["s8"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "journals"}, "unknown value .*journal, subscriptions.*did you mean 'journal'"),
        ({"startPosition": "3"}, "unknown option.*did you mean 'startingPosition'"),
        ({"startingPosition": "latest"}, "invalid value.*earliest, or a position from 1 on"),
        ({"endingPosition": "0"}, "invalid value"),
        ({"kind": "notifications", "startingPosition": "3"}, "no positions in a batch"),
        ({"kind": "subscriptions", "endingPosition": "3"}, "no positions in a batch"),
        ({"subscriber": "ana"}, "this option is for notifications"),
        ({"store": "sqlite:///other.db"}, "two stores are named"),
    ],
)
def test_read_wrong_options_raise(
    session: SparkSession, tmp_path: Path, options: dict[str, str], message: str
) -> None:
    with pytest.raises(PySparkException, match=message):
        load(session, sqlite_url(tmp_path / "store.db"), **options).collect()


def test_read_store_that_does_not_exist_raises_and_creates_nothing(
    session: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(PySparkException, match="there is no store at this address"):
        load(session, sqlite_url(tmp_path / "store.db")).collect()
    assert not (tmp_path / "store.db").exists()


def test_read_with_other_columns_raises(session: SparkSession, store: Store, url: str) -> None:
    with pytest.raises(PySparkException, match="the columns of a store are fixed"):
        session.read.format("tidings").schema("id string").load(url).collect()


def test_plan_does_not_show_the_url_of_the_store(session: SparkSession, tmp_path: Path) -> None:
    """It may have a password."""
    (tmp_path / "secret").mkdir()
    url = sqlite_url(tmp_path / "secret" / "store.db")
    open_store(url).close()
    frame = load(session, url)
    assert frame.count() == 0
    assert "secret" not in frame._jdf.queryExecution().toString()


def test_find_url_takes_path_or_store() -> None:
    assert find_url({"path": "sqlite:///a"}) == find_url({"store": "sqlite:///a"}) == "sqlite:///a"


# Streams.


def run(session: SparkSession, url: str, folder: Path, **options: Any) -> tuple[list[Row], list[int]]:
    """Read what is new into a table; return all rows that this run has read, and the sizes of its micro-batches."""
    out = folder / f"out-{len(list(folder.glob('out-*')))}"
    frame = session.readStream.format("tidings").options(**options).load(url)
    query = (
        frame.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .option("path", str(folder / "all"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    sizes = [progress.numInputRows for progress in query.recentProgress if progress.numInputRows]
    rows = session.read.parquet(str(folder / "all")).collect()
    out.mkdir()
    return rows, sizes


bounded = pytest.mark.skipif(
    not HAS_ADMISSION_CONTROL, reason="Spark 4.1 runs one micro-batch with the trigger availableNow"
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "streams").mkdir()
    return tmp_path / "streams"


@bounded
def test_stream_of_the_journal_reads_each_publication_once(
    session: SparkSession, store: Store, url: str, place: Path
) -> None:
    publish(store, *[b"{}"] * 5)
    rows, sizes = run(session, url, place, maxRowsPerBatch=2)
    assert (sorted(row.position for row in rows), sizes) == ([1, 2, 3, 4, 5], [2, 2, 1])
    publish(store, *[b"{}"] * 2)
    rows, sizes = run(session, url, place, maxRowsPerBatch=2)
    assert (sorted(row.position for row in rows), sizes) == ([1, 2, 3, 4, 5, 6, 7], [2])


def test_stream_of_dead_letters(session: SparkSession, store: Store, url: str, place: Path) -> None:
    fail(store, *"abc")
    assert len(run(session, url, place, kind="dead_letters")[0]) == 3
    fail(store, "d")
    rows, _ = run(session, url, place, kind="dead_letters")
    assert sorted(row.publication for row in rows) == ["a", "b", "c", "d"]


@bounded
def test_stream_of_notifications_reads_each_once(
    session: SparkSession, store: Store, url: str, place: Path
) -> None:
    notify(store, ("ana", "p1"), ("bo", "p1"), ("ana", "p2"))
    rows, sizes = run(session, url, place, kind="notifications", maxRowsPerBatch=2)
    assert sizes == [2, 1]
    notify(store, ("ana", "p3"), ("cy", "p3"))
    notify(store, ("cy", "p4"))
    rows, sizes = run(session, url, place, kind="notifications", maxRowsPerBatch=2)
    assert sizes == [2, 1]
    assert sorted((row.subscriber, row.sequence, row.publication) for row in rows) == [
        ("ana", 1, "p1"),
        ("ana", 2, "p2"),
        ("ana", 3, "p3"),
        ("bo", 1, "p1"),
        ("cy", 1, "p3"),
        ("cy", 2, "p4"),
    ]


def test_stream_of_one_subscriber(session: SparkSession, store: Store, url: str, place: Path) -> None:
    notify(store, ("ana", "p1"), ("bo", "p1"), ("ana", "p2"))
    options = {"kind": "notifications", "subscriber": "ana", "startingPosition": 2}
    rows, _ = run(session, url, place, **options)
    notify(store, ("ana", "p3"), ("bo", "p3"))
    rows, _ = run(session, url, place, **options)
    assert sorted((row.subscriber, row.sequence) for row in rows) == [("ana", 2), ("ana", 3)]


@pytest.mark.parametrize(("start", "first"), [("latest", 4), (2, 2), (4, 4)])
def test_stream_begins_where_it_is_told_to(
    session: SparkSession, store: Store, url: str, place: Path, start: object, first: int
) -> None:
    publish(store, *[b"{}"] * 3)
    run(session, url, place, startingPosition=start)
    publish(store, *[b"{}"] * 2)
    rows, _ = run(session, url, place, startingPosition=start)
    assert sorted(row.position for row in rows) == list(range(first, 6))


def test_stream_of_subscriptions_raises_and_names_the_alternative(
    session: SparkSession, store: Store, url: str, place: Path
) -> None:
    with pytest.raises(PySparkException, match=r"cannot be read as a stream.*Subscriptions\.from_store"):
        run(session, url, place, kind="subscriptions")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"startingPosition": "5"}, "begin after the last position.*1 to 3"),
        ({"startingPosition": "0"}, "invalid value"),
        ({"maxRowsPerBatch": "no"}, "invalid value"),
        ({"endingPosition": "3"}, "a stream has no last position"),
    ],
)
def test_stream_wrong_options_raise(
    session: SparkSession, store: Store, url: str, place: Path, options: dict[str, str], message: str
) -> None:
    publish(store, b"{}", b"{}")
    with pytest.raises(PySparkException, match=message):
        run(session, url, place, **options)


def test_stream_reader_looks_less_often_if_looking_takes_long(
    store: Store, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(store_reader, "monotonic", lambda: now[0])

    class SlowTable(JournalTable):
        is_slow = True

        def head(self, store: Store) -> int:
            now[0] += 0.5
            return super().head(store)

    publish(store, b"{}")
    stream = store_reader.StoreStreamReader(url, SlowTable(), {})
    assert stream.head() == 1
    publish(store, b"{}")
    now[0] += 4.9
    assert stream.head() == 1
    now[0] += 0.2
    assert stream.head() == 2


def test_readers_travel_to_tasks_with_the_url_of_the_driver(store: Store, url: str) -> None:
    for build, table in ((build_reader, "journal"), (build_stream_reader, "dead_letters")):
        schema = type("Schema", (), {"names": [column.name for column in TABLES[table].columns]})
        built = build({"path": url, "kind": table}, schema)  # type: ignore[arg-type]
        assert built._url.startswith(("sqlite+pysqlite:////", "postgresql"))


def test_stream_of_the_journal_may_begin_after_what_is_matched(store: Store, url: str) -> None:
    publish(store, *[b"{}"] * 3)
    store.notifications.reach(2)
    stream = store_reader.StoreStreamReader(url, JournalTable(), {"startingPosition": "matched"})
    assert stream.beginning() == 2
