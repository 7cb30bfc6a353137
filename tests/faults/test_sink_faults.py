"""kill -9 at each step of a commit into PostgreSQL: nothing is lost, nothing comes twice, numbers have no gaps.

The test holds a lock on a table, so that the stream stops at a known step, and kills it there: the driver, its JVM and
its workers at once.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, text

from tests.cli.operations.test_serve import until
from tests.faults.test_stream_faults import PROGRAM, kill_session
from tests.spark import workload
from tests.support.processes.streams import check_gapless, read_notifications
from tests.support.stores.ready_stores import ReadyStores
from tidings.model import Publication, Subscription
from tidings.spark.stream.runner import run_stream
from tidings.store.store import Store, open_store
from tidings.store.tables import staged_attempts, staged_dead_letters, staged_matches

pytestmark = [pytest.mark.spark, pytest.mark.faults]
UNUSABLE = b'{"symbol": '

Start = Callable[[str], subprocess.Popen[bytes]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts a stream in a session of its own; all are killed in the end."""
    started = []

    def start_stream(url: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, str(PROGRAM), "stream", url, str(tmp_path / "home"), "local[2]"]
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(command, start_new_session=True, **silent)  # type: ignore[call-overload]
        started.append(process)
        return process

    yield start_stream
    for process in started:
        kill_session(process.pid)
        process.wait()


@contextmanager
def stopped_at(store: Store, table: str, process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Lock a table against writes; run the block when another connection waits to insert into it."""
    waiting = text(
        "SELECT count(*) FROM pg_locks JOIN pg_class ON pg_class.oid = relation"
        " WHERE NOT granted AND relname = :table AND relnamespace = current_schema()::regnamespace"
    )

    def is_waiting() -> bool:
        assert process.poll() is None, "the stream ended by itself"
        with store.database.read() as connection:
            return bool(connection.execute(waiting, {"table": table}).scalar_one())

    with store.database.engine.begin() as holder:
        holder.execute(text(f"LOCK TABLE {table} IN SHARE MODE"))
        until(is_waiting, f"nothing waits for {table}")
        yield


def publish(store: Store, first: int, count: int) -> dict[str, bytes]:
    """Publish events, the last of which cannot be decoded."""
    bodies = [*workload.events(count - 1, first), UNUSABLE]
    named = {f"p{first + i}": body for i, body in enumerate(bodies)}
    store.journal.append([Publication(id, "application/json", body) for id, body in named.items()])
    return named


def expect_pairs(events: dict[str, bytes], wanted: list[Subscription]) -> set[tuple[str, str]]:
    return workload.expected({name: body for name, body in events.items() if body != UNUSABLE}, wanted)


def count_rows(store: Store) -> tuple[int, int, int]:
    """Count the staged matches and dead letters, and the notifications."""
    with store.database.read() as connection:
        matches, letters = (
            int(connection.execute(select(func.count()).select_from(table)).scalar_one())
            for table in (staged_matches, staged_dead_letters)
        )
    return matches, letters, store.notifications.count()


STEPS = {"batches": False, "dead_letters": False, "time_series": True}
"""Tables that a commit writes to, in this order, and whether the batch is committed by then.

`batches` gets the mark of the batch at the beginning of the transaction, when the tasks have staged their rows.
`dead_letters` comes after the notifications. `time_series` is written after the transaction, before Spark records the
batch.
"""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("steps", [("dead_letters",), pytest.param(tuple(STEPS), marks=pytest.mark.long)])
def test_stream_killed_at_step_of_commit_loses_and_repeats_nothing(
    session: Any, tmp_path: Path, start: Start, postgres_places: ReadyStores, steps: tuple[str, ...]
) -> None:
    """The batch that is killed is the second one, so that Spark repeats exactly the same batch."""
    url, home = postgres_places.empty(), tmp_path / "home"
    wanted = workload.subscriptions(40)
    people = sorted({one.subscriber for one in wanted})
    with open_store(url) as store:
        store.subscriptions.add_many(wanted)
        events = publish(store, 0, 10)
        run_stream(session, home, url, once=True)
        first = len(expect_pairs(events, wanted))
        killed = publish(store, 10, 90)
        expected = len(expect_pairs(killed, wanted))
        for attempt, step in enumerate(steps, start=1):
            with stopped_at(store, step, process := start(url)):
                staged = (0, 0) if STEPS[step] else (attempt * expected, attempt)
                assert count_rows(store) == (*staged, first + expected * STEPS[step])
                kill_session(process.pid)
                process.wait()
        is_committed = STEPS[steps[-1]]
        before = read_notifications(store, *people)
        summary = run_stream(session, home, url, once=True)
        assert (summary.total_events, summary.total_notifications) == (90, 0 if is_committed else expected)
        if is_committed:
            assert read_notifications(store, *people) == before
        events |= killed | publish(store, 100, 30)
        run_stream(session, home, url, once=True)
        pairs = {row[1:] for rows in read_notifications(store, *people).values() for row in rows}
        assert pairs == expect_pairs(events, wanted)
        check_gapless(store, *people)
        bad = [name for name, body in events.items() if body == UNUSABLE]
        assert [one.publication for one in store.dead_letters.read()] == bad
        with store.database.read() as connection:
            assert connection.execute(select(staged_attempts)).all() == []
