"""Both sinks of the stream have the same outcome: files with a commit row by row, and staging tables of PostgreSQL.

Random batches of several streams are written by the outputs of tasks and committed. They are repeated, contain
publications twice, have labels, delays and dead letters, and some of their tasks fail. The row-by-row commit is the
specification.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Table, select

from tests.support.stores.ready_stores import ReadyStores
from tidings.errors import BudgetExceeded
from tidings.model import Publication, Subscription
from tidings.spark.stream import match_output
from tidings.spark.stream.budget import Budget, BudgetWatch
from tidings.spark.stream.match_output import MatchOutput, MatchReport
from tidings.spark.stream.sink import FileSink, Sink, StagingSink, open_sink
from tidings.store import tables
from tidings.store.database import sqlite_url
from tidings.store.encoding import MatchRow
from tidings.store.notifications import batch_commit
from tidings.store.store import Store, open_store

SUBSCRIPTIONS = [f"s-{n}" for n in range(5)]
PEOPLE = ["ana", "bo", "cy"]
LABELLED, PLAIN = ["l-0", "l-1"], ["p-0", "p-1", "p-2", "odd \x00 id"]
STREAMS = ["journal-1", "folder-2"]


@dataclass(frozen=True)
class Found:
    """A publication in a task: the subscriptions that it matches, and those with which it exceeds the budget."""

    publication: str
    matches: frozenset[str] = frozenset()
    exceeded: frozenset[str] = frozenset()
    is_unusable: bool = False


@dataclass(frozen=True)
class TaskRun:
    """The publications of a task. `in_halves`: one report for each half of the subscriptions, as in a search."""

    publications: tuple[Found, ...]
    succeeds: bool = True
    in_halves: bool = False


@dataclass(frozen=True)
class Batch:
    stream: str
    tasks: tuple[TaskRun, ...]
    owners: tuple[str, ...]
    times: int = 1


@dataclass(frozen=True)
class Delay:
    """A subscription gets another owner and delay, or is removed."""

    subscription: str
    owner: str | None
    seconds: int | None


@dataclass(frozen=True)
class Grant:
    subscriber: str
    holds: bool


@dataclass(frozen=True)
class Pause:
    """Time passes, and what is due is released."""

    seconds: int


_ids = st.frozensets(st.sampled_from(SUBSCRIPTIONS), max_size=4)
_found = st.builds(
    Found, st.sampled_from([*LABELLED, *PLAIN]), _ids, st.just(frozenset()) | _ids, st.booleans()
)
_tasks = st.builds(
    TaskRun,
    st.lists(_found, max_size=6).map(tuple),
    st.sampled_from([True, True, True, False]),
    st.sampled_from([False, False, True]),
)
_batches = st.builds(
    Batch,
    st.sampled_from(STREAMS),
    st.lists(_tasks, max_size=4).map(tuple),
    st.tuples(*[st.sampled_from(PEOPLE)] * len(SUBSCRIPTIONS)),
    st.sampled_from([1, 1, 2]),
)
_delays = st.builds(
    Delay,
    st.sampled_from(SUBSCRIPTIONS),
    st.none() | st.sampled_from(PEOPLE),
    st.none() | st.integers(1, 60),
)
_steps = st.one_of(
    _batches,
    _batches,
    _delays,
    st.builds(Grant, st.sampled_from(PEOPLE), st.booleans()),
    st.builds(Pause, st.integers(0, 90)),
)


class Replay:
    """A store with a sink per stream, to which steps are applied."""

    def __init__(self, kind: type[FileSink] | type[StagingSink], url: str, folder: Path) -> None:
        self.now = datetime(2026, 5, 1, tzinfo=UTC)
        self.store: Store = open_store(url, lambda: self.now)
        self._sinks: dict[str, Sink] = {name: kind(self.store, name, name.split("-")[0]) for name in STREAMS}
        self._folder, self._batches, self._position = folder, dict.fromkeys(STREAMS, 0), count(1)
        folder.mkdir()
        self.store.journal.append(
            [Publication(id, "application/json", b"{}", audience="board") for id in LABELLED]
        )

    def apply(self, step: Batch | Delay | Grant | Pause) -> object:
        """Apply a step and return its result."""
        match step:
            case Batch():
                return self._commit(step)
            case Delay():
                self.store.subscriptions.remove(
                    [one.id for one in self.store.subscriptions.list() if one.id == step.subscription]
                )
                if step.owner:
                    self.store.subscriptions.add(
                        Subscription(step.subscription, step.owner, "predicates", "n > 0", step.seconds)
                    )
                return None
            case Grant():
                change = self.store.audiences.grant if step.holds else self.store.audiences.revoke
                return change(step.subscriber, "board")
            case Pause():
                self.now += timedelta(seconds=step.seconds)
                return self.store.notifications.hand_over()

    def _commit(self, batch: Batch) -> list[object]:
        """Write a batch and commit it; with several `times` Spark repeats it, because it was killed."""
        sink, number = self._sinks[batch.stream], self._batches[batch.stream]
        self._batches[batch.stream] += 1
        positions = [[next(self._position) for _ in task.publications] for task in batch.tasks]
        results = []
        for _ in range(batch.times):
            reports = [
                report
                for task, places in zip(batch.tasks, positions, strict=True)
                for report in self._run(sink, batch, task, places)
            ]
            last = max((report.last for report in reports), default=0)
            results.append(sink.commit(number, reports, last if batch.stream == "journal-1" else None))
        return results

    def _run(self, sink: Sink, batch: Batch, task: TaskRun, positions: list[int]) -> Iterator[MatchReport]:
        halves = [SUBSCRIPTIONS[:2], SUBSCRIPTIONS[2:]] if task.in_halves else [SUBSCRIPTIONS]
        for publication, position in (
            zip(task.publications, positions, strict=True) if task.in_halves else [(None, 0)]
        ):
            for half in halves:
                chosen = (
                    [(publication, position)]
                    if publication
                    else zip(task.publications, positions, strict=True)
                )
                report = self._write(sink, batch, list(chosen), half)
                if task.succeeds and report.events:
                    yield report

    def _write(
        self, sink: Sink, batch: Batch, found: Sequence[tuple[Found, int]], subscriptions: Sequence[str]
    ) -> MatchReport:
        owners = dict(zip(SUBSCRIPTIONS, batch.owners, strict=True))
        with (
            BudgetWatch(Budget(seconds=0), self._folder) as watch,
            MatchOutput(sink.target.open(self._folder), watch) as output,
        ):
            for one, position in found:
                output.count([position])
                permanent = position if batch.stream == "journal-1" else None
                exceeded = [None] * one.is_unusable + sorted(one.exceeded & set(subscriptions))
                for subscription in exceeded:
                    problem = BudgetExceeded(f"too long at {position}")
                    output.add_dead_letter(one.publication, problem, permanent, b"\x00", subscription)
                for id in sorted(one.matches & set(subscriptions), reverse=True):
                    because = f'[["n > 0", {position}, "/n"]]'
                    output.add_match(MatchRow(one.publication, id, owners[id], because, position=position))
        return output.report


COMPARED: dict[Table, tuple[str, ...]] = {
    tables.notifications: (),
    tables.deferred_notifications: (),
    tables.deferral_deadlines: (),
    tables.subscribers: (),
    tables.dead_letters: ("time",),
    tables.overruns: (),
    tables.batches: (),
    tables.counters: (),
}
"""The tables that a batch changes, and columns with the time of the machine."""


def read_tables(store: Store) -> dict[str, list[Any]]:
    with store.database.read() as connection:
        return {
            table.name: sorted(
                (
                    tuple(row)
                    for row in connection.execute(
                        select(*(column for column in table.c if column.name not in left_out))
                    )
                ),
                key=repr,
            )
            for table, left_out in COMPARED.items()
        }


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match_output, "ROWS", 3)
    monkeypatch.setattr(batch_commit, "PART", 4)
    monkeypatch.setattr(batch_commit, "LETTERS", 2)


@pytest.mark.usefixtures("small_parts")
def test_sinks_random_histories_have_equal_outcome(postgres_places: ReadyStores) -> None:
    @given(st.lists(_steps, max_size=12))
    def check(steps: list[Batch | Delay | Grant | Pause]) -> None:
        with ExitStack() as opened:
            folder = Path(opened.enter_context(TemporaryDirectory()))
            replays = [
                Replay(FileSink, sqlite_url(folder / "store.db"), folder / "0"),
                Replay(StagingSink, postgres_places.empty(), folder / "1"),
            ]
            for replay in replays:
                opened.enter_context(replay.store)
            for step in steps:
                specified, result = [replay.apply(step) for replay in replays]
                assert result == specified, step
                expected, state = [read_tables(replay.store) for replay in replays]
                assert state == expected, step
        postgres_places.take_back()

    check()


def test_open_sink_depends_on_database(postgres_places: ReadyStores, tmp_path: Path) -> None:
    with open_store(sqlite_url(tmp_path / "store.db")) as file, open_store(postgres_places.empty()) as server:
        assert isinstance(open_sink(file, "main", "journal"), FileSink)
        assert isinstance(open_sink(server, "main", "journal"), StagingSink)
    postgres_places.take_back()
