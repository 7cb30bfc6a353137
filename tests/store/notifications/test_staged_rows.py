"""Staging tables of PostgreSQL: lost rows are noticed, and rows of abandoned attempts are deleted in steps."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import inspect, select, text

from tests.support.servers.postgres import find_binaries, running_server
from tests.support.stores.ready_stores import ReadyStores
from tidings.errors import StoreError
from tidings.store.database import sqlite_url
from tidings.store.dead_letters import DeadLetter
from tidings.store.encoding import MatchRow
from tidings.store.notifications import staged_rows
from tidings.store.notifications.batch_commit import CommitResult
from tidings.store.notifications.staged_rows import RowCounts
from tidings.store.store import Store, open_store
from tidings.store.tables import staged_attempts, staged_dead_letters, staged_matches


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 5, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(postgres_places: ReadyStores, clock: Clock) -> Iterator[Store]:
    with open_store(postgres_places.empty(), clock) as opened:
        yield opened


def stage(
    store: Store, attempt: int, matches: int, letters: int = 0, stream: str = "main"
) -> dict[int, RowCounts]:
    """Stage rows whose publications have the number of the attempt; return the attempt for a commit."""
    rows = [MatchRow(f"p-{attempt}", f"s-{i}", "ana", position=attempt) for i in range(matches)]
    dead = [
        (i, DeadLetter(f"p-{attempt}", "bad", {}, attempt, subscription=f"s-{i}")) for i in range(letters)
    ]
    store.staged_rows.write(stream, "journal", attempt, rows, dead)
    return {attempt: RowCounts(matches, letters)}


def count_staged(store: Store) -> tuple[int, int, int]:
    """Count the staged attempts, matches and dead letters."""
    with store.database.read() as connection:
        attempts, matches, letters = (
            len(connection.execute(select(table)).all())
            for table in (staged_attempts, staged_matches, staged_dead_letters)
        )
    return attempts, matches, letters


def test_commit_leaves_nothing_staged(store: Store) -> None:
    attempts = stage(store, 1, 3, 2) | stage(store, 2, 4)
    assert store.notifications.read("ana") == []
    assert store.staged_rows.commit("main", 0, attempts, position=2) == CommitResult(7, 0)
    assert [one.sequence for one in store.notifications.read("ana")] == [1, 2, 3, 4, 5, 6, 7]
    assert (store.dead_letters.count(), store.notifications.matched()) == (2, 2)
    assert count_staged(store) == (0, 0, 0)


def test_commit_repeated_batch_is_skipped_and_its_rows_deleted(store: Store) -> None:
    store.staged_rows.commit("main", 0, stage(store, 1, 3))
    again = stage(store, 2, 3)
    assert store.staged_rows.commit("main", 0, again) == CommitResult(0, 0, skipped=True)
    assert store.notifications.last_sequence("ana") == 3
    assert count_staged(store) == (0, 0, 0)


def test_commit_attempt_written_in_parts_has_all_rows(store: Store) -> None:
    stage(store, 1, 3)
    store.staged_rows.write("main", "journal", 1, [MatchRow("p-1", "s-9", "ana", position=1)])
    with pytest.raises(StoreError, match="no longer complete"):
        store.staged_rows.commit("main", 0, {1: RowCounts(3, 0)})
    assert (store.notifications.count(), store.notifications.last_batch("main")) == (0, None)
    assert store.staged_rows.commit("main", 0, {1: RowCounts(4, 0)}) == CommitResult(4, 0)


def test_commit_attempt_of_other_stream_is_refused(store: Store) -> None:
    attempts = stage(store, 1, 3, stream="other")
    with pytest.raises(StoreError, match="no longer complete"):
        store.staged_rows.commit("main", 0, attempts)
    assert count_staged(store) == (1, 3, 0)


def test_commit_after_crash_of_server_raises_until_batch_is_staged_again() -> None:
    """The crash empties the staging tables, which are not logged. Everything committed before stays."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL")
    with running_server(binaries, durable=True) as server, open_store(server.empty()) as store:
        store.staged_rows.commit("main", 0, stage(store, 1, 3))
        attempts = stage(store, 2, 5)
        server.stop()
        server.start()
        with pytest.raises(StoreError, match="no longer complete"):
            store.staged_rows.commit("main", 1, attempts)
        assert (store.notifications.count(), store.notifications.last_batch("main")) == (3, 0)
        assert store.staged_rows.commit("main", 1, stage(store, 3, 5)) == CommitResult(5, 0)
        assert [one.sequence for one in store.notifications.read("ana")] == list(range(1, 9))


def test_commit_deletes_abandoned_rows_of_its_stream_in_steps(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staged_rows, "SWEPT_ROWS", 4)
    stage(store, 1, 6, 3)
    stage(store, 2, 1)
    counts = []
    for batch in range(3):
        assert store.staged_rows.commit("main", batch, stage(store, 10 + batch, 2)) == CommitResult(2, 0)
        counts.append(count_staged(store)[1:])
    assert counts == [(3, 0), (0, 0), (0, 0)]
    assert count_staged(store) == (0, 0, 0)
    assert store.dead_letters.count() == 0


def test_commit_deletes_attempts_of_other_streams_after_a_day(store: Store, clock: Clock) -> None:
    other = stage(store, 1, 3, stream="other")
    store.staged_rows.commit("main", 0, stage(store, 2, 2))
    assert count_staged(store) == (1, 3, 0)
    clock.now += staged_rows.ABANDONED_AFTER + timedelta(seconds=1)
    store.staged_rows.commit("main", 1, stage(store, 3, 2))
    assert count_staged(store) == (0, 0, 0)
    with pytest.raises(StoreError, match="no longer complete"):
        store.staged_rows.commit("other", 0, other)


def test_commit_leaves_attempt_that_is_being_written(store: Store) -> None:
    """A task of an earlier attempt may still be running; a later commit deletes its rows."""
    stage(store, 1, 3)
    with store.database.engine.begin() as writer:
        writer.execute(text("UPDATE staged_attempts SET matches = matches + 1 WHERE attempt = 1"))
        writer.execute(
            text(
                "INSERT INTO staged_matches (attempt, position, id, publication, subscription, subscriber, because)"
                " VALUES (1, 1, 'n', 'p', 's', 'ana', '[]')"
            )
        )
        store.staged_rows.commit("main", 0, {})
        assert count_staged(store) == (1, 3, 0)
    store.staged_rows.commit("main", 1, {})
    assert count_staged(store) == (0, 0, 0)


def test_open_store_creates_staging_tables_on_postgresql_only(
    store: Store, tmp_path_factory: pytest.TempPathFactory
) -> None:
    names = {table.name for table in (staged_attempts, staged_matches, staged_dead_letters)}
    assert names <= set(inspect(store.database.engine).get_table_names())
    with open_store(sqlite_url(tmp_path_factory.mktemp("file") / "store.db")) as file:
        assert names.isdisjoint(inspect(file.database.engine).get_table_names())
