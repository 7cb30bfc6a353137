"""The stream of metadata applies each entry of the log once, as a provider without Spark."""

from __future__ import annotations

import pytest

from tests.support.paths import ROOT
from tests.support.processes.streams import running
from tidings.errors import SetupError
from tidings.metadata.log import LogDraft, Operation
from tidings.metadata.provider.provider import Provider
from tidings.metadata.spark.metadata_source import MetadataLogReader
from tidings.metadata.spark.metadata_stream import MetadataBatchProcessor, MetadataStream
from tidings.spark.stream.runner import run_stream
from tidings.spark.stream.stream_events import MetadataProgress
from tidings.store.database import sqlite_url
from tidings.store.store import open_store

pytestmark = pytest.mark.spark
EXAMPLES = ROOT / "examples" / "metadata"
SCHEMA = (EXAMPLES / "schema.ttl").read_bytes()
TURTLE = "text/turtle"
RULES = {
    "large": "search CycleProvider c register c where c.serverInformation.memory > 64",
    "ours": "search CycleProvider c register c where c.serverHost contains 'passau'",
    "twins": "search CycleProvider c, CycleProvider d register c"
    " where c.serverPort = d.serverPort and d.serverHost = 'h3'",
    "all": "search ServerInformation s register s",
}


def uri(n: int) -> str:
    return f"http://example.org/{n}.rdf"


def body(n: int, memory: object) -> bytes:
    """Return a document whose host has the server information of the document before it."""
    return f"""@prefix s: <http://example.org/servers#> .
        <#host> a s:CycleProvider ; s:serverHost "h{n}{".passau" if n % 3 else ""}" ; s:serverPort {n % 4} ;
            s:serverInformation <{uri(n - 1)}#info> .
        <#info> a s:ServerInformation ; s:memory {memory} .""".encode()


def document(n: int, memory: object) -> LogDraft:
    return LogDraft(Operation.REGISTER, uri(n), TURTLE, body(n, memory))


def log(length: int) -> list[LogDraft]:
    """Generate a log with changes, removals, a growing schema and unreadable documents.

    One document becomes readable later.
    """
    drafts = [document(n % 9, 32 * (n % 5)) for n in range(length)]
    drafts[5] = LogDraft(Operation.REMOVE, uri(3))
    drafts[7] = LogDraft(Operation.REGISTER, uri(77), TURTLE, b"<#host> a")
    drafts[8] = document(8, '"much"')
    disk = LogDraft(Operation.REGISTER, uri(9), TURTLE, b"<#d> a <http://example.org/servers#Disk> .")
    drafts[10] = drafts[14] = disk
    drafts[12] = LogDraft(Operation.SCHEMA, "", TURTLE, SCHEMA + b":Disk a rdfs:Class .")
    return drafts


def state(store):
    """Return everything that results from a log."""
    provider = Provider(store)
    notifications = store.notifications.read("ana", limit=10_000)
    return (
        provider.position,
        {name: store.metadata.resources(name) for name, _ in provider.documents()},
        {name: provider.results(name) for name in RULES},
        [(one.sequence, one.subscription, one.publication, one.kind, one.because) for one in notifications],
        [(one.publication, one.reason, one.position, one.body) for one in store.dead_letters.read()],
    )


@pytest.fixture
def url(tmp_path):
    return sqlite_url(tmp_path / "store.db")


@pytest.fixture
def store(url):
    with open_store(url) as opened:
        yield opened


@pytest.fixture
def other(tmp_path):
    """A store without Spark."""
    with open_store(sqlite_url(tmp_path / "other.db")) as opened:
        yield opened


def begin(*stores):
    for each in stores:
        provider = Provider(each)
        provider.load_schema(SCHEMA, TURTLE)
        provider.add_rules(RULES, "ana")


def test_stream_equals_provider_without_spark(session, tmp_path, store, url, other):
    begin(store, other)
    for each in (store, other):
        each.metadata.log.append(log(40))
    events = []
    run_stream(session, tmp_path / "home", url, metadata_batch=9, once=True, listener=events.append)
    Provider(other).catch_up(9)
    assert state(store) == state(other)
    assert len(store.dead_letters.read()) == 3
    last = [one for one in events if isinstance(one, MetadataProgress)][-1]
    assert (last.batch, last.position, last.lag, last.total_entries) == (4, 41, 0, 40)
    assert last.total_dead_letters == 3 and last.total_entered and last.total_left


