"""DataFrames published into a journal: what becomes of rows, and that nothing is published twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as t

from tests.spark import workload
from tidings.errors import InputError
from tidings.events.schema.files import parts_of_text
from tidings.model import Publication, content_id
from tidings.spark import match
from tidings.spark.data_source import store_writer
from tidings.spark.data_source.options import DEAD_LETTER, FAIL, WriteOptions
from tidings.spark.data_source.store_writer import RowPublisher
from tidings.store.database import sqlite_url
from tidings.store.store import Store, open_store

pytestmark = pytest.mark.spark

TEXT_ROWS = t.StructType().add("id", "string").add("value", "string")


def save(frame: DataFrame, url: str, **options: str) -> None:
    frame.write.format("tidings").options(**options).mode("append").save(url)


def journal(store: Store) -> dict[str, bytes]:
    return {each.id: each.body for each in store.journal.read(0)}


def test_write_typed_rows_gives_one_event_per_row(session: SparkSession, store: Store, url: str) -> None:
    rows = [("o1", 95.0, ["rush"], ("Oslo",)), ("o2", None, [], None)]
    frame = session.createDataFrame(
        rows, "id string, price double, tags array<string>, buyer struct<city: string>"
    )
    save(frame, url)
    events = {id: json.loads(body) for id, body in journal(store).items()}
    assert events == {
        "o1": {"id": "o1", "price": 95.0, "tags": ["rush"], "buyer": {"city": "Oslo"}},
        "o2": {"id": "o2", "tags": []},
    }


def test_write_bodies_keeps_media_type_and_audience(session: SparkSession, store: Store, url: str) -> None:
    rows = [
        (1, bytearray(b"<a/>"), "application/xml", "staff", "ignored"),
        (2, bytearray(b'{"a": 1}'), None, None, "ignored"),
    ]
    frame = session.createDataFrame(
        rows, "id int, body binary, media_type string, audience string, other string"
    )
    save(frame, url)
    published = sorted(store.journal.read(0), key=lambda each: each.id)
    assert [(each.id, each.media_type, each.body, each.audience) for each in published] == [
        ("1", "application/xml", b"<a/>", "staff"),
        ("2", "application/json", b'{"a": 1}', None),
    ]


def test_write_audience_of_typed_rows_is_no_member_of_the_event(
    session: SparkSession, store: Store, url: str
) -> None:
    save(session.createDataFrame([("a", 1, "staff")], "id string, n int, audience string"), url)
    [published] = store.journal.read(0)
    assert (published.audience, json.loads(published.body)) == ("staff", {"id": "a", "n": 1})


def test_write_rows_without_id_names_them_by_content(session: SparkSession, store: Store, url: str) -> None:
    """Equal rows are one publication, also if the job runs twice; `match` gives them the same id."""
    lines = ['{"price": 3}', '{"price": 4}', '{"price": 3}']
    frame = session.createDataFrame([(line,) for line in lines], "value string").repartition(2)
    save(frame, url)
    save(frame, url)
    assert journal(store) == {content_id(line.encode()): line.encode() for line in lines}
    assert store.journal.head() == 2
    subscriptions = session.createDataFrame([("s", "price < 10")], "id string, text string")
    named = {row.publication for row in match(frame, subscriptions).collect()}
    assert named == set(journal(store))


def test_write_same_body_for_two_audiences_is_two_publications(
    session: SparkSession, store: Store, url: str
) -> None:
    rows = [("{}", "staff"), ("{}", "press"), ("{}", None)]
    save(session.createDataFrame(rows, "value string, audience string"), url)
    assert sorted(str(each.audience) for each in store.journal.read(0)) == ["None", "press", "staff"]


def test_write_id_field_names_events_without_an_id_column(
    session: SparkSession, store: Store, url: str
) -> None:
    rows = [(None, '{"order": "o1"}', None), ("given", '{"order": "o2"}', None), (None, "<a/>", "text/xml")]
    frame = session.createDataFrame(rows, "id string, value string, media_type string")
    save(frame, url, id_field="order")
    assert journal(store).keys() == {"o1", "given", content_id(b"<a/>")}


def test_write_cloud_events_keep_their_ids(session: SparkSession, store: Store, url: str) -> None:
    event = {"specversion": "1.0", "id": "c1", "source": "/a", "type": "t"}
    bodies = [json.dumps(event), json.dumps(event | {"source": "/b"})]
    frame = session.createDataFrame([(body,) for body in bodies], "value string").coalesce(1)
    save(frame, url)
    save(frame, url)
    assert len(journal(store)) == 2
    assert any(id.startswith("c1~") for id in journal(store)) and "c1" in journal(store)


def test_write_body_with_several_graphs_divides_it(session: SparkSession, store: Store, url: str) -> None:
    trig = "<urn:g1> { <urn:a> <urn:p> <urn:b> } <urn:g2> { <urn:c> <urn:p> <urn:d> }"
    frame = session.createDataFrame(
        [("day", trig, "application/trig")], "id string, body string, media_type string"
    )
    save(frame, url)
    assert journal(store).keys() == {"day-1", "day-2"}


def test_write_generated_events_match_like_the_rows(session: SparkSession, store: Store, url: str) -> None:
    wanted, bodies = workload.subscriptions(30), workload.events(100)
    named = {f"e{number}": body for number, body in enumerate(bodies)}
    frame = session.createDataFrame(
        [(id, body.decode()) for id, body in named.items()], "id string, value string"
    )
    save(frame.repartition(4), url)
    assert journal(store) == named
    assert workload.expected(journal(store), wanted) == workload.expected(named, wanted) != set()


def test_write_empty_frame_publishes_nothing(session: SparkSession, store: Store, url: str) -> None:
    save(session.createDataFrame([], "id string, value string"), url)
    assert store.journal.head() == 0


def test_write_large_bodies(session: SparkSession, store: Store, url: str) -> None:
    frame = session.range(3).select(
        F.concat(F.lit("b"), "id").alias("id"),
        F.concat(F.lit('{"a": "'), F.repeat(F.lit("x"), 20_000_000), F.lit('"}')).alias("value"),
    )
    save(frame, url)
    assert [len(body) for body in journal(store).values()] == [20_000_009] * 3


def test_write_invalid_row_fails_a_batch_and_names_the_row(
    session: SparkSession, store: Store, url: str
) -> None:
    frame = session.createDataFrame([("good", "{}"), ("bad", '{"a": }')], "id string, value string")
    with pytest.raises(PySparkException, match=r"publication bad: expected a value"):
        save(frame.coalesce(1), url)
    assert store.dead_letters.count() == 0


def test_write_conflicting_id_fails_a_batch(session: SparkSession, store: Store, url: str) -> None:
    store.journal.append([Publication("a", "application/json", b"{}")])
    with pytest.raises(PySparkException, match="publication a: the id 'a' was already used"):
        save(session.createDataFrame([("a", '{"n": 1}')], "id string, value string"), url)
    assert journal(store) == {"a": b"{}"}


def test_write_dead_letters_keep_every_invalid_row_once(
    session: SparkSession, store: Store, url: str
) -> None:
    """Two of them have the same id, and the job runs twice."""
    store.journal.append([Publication("taken", "application/json", b"{}")])
    rows = [
        ("good", "{}", None),
        ("bad", "{", None),
        ("bad", "[", None),
        ("taken", '{"n": 1}', None),
        ("taken", '{"n": 2}', None),
        ("empty", None, None),
        ("", "{}", None),
        ("odd", "{}", "image/png"),
    ]
    frame = session.createDataFrame(rows, "id string, value string, media_type string")
    for _ in range(2):
        save(frame, url, on_error="dead_letter")
    letters = store.dead_letters.read(source="spark")
    assert sorted((letter.publication, letter.body or b"") for letter in letters) == sorted(
        [
            ("bad", b"["),
            ("bad", b"{"),
            ("empty", b""),
            ("odd", b"{}"),
            ("taken", b'{"n": 1}'),
            ("taken", b'{"n": 2}'),
            (content_id(b"{}"), b"{}"),
        ]
    )
    by_id = {letter.publication: letter for letter in letters}
    assert "already used" in by_id["taken"].reason and by_id["taken"].facts["error"] == "IdConflict"
    assert "null" in by_id["empty"].reason
    assert journal(store) == {"taken": b"{}", "good": b"{}"}


def test_write_checks_the_event_schema_of_the_store(session: SparkSession, store: Store, url: str) -> None:
    store.schemas.extend(
        parts_of_text("attributes: {price: numeric}\nevent_types: {chair: {attributes: {price: optional}}}")
    )
    columns = "id string, event_type string, price {}"
    with pytest.raises(PySparkException, match=r"publication a: .*price"):
        save(session.createDataFrame([("a", "chair", "cheap")], columns.format("string")), url)
    save(session.createDataFrame([("b", "chair", 1)], columns.format("int")), url)
    assert journal(store).keys() == {"b"}


def test_write_creates_the_store(session: SparkSession, url: str) -> None:
    save(session.createDataFrame([("a", "{}")], "id string, value string"), url)
    with open_store(url) as store:
        assert journal(store) == {"a": b"{}"}


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ("id string, value string", {"kind": "notifications"}, "only the journal can be written"),
        ("id string, value string", {"on_error": "ignore"}, "unknown value .*fail, dead_letter"),
        ("id string, value string", {"onError": "fail"}, "unknown option.*did you mean 'on_error'"),
        ("value string, body binary", {}, "two columns could be the body"),
        ("id double, value string", {}, "the column id has the wrong type.*double"),
        ("id string, wait interval day to second", {}, "column wait.*cast"),
    ],
)
def test_write_wrong_options_and_columns_raise(
    session: SparkSession, tmp_path: Path, columns: str, options: dict[str, str], message: str
) -> None:
    with pytest.raises(PySparkException, match=message):
        save(session.createDataFrame([], columns), sqlite_url(tmp_path / "store.db"), **options)
    assert not (tmp_path / "store.db").exists() or options == {}


def test_write_other_modes_raise(session: SparkSession, tmp_path: Path) -> None:
    frame, url = session.createDataFrame([("{}",)], "value string"), sqlite_url(tmp_path / "store.db")
    with pytest.raises(PySparkException, match=r"only be appended to.*mode\(\"append\"\)"):
        frame.write.format("tidings").mode("overwrite").save(url)
    with pytest.raises(PySparkException, match=r"(?i)append"):
        frame.write.format("tidings").save(url)


def test_write_without_a_store_raises(session: SparkSession) -> None:
    frame = session.createDataFrame([("{}",)], "value string")
    with pytest.raises(PySparkException, match="no store is named"):
        frame.write.format("tidings").mode("append").save()


# The tasks themselves, without Spark: attempts that fail half-way.


def text_batches(*rows: tuple[str | None, str | None]) -> Iterator[pa.RecordBatch]:
    for id, value in rows:
        yield pa.RecordBatch.from_pydict(
            {"id": pa.array([id], pa.string()), "value": pa.array([value], pa.string())}
        )


def test_publisher_attempt_that_fails_half_way_is_repeated(
    store: Store, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_writer, "CHUNK_ROWS", 2)
    publisher = RowPublisher(TEXT_ROWS, WriteOptions(url, DEAD_LETTER))
    rows = [("a", "{}"), (None, '{"n": 1}'), ("c", "{"), ("d", "{}"), ("e", "{}")]

    def fail() -> Iterator[pa.RecordBatch]:
        yield from text_batches(*rows[:4])
        raise OSError("the executor is lost")

    with pytest.raises(OSError, match="lost"):
        publisher.publish(fail())
    assert len(journal(store)) == 3
    counts = publisher.publish(text_batches(*rows))
    assert (counts.new, counts.repeated, counts.rejected) == (1, 3, 1)
    assert len(journal(store)) == 4 and store.dead_letters.count() == 1


def test_publisher_attempts_at_the_same_time_publish_each_row_once(
    store: Store, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As speculative tasks do."""
    monkeypatch.setattr(store_writer, "CHUNK_ROWS", 3)
    publisher = RowPublisher(TEXT_ROWS, WriteOptions(url, DEAD_LETTER))
    rows = [(None, json.dumps({"n": number}) if number % 7 else "{") for number in range(1, 40)]
    with ThreadPoolExecutor(4) as attempts:
        running = [attempts.submit(publisher.publish, text_batches(*rows)) for _ in range(4)]
        counts = [each.result() for each in running]
    assert sum(each.new for each in counts) == store.journal.head() == len(journal(store)) == 34
    assert store.dead_letters.count() == 1


