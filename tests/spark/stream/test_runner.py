"""The stream: changing subscriptions, bad events, extended schemas, folders, and restarts."""

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
from tests.support.processes.streams import check_gapless, running, told
from tests.support.strategies.events import SCHEMA
from tidings.errors import SetupError
from tidings.model import Publication, Subscription
from tidings.spark.sources.journal import JournalReader
from tidings.spark.stream.batch_processor import PublicationProcessor
from tidings.spark.stream.progress import (
    Activity,
    ActivityKind,
    DeferredRelease,
    StreamProgress,
    StreamRepair,
    StreamStart,
)
from tidings.spark.stream.runner import run_stream
from tidings.store.database import sqlite_url
from tidings.store.encoding import now_text
from tidings.store.store import open_store
from tidings.store.tables import counters, promises

pytestmark = pytest.mark.spark


@pytest.fixture
def url(tmp_path):
    return sqlite_url(tmp_path / "store.db")


@pytest.fixture
def store(url):
    with open_store(url) as opened:
        yield opened


def publish(store, *bodies, prefix="p"):
    first = store.journal.head()
    named = [Publication(f"{prefix}{first + i}", "application/json", b) for i, b in enumerate(bodies, 1)]
    store.journal.append(named)
    return {one.id: one.body for one in named}


def pairs(store, *subscribers):
    return {row[1:] for rows in told(store, *subscribers).values() for row in rows}


