"""Streams from any source to any sink: live subscriptions, rejected rows, and each micro-batch once.

The last two tests run `tidings run --source` as a process: to kill it, and with a real Kafka broker.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from time import sleep
from uuid import uuid4

import pyarrow.parquet as parquet
import pytest
from confluent_kafka import Consumer, Producer
from pyspark.sql import SparkSession

from tests.faults.parts import processes
from tests.spark import workload
from tests.support.packages import Unavailable, maven_archive
from tests.support.processes.command_line import start_anew
from tests.support.processes.streams import Running
from tidings.errors import InputError, SetupError
from tidings.events.schema.files import parts_of_text
from tidings.model import Subscription
from tidings.reference_data.declarations import declare
from tidings.spark.batch.spark_table import SINK, SOURCE, Table
from tidings.spark.dataframe.environment import PublishedSubscriptions
from tidings.spark.stream.stream_events import StreamStart, TableProgress
from tidings.spark.stream.table_stream import processor
from tidings.spark.stream.table_stream.definition import TableStream
from tidings.spark.stream.table_stream.sinks import FileSink
from tidings.spark.stream.table_stream.subscription_publisher import KEPT_VERSIONS, SubscriptionPublisher
from tidings.spark.stream.table_stream.table_runner import measure_lag, run_table_stream
from tidings.store.database import sqlite_url
from tidings.store.store import open_store

pytestmark = pytest.mark.spark

SEED = int(os.environ.get("SEED", str(random.SystemRandom().randrange(1_000_000))))
CONNECTOR = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0:jar",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0:jar",
    "org.apache.kafka:kafka-clients:3.9.1:jar",
    "org.apache.commons:commons-pool2:2.12.1:jar",
)
"""Jars of the newest connector that exists, and of what it needs."""

SCHEMA = """
attributes: {price: numeric, order_id: string, region: string}
event_types:
  order: {attributes: {price: mandatory, order_id: mandatory, region: optional}}