def test_publisher_that_fails_publishes_no_row_of_the_chunk(store: Store, url: str) -> None:
    publisher = RowPublisher(TEXT_ROWS, WriteOptions(url, FAIL))
    with pytest.raises(InputError, match="publication bad"):
        publisher.publish(text_batches(("a", "{}"), ("bad", "{")))
    assert journal(store) == {}


def test_publisher_appends_large_bodies_in_chunks_of_their_own(
    store: Store, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_writer, "CHUNK_BYTES", 100)
    chunks: list[int] = []
    append = store_writer.append_items
    monkeypatch.setattr(
        store_writer, "append_items", lambda store, items: chunks.append(len(items)) or append(store, items)
    )
    rows = [(str(number), '{"a": "%s"}' % ("x" * 40)) for number in range(5)]
    RowPublisher(TEXT_ROWS, WriteOptions(url, FAIL)).publish(text_batches(*rows))
    assert chunks == [3, 2]
    assert len(journal(store)) == 5


# Streams.


def stream(session: SparkSession, folder: Path, url: str, **options: str) -> None:
    """Publish the new lines of a folder, then end."""
    lines = session.readStream.text(str(folder / "in"))
    query = (
        lines.writeStream.format("tidings")
        .options(checkpointLocation=str(folder / "checkpoint"), **options)
        .trigger(availableNow=True)
        .start(url)
    )
    try:
        query.awaitTermination()
    finally:
        query.stop()