def test_stream_follows_subscriptions_while_it_runs(session, tmp_path, store, url):
    """Whatever the home folder is called."""
    home = tmp_path / "hö me #1 %20"
    store.subscriptions.add(Subscription("s1", "ana", "predicates", "price < 200"))
    publish(store, b'{"price": 180}')
    with running(session, home, url) as stream:
        stream.until(lambda: told(store, "ana")["ana"])
        store.subscriptions.add(Subscription("s2", "bo", "predicates", "price > 100 and not sold = true"))
        publish(store, b'{"price": 150}')
        stream.until(lambda: told(store, "bo")["bo"])
        store.subscriptions.remove(["s1"])
        publish(store, b'{"price": 160}')
        stream.until(lambda: len(told(store, "bo")["bo"]) == 2)
    assert told(store, "ana", "bo") == {
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


def test_stream_with_delays_releases_them_and_delays_nobody_else(session, tmp_path, store, url):
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
        [progress] = stream.until(lambda: [one for one in stream.news if getattr(one, "position", 0) == 3])
        assert store.notifications.last_sequence("ana") == 3
    assert (progress.total_notifications, progress.total_held) == (3, 6)
    assert sum(one.notifications for one in stream.news if isinstance(one, DeferredRelease)) == 3
    assert (store.notifications.last_sequence("cy"), store.notifications.held("cy").count) == (0, 3)
    # An hour passes while nothing runs: what is due goes out when the stream starts, before it does anything else.
    heard = []
    store.subscriptions.remove(["s3"])
    store.database.transact(lambda connection: connection.execute(update(promises).values(due=now_text())))
    run_stream(session, tmp_path, url, once=True, listener=heard.append)
    assert heard[0] == DeferredRelease(3)
    assert told(store, "ana", "bo", "cy") == {
        who: [(n, f"p{n}", s) for n in (1, 2, 3)] for who, s in (("ana", "s1"), ("bo", "s2"), ("cy", "s3"))
    }


def test_stream_with_labels_notifies_only_granted_subscribers(session, tmp_path, store, url):
    """Subscribers without the label are not notified by any task; a grant applies from then on."""
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
        stream.until(lambda: told(store, "bo")["bo"])
        store.audiences.grant("bo", "board")
        store.audiences.revoke("ana", "board")
        store.journal.append([Publication("p4", "application/json", b'{"price": 4}', audience="board")])
        stream.until(lambda: len(told(store, "bo")["bo"]) == 2)
    assert told(store, "ana", "bo") == {
        "ana": [(1, "", "s1"), (2, "p2", "s1")],
        "bo": [(1, "p2", "s2"), (2, "p4", "s2")],
    }
    assert [one.kind for one in store.notifications.read("ana")] == ["withheld", "matched"]
    assert store.notifications.held("ana").count == 2
    assert [(one.publication, one.audience) for one in store.dead_letters.read()] == [("p3", "board")]
    store.database.transact(lambda connection: connection.execute(update(promises).values(due=now_text())))
    assert [one.publication for one in store.notifications.read("ana", 2)] == ["", "p2"]


def test_stream_with_bad_events_writes_dead_letters_and_continues(session, tmp_path, store, url):
    store.subscriptions.add(Subscription("s1", "ana", "predicates", "price < 200"))
    publish(store, b'{"price": 1}', b'{"price": ', b"\xff", b'{"price": 2}')
    done = run_stream(session, tmp_path, url, once=True)
    assert told(store, "ana")["ana"] == [(1, "p1", "s1"), (2, "p4", "s1")]
    assert [(one.publication, one.position, one.body) for one in store.dead_letters.read()] == [
        ("p2", 2, b'{"price": '),
        ("p3", 3, b"\xff"),
    ]
    assert all(one.reason and one.source == "journal" for one in store.dead_letters.read())
    assert (done.total_events, done.total_notifications, done.total_dead_letters) == (4, 2, 2)


def test_stream_of_many_batches_finds_what_the_definition_finds(session, tmp_path, store, url):
    wanted = workload.subscriptions(40)
    store.subscriptions.add_many(wanted)
    named = publish(store, *workload.events(95))
    done = run_stream(session, tmp_path, url, once=True, most_publications=20)
    assert (done.batch, done.total_events, done.position, done.lag) == (4, 95, 95, 0)
    everybody = sorted({one.subscriber for one in wanted})
    assert pairs(store, *everybody) == workload.expected(named, wanted)
    check_gapless(store, *everybody)
    order = [int(row[1][1:]) for row in told(store, "u0")["u0"]]
    assert order == sorted(order)
    # A store of an earlier version does not know how far it is matched. Without its checkpoint the journal is read from
    # the start: whoever was told is not told again.
    before = told(store, *everybody)
    named |= publish(store, b'{"symbol": "S1", "price": 9')
    for path in sorted((tmp_path / "checkpoint").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    forgotten = update(counters).where(counters.c.name == "matched").values(value=0)
    store.database.transact(lambda connection: connection.execute(forgotten))
    done = run_stream(session, tmp_path, url, once=True)
    assert (done.total_events, done.total_notifications, done.total_dead_letters) == (96, 0, 1)
    assert told(store, *everybody) == before


def test_stream_applies_an_extended_schema_with_the_next_batch(session, tmp_path, store, url):
    store.subscriptions.add(Subscription("s1", "ana", "predicates", "price < 5"))
    with running(session, tmp_path, url) as stream:
        publish(store, b'{"event_type": "furniture", "price": 1}')
        stream.until(lambda: told(store, "ana")["ana"])
        store.schemas.extend(SCHEMA)
        store.subscriptions.add(Subscription("s2", "ana", "predicates", "category is a 'furniture'"))
        publish(store, b'{"event_type": "furniture", "price": 1}')
        publish(store, b'{"event_type": "furniture", "price": 9, "category": "chair"}')
        stream.until(lambda: len(told(store, "ana")["ana"]) == 2)
    assert told(store, "ana")["ana"] == [(1, "p1", "s1"), (2, "p3", "s2")]
    (letter,) = store.dead_letters.read()
    assert (letter.publication, letter.facts["rule"]) == ("p2", "R2")


def test_stream_of_a_folder_matches_its_files(session, tmp_path, store, url):
    store.subscriptions.add(Subscription("s1", "ana", "predicates", "n > 0"))
    incoming = tmp_path / "in"
    incoming.mkdir()
    (incoming / "a.jsonl").write_text('{"n": 1}\n\n{"n": 2, "key": "k2"}\n{"n": }\n')
    home = tmp_path / "home"
    with running(session, home, url, folder=incoming, id_field="key", most_publications=2) as stream:
        stream.until(lambda: len(told(store, "ana")["ana"]) == 2)
        (tmp_path / "b.json").write_text('{"n": 3}')
        (tmp_path / "b.json").rename(incoming / "b.json")
        (tmp_path / "c.jsonl").write_text(json.dumps({"n": 4}))
        (tmp_path / "c.jsonl").rename(incoming / "c.jsonl")
        stream.until(lambda: len(told(store, "ana")["ana"]) == 4)
    assert {row[1] for row in told(store, "ana")["ana"]} == {"a.jsonl:1", "k2", "b.json", "c.jsonl:1"}
    assert [one.publication for one in store.dead_letters.read()] == ["a.jsonl:4"]
    assert max(one.events for one in stream.news if isinstance(one, StreamProgress)) <= 2
    # After a restart it may repeat the interrupted batch, and notifies nobody twice.
    done = run_stream(session, home, url, folder=incoming, id_field="key", once=True)
    assert done.total_notifications == 0
    assert [one.publication for one in store.dead_letters.read()] == ["a.jsonl:4"]
    check_gapless(store, "ana")
    private = [home, *(home / name for name in ("segments", "checkpoint", "batches"))]
    assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o700}


def test_stream_of_a_folder_with_unreadable_files_writes_dead_letters(session, tmp_path, store, url):
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
    assert [row[1] for row in told(store, "ana")["ana"]] == [f"b.jsonl:{n}" for n in range(1, 5)]


def test_stream_closes_the_store_it_opened(session, tmp_path, store, url, monkeypatch):
    opened = []
    monkeypatch.setattr(PublicationProcessor, "__init__", _remembered(PublicationProcessor.__init__, opened))
    publish(store, b"{}")
    run_stream(session, tmp_path, url, once=True)
    (live,) = opened
    assert live.store.database.engine.pool.checkedin() == 0


def _remembered(make, seen):
    def init(self, *given):
        make(self, *given)
        seen.append(self)

    return init


def test_stream_on_postgresql_notifies(session, tmp_path, postgres_server):
    url = postgres_server.empty()
    wanted = workload.subscriptions(30)
    with open_store(url) as store:
        store.subscriptions.add_many(wanted)
        named = publish(store, *workload.events(60))
        named_bad = publish(store, b'{"symbol": ')
        done = run_stream(session, tmp_path, url, once=True, most_publications=25)
        assert (done.total_events, done.total_dead_letters, done.lag) == (61, 1, 0)
        everybody = sorted({one.subscriber for one in wanted})
        assert pairs(store, *everybody) == workload.expected(named, wanted)
        assert [one.publication for one in store.dead_letters.read()] == list(named_bad)
        check_gapless(store, *everybody)


def test_stream_sources_of_one_home_have_separate_positions(session, tmp_path, store, url):
    store.subscriptions.add(Subscription("s1", "ana", "predicates", "exists n"))
    publish(store, b'{"n": 1}')
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "x.jsonl").write_text('{"n": 1, "id": "one1"}\n{"n": 2, "id": "one2"}\n')
    home = tmp_path / "home"
    for folder in (tmp_path / "one", None, tmp_path / "one"):
        run_stream(session, home, url, folder=folder, once=True)
    assert {row[1] for row in told(store, "ana")["ana"]} == {"p1", "one1", "one2"}
    publish(store, b'{"n": 2}')
    assert run_stream(session, home, url, once=True).total_notifications == 1


