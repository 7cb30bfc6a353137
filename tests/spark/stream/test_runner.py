"""The stream: changes of subscriptions, invalid events, extended schemas, folders and restarts."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import update

from tests.spark import workload
from tests.support.processes.streams import check_gapless, read_notifications, running
from tests.support.strategies.events import SCHEMA
from tidings.errors import SetupError
from tidings.model import Publication, Subscription
from tidings.spark.data_source.store_reader import StoreStreamReader
from tidings.spark.data_source.store_tables import JournalTable
from tidings.spark.stream.batch_processor import PublicationProcessor
from tidings.spark.stream.runner import run_stream
from tidings.spark.stream.stream_events import (
    Activity,
    ActivityKind,
    DeferredRelease,
    StreamProgress,
    StreamRepair,
    StreamStart,
)
from tidings.store.database import sqlite_url
from tidings.store.encoding import now_text
from tidings.store.store import open_store
from tidings.store.tables import counters, deferral_deadlines

pytestmark = pytest.mark.spark


@pytest.fixture
def url(tmp_path):
    return sqlite_url(tmp_path / "store.db")


@pytest.fixture
def store(url):
    with open_store(url) as created:
        yield created


def publish(store, *bodies, prefix="p"):
    first = store.journal.head()
    named = [Publication(f"{prefix}{first + i}", "application/json", b) for i, b in enumerate(bodies, 1)]
    store.journal.append(named)
    return {publication.id: publication.body for publication in named}


def read_pairs(store, *subscribers):
    return {row[1:] for rows in read_notifications(store, *subscribers).values() for row in rows}


def test_stream_uses_changed_subscriptions_while_running(session, tmp_path, store, url):
    """The name of the home folder has special characters."""
    home = tmp_path / "hö me #1 %20"
    store.subscriptions.add(Subscription("s1", "ana", "predicates", "price < 200"))
    publish(store, b'{"price": 180}')
    with running(session, home, url) as stream:
        stream.until(lambda: read_notifications(store, "ana")["ana"])
        store.subscriptions.add(Subscription("s2", "bo", "predicates", "price > 100 and not sold = true"))
        publish(store, b'{"price": 150}')
        stream.until(lambda: read_notifications(store, "bo")["bo"])
        store.subscriptions.remove(["s1"])
        publish(store, b'{"price": 160}')
        stream.until(lambda: len(read_notifications(store, "bo")["bo"]) == 2)
    assert read_notifications(store, "ana", "bo") == {
        "ana": [(1, "p1", "s1"), (2, "p2", "s1")],
        "bo": [(1, "p2", "s2"), (2, "p3", "s2")],
    }
    first = store.notifications.read("bo")[0]
    assert [(one.predicate, one.value, one.at) for one in first.because] == [
        ("price > 100", 150, "/price"),
        ("not (sold = true)", None, "/sold"),
    ]
    assert isinstance(stream.news[0], StreamStart)
    assert stream.activities[0] == Activity(ActivityKind.STARTING)
    assert isinstance(stream.news[-1], StreamProgress) and stream.news[-1].lag == 0
    assert stream.news[-1].total_events == 3
    assert [each.name for each in tmp_path.iterdir() if each.is_dir()] == [home.name]


def test_stream_with_delays_releases_deferred_notifications_only(session, tmp_path, store, url):
    """No client reads for bo and cy, so the stream releases their notifications."""
    store.subscriptions.add(Subscription("s1", "ana", "predicates", "n > 0"))
    store.subscriptions.add(Subscription("s2", "bo", "predicates", "n > 0", within=1))
    store.subscriptions.add(Subscription("s3", "cy", "predicates", "n > 0", within=3_600))
    publish(store, b'{"n": 1}', b'{"n": 2}')
    with running(session, tmp_path, url) as stream:
        stream.until(lambda: store.notifications.last_sequence("bo") == 2)
        assert store.notifications.last_sequence("ana") == 2
        publish(store, b'{"n": 3}')
        stream.until(lambda: store.notifications.last_sequence("bo") == 3)
        [progress] = stream.until(lambda: [each for each in stream.news if getattr(each, "position", 0) == 3])
        assert store.notifications.last_sequence("ana") == 3
    assert (progress.total_notifications, progress.total_deferred) == (3, 6)
    assert sum(one.notifications for one in stream.news if isinstance(one, DeferredRelease)) == 3
    assert (store.notifications.last_sequence("cy"), store.notifications.deferred("cy").count) == (0, 3)
    # An hour passes while no stream runs: due notifications are released when the stream starts, before anything else.
    events = []
    store.subscriptions.remove(["s3"])
    store.database.transact(
        lambda connection: connection.execute(update(deferral_deadlines).values(due=now_text()))
    )
    run_stream(session, tmp_path, url, once=True, listener=events.append)
    assert events[0] == DeferredRelease(3)
    assert read_notifications(store, "ana", "bo", "cy") == {
        who: [(n, f"p{n}", s) for n in (1, 2, 3)] for who, s in (("ana", "s1"), ("bo", "s2"), ("cy", "s3"))
    }


def test_stream_labelled_publications_notify_only_granted_subscribers(session, tmp_path, store, url):
    """Subscribers without the label are not notified by any task; a grant applies to later publications."""
    for id, who, within in (("s1", "ana", None), ("s2", "bo", None), ("s3", "ana", 3_600)):
        store.subscriptions.add(Subscription(id, who, "predicates", "price < 200", within))
    store.audiences.grant("ana", "board")
    store.journal.append(
        [
            Publication("p1", "application/json", b'{"price": 1}', audience="board"),
            Publication("p2", "application/json", b'{"price": 2}'),
            Publication("p3", "application/json", b'{"price": ', audience="board"),
        ]
    )
    with running(session, tmp_path, url) as stream:
        stream.until(lambda: read_notifications(store, "bo")["bo"])
        store.audiences.grant("bo", "board")
        store.audiences.revoke("ana", "board")
        store.journal.append([Publication("p4", "application/json", b'{"price": 4}', audience="board")])
        stream.until(lambda: len(read_notifications(store, "bo")["bo"]) == 2)
    assert read_notifications(store, "ana", "bo") == {
        "ana": [(1, "", "s1"), (2, "p2", "s1")],
        "bo": [(1, "p2", "s2"), (2, "p4", "s2")],
    }
    assert [one.kind for one in store.notifications.read("ana")] == ["withheld", "matched"]
    assert store.notifications.deferred("ana").count == 2
    assert [(one.publication, one.audience) for one in store.dead_letters.read()] == [("p3", "board")]
    store.database.transact(
        lambda connection: connection.execute(update(deferral_deadlines).values(due=now_text()))
    )
    assert [one.publication for one in store.notifications.read("ana", 2)] == ["", "p2"]


def test_stream_bad_events_are_dead_letters_and_others_match(session, tmp_path, store, url):
    store.subscriptions.add(Subscription("s1", "ana", "predicates", "price < 200"))
    publish(store, b'{"price": 1}', b'{"price": ', b"\xff", b'{"price": 2}')
    summary = run_stream(session, tmp_path, url, once=True)
    assert read_notifications(store, "ana")["ana"] == [(1, "p1", "s1"), (2, "p4", "s1")]
    assert [(one.publication, one.position, one.body) for one in store.dead_letters.read()] == [
        ("p2", 2, b'{"price": '),
        ("p3", 3, b"\xff"),
    ]
    assert all(one.reason and one.source == "journal" for one in store.dead_letters.read())
    assert (summary.total_events, summary.total_notifications, summary.total_dead_letters) == (4, 2, 2)


def test_stream_many_batches_agree_with_specification(session, tmp_path, store, url):
    subscriptions = workload.subscriptions(40)
    store.subscriptions.add_many(subscriptions)
    named = publish(store, *workload.events(95))
    summary = run_stream(session, tmp_path, url, once=True, most_publications=20)
    assert (summary.batch, summary.total_events, summary.position, summary.lag) == (4, 95, 95, 0)
    all_subscribers = sorted({subscription.subscriber for subscription in subscriptions})
    assert read_pairs(store, *all_subscribers) == workload.expected(named, subscriptions)
    check_gapless(store, *all_subscribers)
    order = [int(row[1][1:]) for row in read_notifications(store, "u0")["u0"]]
    assert order == sorted(order)
    # A store of an earlier version has no position of the match. Without its checkpoint the journal is read from the
    # start, but nobody is notified twice.
    before = read_notifications(store, *all_subscribers)
    named |= publish(store, b'{"symbol": "S1", "price": 9')
    for path in sorted((tmp_path / "checkpoint").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    forgotten = update(counters).where(counters.c.name == "match_position").values(value=0)
    store.database.transact(lambda connection: connection.execute(forgotten))
    summary = run_stream(session, tmp_path, url, once=True)
    assert (summary.total_events, summary.total_notifications, summary.total_dead_letters) == (96, 0, 1)
    assert read_notifications(store, *all_subscribers) == before


def test_stream_applies_extended_schema_with_next_batch(session, tmp_path, store, url):
    store.subscriptions.add(Subscription("s1", "ana", "predicates", "price < 5"))
    with running(session, tmp_path, url) as stream:
        publish(store, b'{"event_type": "furniture", "price": 1}')
        stream.until(lambda: read_notifications(store, "ana")["ana"])
        store.schemas.extend(SCHEMA)
        store.subscriptions.add(Subscription("s2", "ana", "predicates", "category is a 'furniture'"))
        publish(store, b'{"event_type": "furniture", "price": 1}')
        publish(store, b'{"event_type": "furniture", "price": 9, "category": "chair"}')
        stream.until(lambda: len(read_notifications(store, "ana")["ana"]) == 2)
    assert read_notifications(store, "ana")["ana"] == [(1, "p1", "s1"), (2, "p3", "s2")]
    (letter,) = store.dead_letters.read()
    assert (letter.publication, letter.facts["rule"]) == ("p2", "R2")


def test_stream_of_folder_matches_files(session, tmp_path, store, url):
    store.subscriptions.add(Subscription("s1", "ana", "predicates", "n > 0"))
    incoming = tmp_path / "in"
    incoming.mkdir()
    (incoming / "a.jsonl").write_text('{"n": 1}\n\n{"n": 2, "key": "k2"}\n{"n": }\n')
    home = tmp_path / "home"
    with running(session, home, url, folder=incoming, id_field="key", most_publications=2) as stream:
        stream.until(lambda: len(read_notifications(store, "ana")["ana"]) == 2)
        (tmp_path / "b.json").write_text('{"n": 3}')
        (tmp_path / "b.json").rename(incoming / "b.json")
        (tmp_path / "c.jsonl").write_text(json.dumps({"n": 4}))
        (tmp_path / "c.jsonl").rename(incoming / "c.jsonl")
        stream.until(lambda: len(read_notifications(store, "ana")["ana"]) == 4)
    assert {row[1] for row in read_notifications(store, "ana")["ana"]} == {
        "a.jsonl:1",
        "k2",
        "b.json",
        "c.jsonl:1",
    }
    assert [one.publication for one in store.dead_letters.read()] == ["a.jsonl:4"]
    assert max(one.events for one in stream.news if isinstance(one, StreamProgress)) <= 2
    # After a restart the stream may repeat the interrupted batch, but notifies nobody twice.
    summary = run_stream(session, home, url, folder=incoming, id_field="key", once=True)
    assert summary.total_notifications == 0
    assert [one.publication for one in store.dead_letters.read()] == ["a.jsonl:4"]
    check_gapless(store, "ana")
    private = [home, *(home / name for name in ("segments", "checkpoint", "batches"))]
    assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o700}


def test_stream_of_folder_unreadable_files_are_dead_letters(session, tmp_path, store, url):
    store.subscriptions.add(Subscription("s1", "ana", "predicates", "n > 0"))
    incoming = tmp_path / "in"
    incoming.mkdir()
    (incoming / "a.jsonl.gz").write_bytes(gzip.compress(b'{"n": 1}\n')[:-4])
    (incoming / "b.jsonl").write_text('{"n": 2}\n' * 4)
    home = tmp_path / "home"
    run_stream(session, home, url, folder=incoming, once=True)
    (letter,) = store.dead_letters.read()
    assert letter.publication == "a.jsonl.gz"
    assert letter.reason == "the file cannot be read: Truncated compressed stream (a.jsonl.gz)"
    assert [row[1] for row in read_notifications(store, "ana")["ana"]] == [
        f"b.jsonl:{n}" for n in range(1, 5)
    ]


def test_stream_closes_store(session, tmp_path, store, url, monkeypatch):
    opened = []
    monkeypatch.setattr(PublicationProcessor, "__init__", _recorded(PublicationProcessor.__init__, opened))
    publish(store, b"{}")
    run_stream(session, tmp_path, url, once=True)
    (live,) = opened
    assert live.store.database.engine.pool.checkedin() == 0


def _recorded(make, seen):
    def init(self, *given):
        make(self, *given)
        seen.append(self)

    return init


def test_stream_on_postgresql_notifies_subscribers(session, tmp_path, postgres_server):
    url = postgres_server.empty()
    subscriptions = workload.subscriptions(30)
    with open_store(url) as store:
        store.subscriptions.add_many(subscriptions)
        named = publish(store, *workload.events(60))
        named_bad = publish(store, b'{"symbol": ')
        summary = run_stream(session, tmp_path, url, once=True, most_publications=25)
        assert (summary.total_events, summary.total_dead_letters, summary.lag) == (61, 1, 0)
        all_subscribers = sorted({one.subscriber for one in subscriptions})
        assert read_pairs(store, *all_subscribers) == workload.expected(named, subscriptions)
        assert [one.publication for one in store.dead_letters.read()] == list(named_bad)
        check_gapless(store, *all_subscribers)


def test_stream_sources_of_one_home_have_separate_positions(session, tmp_path, store, url):
    store.subscriptions.add(Subscription("s1", "ana", "predicates", "exists n"))
    publish(store, b'{"n": 1}')
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "x.jsonl").write_text('{"n": 1, "id": "one1"}\n{"n": 2, "id": "one2"}\n')
    home = tmp_path / "home"
    for folder in (tmp_path / "one", None, tmp_path / "one"):
        run_stream(session, home, url, folder=folder, once=True)
    assert {row[1] for row in read_notifications(store, "ana")["ana"]} == {"p1", "one1", "one2"}
    publish(store, b'{"n": 2}')
    assert run_stream(session, home, url, once=True).total_notifications == 1


def test_stream_torn_checkpoint_is_repaired(session, tmp_path, store, url):
    store.subscriptions.add(Subscription("s1", "ana", "predicates", "exists n"))
    publish(store, b'{"n": 1}', b'{"n": }')
    run_stream(session, tmp_path, url, once=True)
    publish(store, b'{"n": 3}', b'{"n": 4}')
    # A power failure after the commit of the store and before the log is on disk; meanwhile the batch grows.
    (tmp_path / "checkpoint" / "journal" / "offsets" / "0").write_bytes(b"")
    (tmp_path / "checkpoint" / "journal" / "commits" / "0").unlink()
    events = []
    run_stream(session, tmp_path, url, once=True, listener=events.append)
    assert isinstance(events[0], StreamRepair) and "batch 0" in events[0].what
    assert read_notifications(store, "ana")["ana"] == [(1, "p1", "s1"), (2, "p3", "s1"), (3, "p4", "s1")]
    assert [one.publication for one in store.dead_letters.read()] == ["p2"]


def test_stream_reported_start_is_warm_and_holds_run_lock(session, tmp_path, store, url):
    """Without publications there is no task, but a batch has run and a worker has mapped the index."""
    store.subscriptions.add(Subscription("s1", "ana", "predicates", "not exists price"))
    store.subscriptions.add(Subscription("s2", "ana", "xpath", "/lot[price < 200]"))
    with running(session, tmp_path, url) as stream:
        started, batch = stream.until(lambda: stream.news[1:] and stream.news)
        assert started == StreamStart("journal", position=0, lag=0, segments=1)
        assert (batch.batch, batch.events) == (0, 0) and find_mapping_processes(tmp_path / "segments")
        with pytest.raises(SetupError, match="another stream runs"):
            run_stream(session, tmp_path, url)
    assert not read_notifications(store, "ana")["ana"], "the warm-up notifies nobody"


def find_mapping_processes(folder):
    """Return the other processes that have mapped a file of a folder."""
    names = []
    for process in set(Path("/proc").glob("[0-9]*")) - {Path("/proc") / str(os.getpid())}:
        with suppress(OSError):  # the process has ended meanwhile
            names += [process.name] if str(folder) in (process / "maps").read_text() else []
    return names


def test_stream_with_older_store_is_rejected(session, tmp_path, store, url):
    publish(store, b"{}", b"{}")
    run_stream(session, tmp_path, url, once=True)
    rejected = pytest.raises(SetupError, match="read up to position 2, but the last position is now 0")
    with rejected, running(session, tmp_path, sqlite_url(tmp_path / "other.db")) as stream:
        stream.until(lambda: stream.failure)
    with open_store(sqlite_url(tmp_path / "other.db")) as other:
        assert other.notifications.matched() == 0, "the position of the other store"


def test_stream_without_checkpoint_continues_at_position_of_store(session, tmp_path, store, url):
    """Late subscribers receive no earlier publications, and nobody is notified twice."""
    store.subscriptions.add(Subscription("s1", "early", "predicates", "price >= 0"))
    publish(store, b'{"price": 1}', b'{"price": 2}')
    run_stream(session, tmp_path, url, once=True)
    shutil.rmtree(tmp_path / "checkpoint")
    store.subscriptions.add(Subscription("s2", "late", "predicates", "price >= 0"))
    publish(store, b'{"price": 3}')
    events = []
    run_stream(session, tmp_path, url, once=True, listener=events.append)
    assert events[0].position == 2 and events[0].lag == 1
    assert [len(store.notifications.read(who)) for who in ("early", "late")] == [3, 1]


def test_next_offset_of_named_run_starts_with_batch(tmp_path, store, url):
    """Spark plans a batch when the offset changes. Without a name of the run and new publications it plans none."""
    publish(store, b"{}", b"{}")
    options, table = {"lock": str(tmp_path / "stream.lock")}, JournalTable()
    named, plain = (
        StoreStreamReader(url, table, options | {"run": "b"}),
        StoreStreamReader(url, table, options),
    )
    before = {"position": 2, "run": "a"}
    offset = named.next_offset(before)
    assert offset == {"position": 2, "run": "b"} and named.partitions(before, offset) == []
    assert named.next_offset(offset) == offset
    assert plain.next_offset(before) == before