def add_lines(folder: Path, name: str, *lines: str) -> None:
    (folder / "in").mkdir(exist_ok=True)
    (folder / "in" / name).write_text("".join(line + "\n" for line in lines))


def test_write_stream_restarted_publishes_each_row_once(
    session: SparkSession, store: Store, url: str, tmp_path: Path
) -> None:
    """The second run repeats the last micro-batch: its record is lost, as if the driver was killed before it."""
    add_lines(tmp_path, "a.txt", '{"n": 1}', '{"n": 2}', "{broken")
    stream(session, tmp_path, url)
    assert sorted(journal(store).values()) == [b'{"n": 1}', b'{"n": 2}']
    for name in ("0", ".0.crc"):
        (tmp_path / "checkpoint/commits" / name).unlink(missing_ok=True)
    add_lines(tmp_path, "b.txt", '{"n": 3}')
    stream(session, tmp_path, url)
    assert sorted(journal(store).values()) == [b'{"n": 1}', b'{"n": 2}', b'{"n": 3}']
    [letter] = store.dead_letters.read()
    assert (letter.source, letter.body) == ("spark", b"{broken")
    assert store.journal.head() == 3


def test_write_stream_fails_at_an_invalid_row_if_it_is_told_to(
    session: SparkSession, store: Store, url: str, tmp_path: Path
) -> None:
    add_lines(tmp_path, "a.txt", "{broken")
    with pytest.raises(PySparkException, match="expected a key"):
        stream(session, tmp_path, url, on_error="fail")
    assert store.dead_letters.count() == 0


def test_write_stream_of_complete_results_raises(session: SparkSession, tmp_path: Path) -> None:
    add_lines(tmp_path, "a.txt", "{}")
    counts = session.readStream.text(str(tmp_path / "in")).groupBy("value").count()
    writing = counts.writeStream.format("tidings").outputMode("complete")
    writing = writing.option("checkpointLocation", str(tmp_path / "checkpoint"))
    with pytest.raises(PySparkException, match="only be appended to"):
        writing.start(sqlite_url(tmp_path / "store.db")).awaitTermination()