def test_stream_with_a_torn_checkpoint_repairs_it(session, tmp_path, store, url):
    store.subscriptions.add(Subscription("s1", "ana", "predicates", "exists n"))
    publish(store, b'{"n": 1}', b'{"n": }')
    run_stream(session, tmp_path, url, once=True)
    publish(store, b'{"n": 3}', b'{"n": 4}')
    # The power goes after the store has committed and before the disk has the log: the batch grows meanwhile.
    (tmp_path / "checkpoint" / "journal" / "offsets" / "0").write_bytes(b"")
    (tmp_path / "checkpoint" / "journal" / "commits" / "0").unlink()
    heard = []
    run_stream(session, tmp_path, url, once=True, listener=heard.append)
    assert isinstance(heard[0], StreamRepair) and "batch 0" in heard[0].what
    assert told(store, "ana")["ana"] == [(1, "p1", "s1"), (2, "p3", "s1"), (3, "p4", "s1")]
    assert [one.publication for one in store.dead_letters.read()] == ["p2"]


def test_stream_that_reports_its_start_is_warm_and_the_only_one(session, tmp_path, store, url):
    """Nothing was published, so there is no task: a batch has been, and a worker has the index in its memory."""
    store.subscriptions.add(Subscription("s1", "ana", "predicates", "not exists price"))
    store.subscriptions.add(Subscription("s2", "ana", "xpath", "/lot[price < 200]"))
    with running(session, tmp_path, url) as stream:
        started, batch = stream.until(lambda: stream.news[1:] and stream.news)
        assert started == StreamStart("journal", position=0, lag=0, segments=1)
        assert (batch.batch, batch.events) == (0, 0) and have_mapped(tmp_path / "segments")
        with pytest.raises(SetupError, match="another stream runs"):
            run_stream(session, tmp_path, url)
    assert not told(store, "ana")["ana"], "nobody hears of a rehearsal"