def test_log_reader_starts_after_applied_position(tmp_path, store, url):
    """Entries applied by another process or checkpoint are skipped, and so are trimmed ones."""
    begin(store)
    provider = Provider(store)
    store.metadata.log.append(document(n, 64) for n in range(600))
    reader = MetadataLogReader({"publications": "400", "lock": str(tmp_path / "lock"), "store_url": url})
    start = reader.initialOffset()
    assert reader.next_offset(start) == {"position": 401}
    parts = reader.partitions(start, {"position": 401})
    assert [(part.after, part.upto) for part in parts] == [(1, 251), (251, 401)]
    rows = [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
    assert [row["position"] for row in rows] == list(range(2, 402))
    assert rows[0] == {
        "position": 2,
        "what": "register",
        "uri": uri(0),
        "media_type": TURTLE,
        "body": body(0, 64),
    }
    provider.catch_up(500)
    assert [row for batch in reader.read(parts[0]) for row in batch.to_pylist()] != []
    store.metadata.log.trim(300)
    # The batch was planned before another process applied it and trimmed the log.
    assert [list(reader.rows(part))[:1] for part in parts] == [
        [],
        [(301, "register", uri(299), TURTLE, body(299, 64))],
    ]
    assert reader.partitions(start, {"position": 401}) == []
    assert reader.next_offset({"position": 401}) == {"position": 601}
    # `--once` ends although another process keeps appending.
    reader.stop_at_head()
    provider.register(uri(700), body(700, 64), TURTLE)
    assert reader.next_offset({"position": 401}) == {"position": 601}
    assert reader.next_offset({"position": 601}) == {"position": 601}


def test_process_batch_applied_by_other_process_counts_once(session, tmp_path, store, url, other):
    begin(store, other)
    for each in (store, other):
        each.metadata.log.append(log(30))
    stream = MetadataStream(tmp_path, url)
    processor, offsets = MetadataBatchProcessor(stream), stream.checkpoint / "offsets"
    offsets.mkdir(parents=True)
    columns = "position long, what string, uri string, media_type string, body binary"

    def process(batch, after, count):
        entries = store.metadata.log.read(after, count)
        rows = [(one.position, one.what.value, one.uri, one.media_type, one.body) for one in entries]
        planned = f'v1\n{{"batchWatermarkMs":0}}\n{{"position": {after + count}}}'
        (offsets / str(batch)).write_text(planned)  # as Spark does before it requests a batch
        processor.process(session.createDataFrame(rows, columns), batch)

    process(0, 1, 10)
    process(0, 1, 10)  # Spark repeats a batch without a recorded commit
    Provider(other).catch_up(10)  # three batches of ten
    assert store.metadata.position() == 11
    # A rule is added and another removed after the tasks and before the batch is applied.
    apply_batch = processor._apply
    late = {"late": "search CycleProvider c register c where c.serverPort = 2"}

    def apply(*arguments):
        Provider(store).add_rules(late, "bo")
        Provider(store).remove_rules(["all"])
        return apply_batch(*arguments)

    processor._apply = apply
    process(1, 11, 10)
    processor._apply = apply_batch
    assert store.metadata.position() == 21
    # A direct registration applies what is before it; the batch that comes then has some of it.
    Provider(store).register(uri(50), body(50, 128), TURTLE)
    assert store.metadata.position() == 32
    process(2, 21, 11)
    Provider(other).register(uri(50), body(50, 128), TURTLE)
    Provider(other).remove_rules(["all"])
    Provider(other).add_rules(late, "bo")
    processor.close()
    assert {name: store.metadata.results(name) for name in ("large", "ours", "twins", "late")} == {
        name: other.metadata.results(name) for name in ("large", "ours", "twins", "late")
    }
    assert store.metadata.results("late")
    assert Provider(store).documents() == Provider(other).documents()
    assert len(store.dead_letters.read()) == 3
    sequences = [one.sequence for one in store.notifications.read("ana", limit=1_000)]
    assert sequences == list(range(1, len(sequences) + 1))


def test_stream_starts_query_when_log_has_entries(session, tmp_path, store, url):
    """While the log is empty there is no second query; schema and documents come through the log."""
    provider = Provider(store)
    with running(session, tmp_path, url) as stream:
        stream.until(lambda: stream.news)
        provider.append([LogDraft(Operation.SCHEMA, "", TURTLE, SCHEMA), document(1, 128), document(2, 32)])
        stream.until(lambda: provider.position == 3)
        provider.add_rules(RULES, "ana")
        provider.append([document(3, 128)])
        stream.until(lambda: provider.position == 4)
        assert [one.uri for one in provider.results("large")] == [f"{uri(2)}#host"]
        provider.append([document(2, 96)])
        stream.until(lambda: provider.position == 5)
        [last] = stream.until(lambda: [one for one in stream.news if getattr(one, "position", 0) == 5])
    assert (last.lag, last.total_entries, last.entered) == (0, 5, 1)
    assert [one.uri for one in provider.results("large")] == [f"{uri(2)}#host", f"{uri(3)}#host"]


def test_stream_failure_of_metadata_query_ends_all_queries(session, tmp_path, store, url):
    """The query of the publications has nothing to do, and would run forever."""
    begin(store)
    Provider(store).append([document(1, 128)])
    (tmp_path / "batches").write_text("in the way")
    with pytest.raises(SetupError, match="the stream ended"):
        run_stream(session, tmp_path, url)
    assert not session.streams.active and store.metadata.position() == 1