"""


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
    source, sink = Table(str(tmp_path / "in"), "json"), Table(str(tmp_path / "out"))
    return TableStream(tmp_path / "home", url, source, sink)


def subscribe(store, id, text, subscriber="ana"):
    store.subscriptions.add(Subscription(id, subscriber, "predicates", text))


def put(stream, name, *lines):
    """Move a file with these lines into the source."""
    folder = Path(stream.source.address)
    (folder.parent / name).write_text("".join(f"{line}\n" for line in lines))
    (folder.parent / name).rename(folder / name)


def pairs(session: SparkSession, stream):
    rows = Table(stream.sink.address, "parquet").read(session).collect()
    found = [(row.publication, row.subscription) for row in rows]
    assert len(set(found)) == len(found), "a match was written twice"
    return set(found)


@contextmanager
def running(session, stream):
    state = Running()

    def work():
        try:
            run_table_stream(session, stream, stop=state.stop, listener=state.hear)
        except BaseException as failure:  # noqa: BLE001 - it is raised again, in the thread of the test
            state.failure = failure

    thread = Thread(target=work)
    thread.start()
    try:
        yield state
    finally:
        state.stop.set()
        thread.join()
    if state.failure is not None:
        raise state.failure


def test_table_stream_matches_files_with_the_subscriptions_of_a_store(session, store, stream):
    wanted, bodies = workload.subscriptions(40), workload.events(60)
    store.subscriptions.add_many(wanted)
    named = {f"e{n}": json.dumps({**json.loads(body), "id": f"e{n}"}) for n, body in enumerate(bodies)}
    put(stream, "a.jsonl", *list(named.values())[:30])
    put(stream, "b.jsonl", *list(named.values())[30:])
    done = run_table_stream(session, stream, once=True)
    expected = workload.expected({name: body.encode() for name, body in named.items()}, wanted)
    assert pairs(session, stream) == expected
    assert (done.total_publications, done.total_matches, done.total_rejects) == (60, len(expected), 0)
    again = run_table_stream(session, stream, once=True)
    assert again == TableProgress(), "what was read is not read again"


def test_table_stream_subscriptions_count_from_the_next_batch_on(session, store, stream):
    subscribe(store, "first", "n >= 0")
    put(stream, "a.jsonl", '{"id": "a", "n": 1}')
    with running(session, stream) as state:
        [started, progress] = state.until(lambda: len(state.news) > 1 and state.news)
        assert isinstance(started, StreamStart)
        subscribe(store, "second", "n > 1")
        store.subscriptions.remove(["first"])
        put(stream, "b.jsonl", '{"id": "b", "n": 2}')
        state.until(lambda: len(state.news) > 2)
    assert pairs(session, stream) == {("a", "first"), ("b", "second")}
    assert (progress.subscriptions, progress.publications, progress.matches) == (1, 1, 1)
    versions = [news.version for news in state.news[1:]]
    assert versions[1] > versions[0]


def test_table_stream_rejected_rows_become_dead_letters_with_their_bodies(session, store, stream):
    subscribe(store, "s", "n = 1")
    put(stream, "a.jsonl", '{"id": "a", "n": 1}', "{bad", '{"id": "c", "n": "', "{bad")
    done = run_table_stream(session, stream, once=True)
    assert pairs(session, stream) == {("a", "s")}
    assert (done.total_publications, done.total_rejects) == (4, 3)
    letters = store.dead_letters.read()
    assert {(letter.source, letter.body) for letter in letters} == {
        (f"source {stream.source.address}", b"{bad"),
        (f"source {stream.source.address}", b'{"id": "c", "n": "'),
    }
    assert {letter.reason for letter in letters} == {
        "expected a key (column 2); accepted: a string in double quotes",
        'unterminated string (column 18); accepted: a closing "',
    }


def test_table_stream_typed_columns_keep_explain_and_reject(session, store, stream, tmp_path):
    subscribe(store, "cheap", "price < 5")
    store.schemas.extend(parts_of_text(SCHEMA))
    rows = [("o1", "order", 3.0, "north"), ("o2", "order", 30.0, "south"), ("o3", "order", None, "east")]
    frame = session.createDataFrame(rows, "order_id string, event_type string, price double, region string")
    frame.coalesce(1).write.parquet(str(tmp_path / "orders"))
    stream = TableStream(
        stream.home,
        stream.store,
        Table(str(tmp_path / "orders")),
        Table(str(tmp_path / "matches"), "json"),
        id="order_id",
        explain=True,
        keep=("region",),
    )
    run_table_stream(session, stream, once=True)
    [row] = session.read.json(str(tmp_path / "matches")).collect()
    assert (row.publication, row.region, row.explanation[0].predicate) == ("o1", "north", "price < 5")
    [letter] = store.dead_letters.read()
    assert letter.publication == "o3"
    assert json.loads(letter.body) == {"order_id": "o3", "event_type": "order", "region": "east"}


@pytest.mark.parametrize("step", ["write", "publish", "report"])
def test_table_stream_a_batch_that_failed_is_repeated_with_its_subscriptions(
    session, store, stream, monkeypatch, step
):
    """As after a kill: before, within and after the files are moved; the letters are written by then."""
    subscribe(store, "first", "n = 1")
    put(stream, "a.jsonl", '{"id": "a", "n": 1}', "{bad")
    with monkeypatch.context() as patch:
        fail_after(patch, step)
        with pytest.raises(SetupError, match="ended"):
            run_table_stream(session, stream, once=True)
    subscribe(store, "second", "n = 1")
    put(stream, "b.jsonl", '{"id": "b", "n": 1}')
    done = run_table_stream(session, stream, once=True)
    assert pairs(session, stream) == {("a", "first"), ("b", "first"), ("b", "second")}
    assert (done.total_publications, done.total_matches, done.total_rejects) == (3, 3, 1)
    assert len(store.dead_letters.read()) == 1
    assert not list(Path(stream.sink.address, "_tidings").glob("*")), "an unfinished attempt is left"


def fail_after(patch, step):
    """Have a step of the first batch fail once it is done, or half done."""
    owner = processor.TableProcessor if step == "report" else FileSink
    name = "_report" if step == "report" else step
    original = getattr(owner, name)

    def failing(self, *arguments):
        original(self, *arguments)
        raise RuntimeError("killed")

    patch.setattr(owner, name, failing)


def test_table_stream_a_second_one_on_the_same_source_and_sink_is_refused(session, store, stream):
    subscribe(store, "s", "n = 1")
    with running(session, stream) as state:
        state.until(lambda: state.news)
        with pytest.raises(SetupError, match="another stream"):
            run_table_stream(session, stream, once=True)


def test_table_stream_without_a_sink_publishes_into_the_journal(session, store, stream):
    put(stream, "a.jsonl", '{"key": "a", "n": 1}', "{bad")
    stream = TableStream(stream.home, stream.store, stream.source, id="key")
    done = run_table_stream(session, stream, once=True)
    assert done.total_publications == 2
    assert [publication.id for publication in store.journal.read(0)] == ["a"]
    assert [letter.body for letter in store.dead_letters.read()] == [b"{bad"]


def test_table_stream_segments_are_published_elsewhere(session, store, stream, tmp_path):
    subscribe(store, "s", "n = 1")
    put(stream, "a.jsonl", '{"id": "a", "n": 1}')
    elsewhere = TableStream(
        stream.home, stream.store, stream.source, stream.sink, segments=str(tmp_path / "shared")
    )
    run_table_stream(session, elsewhere, once=True)
    assert pairs(session, stream) == {("a", "s")}
    assert list((tmp_path / "shared").glob("*/versions/*.json"))


def test_table_stream_appends_to_a_table_of_the_catalog(session, store, stream, tmp_path):
    subscribe(store, "s", "n > 0")
    sink = Table("table:live_matches", "parquet", {"path": str(tmp_path / "table")})
    stream = TableStream(stream.home, stream.store, stream.source, sink)
    try:
        for n in (1, 2):
            put(stream, f"{n}.jsonl", f'{{"id": "e{n}", "n": {n}}}')
            assert run_table_stream(session, stream, once=True).total_matches == 1
        assert {row.publication for row in session.table("live_matches").collect()} == {"e1", "e2"}
    finally:
        session.sql("DROP TABLE IF EXISTS live_matches")


def test_publisher_publishes_changes_only(store, tmp_path):
    location = tmp_path / "published"
    subscribe(store, "first", "n = 1")
    publisher = SubscriptionPublisher(tmp_path / "index", str(location), store)
    first = publisher.refresh()
    assert publisher.refresh() == first
    [segment] = (location / "segments").iterdir()
    subscribe(store, "second", "n = 2")
    store.subscriptions.remove(["first"])
    second = publisher.refresh()
    assert (second, publisher.subscriptions) == (first + 1, 1)
    again = SubscriptionPublisher(tmp_path / "index", str(location), store)
    assert again.refresh() == second, "what is published already is not published again"
    store.schemas.extend(parts_of_text(SCHEMA))
    assert again.refresh() == second + 1
    assert segment.exists(), "a version that is kept needs this segment"


def test_publisher_keeps_the_last_versions(store, tmp_path):
    publisher = SubscriptionPublisher(tmp_path / "index", str(tmp_path / "published"), store)
    for n in range(KEPT_VERSIONS + 3):
        subscribe(store, f"s{n}", f"n = {n}")
        newest = publisher.refresh()
    kept = PublishedSubscriptions.open(tmp_path / "published").list_versions()
    assert kept == list(range(newest - KEPT_VERSIONS + 1, newest + 1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"keep": ("colour",)}, "no such column"),
        ({"value": "body"}, "no such column"),
        ({"source": Table("nowhere", "json")}, "no such file"),
        ({"source": Table(__file__, "text")}, "files of a folder"),
        ({"sink": Table(__file__, "json")}, "a folder"),
    ],
)
def test_table_stream_mistakes_are_errors_before_it_starts(session, store, stream, change, message):
    fields = {"home": stream.home, "store": stream.store, "source": stream.source, "sink": stream.sink}
    with pytest.raises(InputError, match=message):
        run_table_stream(session, TableStream(**fields | change), once=True)


def test_table_stream_sink_that_fails_is_named_in_the_error(session, store, stream):
    put(stream, "a.jsonl", '{"id": "a", "n": 1}')
    stream = TableStream(stream.home, stream.store, stream.source, Table(stream.sink.address, "nosuch"))
    with pytest.raises(SetupError, match="nosuch") as caught:
        run_table_stream(session, stream, once=True)
    assert "FOREACH_BATCH" not in str(caught.value)


def test_table_stream_reference_tables_are_refused(session, store, stream, tmp_path):
    (tmp_path / "cities.csv").write_text("city,country\nOslo,NO\n")
    store.references.add(declare("cities", str(tmp_path / "cities.csv"), "city", "city"))
    put(stream, "a.jsonl", '{"id": "a", "n": 1}')
    with pytest.raises(InputError, match="reference tables"):
        run_table_stream(session, stream, once=True)


def test_kafka_address_names_servers_and_topic():
    source = Table.at("kafka://one:9092,two/orders", SOURCE, None, {"startingOffsets": "latest"})
    assert (source.address, source.format) == ("kafka://one:9092,two:9092/orders", "kafka")
    assert source.options == {
        "kafka.bootstrap.servers": "one:9092,two:9092",
        "subscribe": "orders",
        "startingOffsets": "latest",
    }
    assert Table.at("kafka://one/matches", SINK).options["topic"] == "matches"
    assert Table.at("orders/", SOURCE, "delta") == Table("orders/", "delta")


@pytest.mark.parametrize("given", [("kafka://one/t?sasl.username=x", None), ("kafka://one/t", "json")])
def test_kafka_address_with_what_the_connector_has_not_is_refused(given):
    address, format = given
    with pytest.raises(InputError):
        Table.at(address, SOURCE, format)


@pytest.mark.parametrize(
    ("end", "latest", "lag"),
    [
        ({"t": {"0": 5, "1": 7}}, {"t": {"0": 9, "1": 7, "2": 3}}, 7),
        ({"logOffset": 3}, None, None),
        ({"logOffset": 3}, {"logOffset": 4}, None),
    ],
)
def test_measure_lag_counts_messages_of_all_partitions(end, latest, lag):
    assert measure_lag({"sources": [{"endOffset": end, "latestOffset": latest}]}) == lag


def test_measure_lag_before_the_first_batch_is_unknown():
    assert measure_lag({}) is None


@pytest.mark.long
@pytest.mark.faults
@pytest.mark.timeout(900)
def test_table_stream_killed_at_any_moment_writes_each_match_once(store, stream, tmp_path):
    """Killed with its JVM, as when the machine goes, and alone: then its JVM lives on for a moment."""
    print(f"SEED={SEED}")  # noqa: T201 - how to see a failure again
    dice = random.Random(SEED)
    wanted, bodies = workload.subscriptions(20), workload.events(60)
    store.subscriptions.add_many(wanted)
    named = {f"e{n}": json.dumps({**json.loads(body), "id": f"e{n}"}) for n, body in enumerate(bodies)}
    for first in range(0, 60, 4):
        put(stream, f"{first}.jsonl", *list(named.values())[first : first + 4], f"{{bad {first}")
    words = ["run", "--source", stream.source.address, "--sink", stream.sink.address, "--format", "json"]
    words += ["--home", str(stream.home), "--store", stream.store, "--master", "local[2]"]
    words += ["--option", "maxFilesPerTrigger=1"]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    for has_jvm in (True, False, True):
        running = start_anew(*words, cwd=tmp_path, env=environment, start_new_session=True)
        lines = [running.stdout.readline() for _ in range(dice.randrange(1, 4))]
        assert all(lines), running.stderr.read()
        sleep(dice.random() / 3)
        for each in [each for each in processes() if each.session == running.pid]:
            if has_jvm or each.pid == running.pid:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(each.pid, signal.SIGKILL)
        running.communicate()
    last = start_anew(*words, "--once", cwd=tmp_path, env=environment)
    _, said = last.communicate(timeout=300)
    assert last.returncode == 0, said
    found = parquet.read_table(stream.sink.address).select(["publication", "subscription"]).to_pylist()
    pairs = [(row["publication"], row["subscription"]) for row in found]
    assert len(pairs) == len(set(pairs)), "a match was written twice"
    assert set(pairs) == workload.expected({name: body.encode() for name, body in named.items()}, wanted)
    assert {letter.body for letter in store.dead_letters.read()} == {
        f"{{bad {first}".encode() for first in range(0, 60, 4)
    }


@pytest.fixture
def connector(tmp_path):
    """The folder with the jars of the Kafka connector."""
    folder = tmp_path / "jars"
    folder.mkdir()
    try:
        for artifact in CONNECTOR:
            jar = maven_archive(artifact)
            (folder / jar.name).symlink_to(jar)
    except Unavailable as missing:
        pytest.skip(f"no connector: {missing}")
    return folder


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.xdist_group("kafka")
def test_table_stream_from_topic_to_topic_follows_subscriptions(
    kafka_broker, connector, store, url, tmp_path
):
    source, sink = kafka_broker.empty(partitions=2), kafka_broker.empty()
    store.subscriptions.add(Subscription("first", "ana", "predicates", "n >= 0"))
    produce(kafka_broker, source, {"id": "a", "n": 1}, {"id": "b", "n": 2})
    words = ["run", "--source", source, "--sink", sink, "--jars", str(connector), "--keep", "topic"]
    words += ["--home", str(tmp_path / "home"), "--store", url, "--master", "local[2]"]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    running = start_anew(*words, cwd=tmp_path, env=environment, process_group=0)
    try:
        messages = consume(kafka_broker, sink, 2, running)
        assert {(key, value["publication"], value["topic"]) for key, value in messages} == {
            ("ana", name, source.rpartition("/")[2]) for name in "ab"
        }
        store.subscriptions.add(Subscription("second", "bo", "predicates", "n > 2"))
        produce(kafka_broker, source, {"id": "c", "n": 3}, b"{bad")
        messages = consume(kafka_broker, sink, 4, running)
        assert {(key, value["publication"]) for key, value in messages[2:]} == {("ana", "c"), ("bo", "c")}
        assert "lag 0 " in running.stdout.readline()
        running.send_signal(signal.SIGINT)
        said, problems = running.communicate(timeout=60)
        assert running.returncode == 130, problems
        assert "4 publications, 4 matches, 1 reject" in said
    finally:
        running.kill()
        running.communicate()
    assert [(letter.source, letter.body) for letter in store.dead_letters.read()] == [
        (f"source {source}", b"{bad")
    ]


def produce(broker, url, *events):
    producer = Producer(broker.at)
    for event in events:
        value = event if isinstance(event, bytes) else json.dumps(event).encode()
        producer.produce(url.rpartition("/")[2], value)
    assert producer.flush(60) == 0


def consume(broker, url, count, running):
    """Return the first messages of a topic; fail if the stream that writes them ends."""
    consumer = Consumer(broker.at | {"group.id": uuid4().hex, "auto.offset.reset": "earliest"})
    consumer.subscribe([url.rpartition("/")[2]])
    messages = []
    while len(messages) < count:
        assert running.poll() is None, running.stderr.read()
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            messages.append((message.key().decode(), json.loads(message.value())))
    consumer.close()
    return messages