def have_mapped(folder):
    """Return the other processes that have mapped a file of a folder."""
    found = []
    for process in set(Path("/proc").glob("[0-9]*")) - {Path("/proc") / str(os.getpid())}:
        with suppress(OSError):  # it has ended meanwhile
            found += [process.name] if str(folder) in (process / "maps").read_text() else []
    return found


def test_stream_with_an_older_store_raises(session, tmp_path, store, url):
    publish(store, b"{}", b"{}")
    run_stream(session, tmp_path, url, once=True)
    refused = pytest.raises(SetupError, match="read up to position 2, but the last position is now 0")
    with refused, running(session, tmp_path, sqlite_url(tmp_path / "other.db")) as stream:
        stream.until(lambda: stream.failure)
    with open_store(sqlite_url(tmp_path / "other.db")) as other:
        assert other.notifications.matched() == 0, "that is how far the other one was"


def test_stream_without_its_checkpoint_continues_where_the_store_is(session, tmp_path, store, url):
    """Late subscribers get no earlier publications, and nobody is notified twice."""
    store.subscriptions.add(Subscription("s1", "early", "predicates", "price >= 0"))
    publish(store, b'{"price": 1}', b'{"price": 2}')
    run_stream(session, tmp_path, url, once=True)
    shutil.rmtree(tmp_path / "checkpoint")
    store.subscriptions.add(Subscription("s2", "late", "predicates", "price >= 0"))
    publish(store, b'{"price": 3}')
    started = []
    run_stream(session, tmp_path, url, once=True, listener=started.append)
    assert started[0].position == 2 and started[0].lag == 1
    assert [len(store.notifications.read(who)) for who in ("early", "late")] == [3, 1]


def test_latest_offset_of_a_named_run_begins_with_a_batch(tmp_path, store, url):
    """Spark plans a batch when the offset changes. Without a name there is none if nothing is new."""
    publish(store, b"{}", b"{}")
    options = {"publications": "10", "lock": str(tmp_path / "stream.lock"), "store_url": url}
    named, plain = JournalReader(options | {"run": "b"}), JournalReader(options)
    before = {"position": 2, "run": "a"}
    begun = named.latestOffset(before, named.getDefaultReadLimit())
    assert begun == {"position": 2, "run": "b"} and named.partitions(before, begun) == []
    assert named.latestOffset(begun, named.getDefaultReadLimit()) == begun
    assert plain.latestOffset(before, plain.getDefaultReadLimit()) == before
