"""Concurrent changes of a store by other processes."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from itertools import count
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from secrets import randbits

from tidings.model import Publication, Subscription
from tidings.store.encoding import MatchRow
from tidings.store.notifications.staged_rows import RowCounts
from tidings.store.store import open_store


def opens(url: str, name: str, start: Barrier) -> None:
    """Open the store at the same moment as others, and use it at once."""
    start.wait()
    with open_store(url) as store:
        store.journal.append([Publication(name, "application/json", b"{}")])


def publishes(url: str, name: str, start: Barrier, appends: int) -> None:
    """Append publications, a few at a time; every third time also one that all writers append."""
    choose = random.Random(name)
    with open_store(url) as store:
        start.wait()
        for number in range(appends):
            some = [
                Publication(f"{name}-{number}-{i}", "application/json", b"{}")
                for i in range(choose.randint(1, 6))
            ]
            shared = [Publication(f"shared-{number}", "application/json", b"{}")] if number % 3 == 0 else []
            store.journal.append(some + shared)


def subscribes(url: str, name: str, start: Barrier, times: int) -> None:
    """Add subscriptions, and remove every second one again."""
    with open_store(url) as store:
        start.wait()
        for number in range(times):
            id = store.subscriptions.add(
                Subscription(f"{name}-{number}", name, "predicates", f"a = {number}")
            )
            if number % 2:
                store.subscriptions.remove([id])


def notifies(url: str, stream: str, start: Barrier, batches: int) -> None:
    """Commit batches that overlap with those of other writers, for subscribers in random order."""
    choose = random.Random(stream)
    with open_store(url) as store:
        start.wait()
        for batch in range(batches):
            people = choose.sample(range(40), 25)
            own = [MatchRow(f"{stream}-{batch}", f"s-{person}", f"user-{person}") for person in people]
            shared = [MatchRow(f"shared-{batch}", f"s-{person}", f"user-{person}") for person in people]
            store.notifications.commit_batch(stream, batch, own + shared)


def stages(url: str, stream: str, start: Barrier, batches: int) -> None:
    """Commit the batches of `notifies` through staging tables: two tasks each, and a third one that fails."""
    choose = random.Random(stream)
    with open_store(url) as store:
        start.wait()
        for batch in range(batches):
            people = choose.sample(range(40), 25)
            attempts: dict[int, RowCounts] = {}
            for name in (f"{stream}-{batch}", f"shared-{batch}", "failed"):
                attempt, matches = randbits(63), [MatchRow(name, f"s-{one}", f"user-{one}") for one in people]
                store.staged_rows.write(stream, stream, attempt, matches)
                if name != "failed":
                    attempts[attempt] = RowCounts(len(matches), 0)
            store.staged_rows.commit(stream, batch, attempts)


class FastClock:
    """A clock that advances by some seconds with each call."""

    def __init__(self) -> None:
        self._moment = datetime(2026, 5, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self._moment += timedelta(seconds=7)
        return self._moment


def gathered(stream: str, batches: int) -> list[list[int]]:
    """Return the subscribers of the batches of a stream."""
    choose = random.Random(stream)
    return [choose.sample(range(20), 12) for _ in range(batches)]


def gathers(url: str, stream: str, start: Barrier, batches: int) -> None:
    """Commit overlapping batches for subscriptions with delays, and hand notifications over in between."""
    with open_store(url, FastClock()) as store:
        start.wait()
        for batch, people in enumerate(gathered(stream, batches)):
            publications = (f"{stream}-{batch}", f"shared-{batch}")
            matches = [MatchRow(p, f"s-{who}", f"user-{who}") for p in publications for who in people]
            store.notifications.commit_batch(stream, batch, matches)
            store.notifications.hand_over(f"user-{people[0]}" if batch % 2 else None)


BATCH = 1_500
PEOPLE = 20


def writes_until_killed(url: str, progress: Connection, first: int) -> None:
    """Append and commit large batches one after the other, and report each."""
    with open_store(url) as store:
        for batch in count(first):
            ids = [f"p-{batch}-{i}" for i in range(BATCH)]
            store.journal.append(Publication(id, "application/json", b"{}") for id in ids)
            matches = [MatchRow(id, f"s-{i % PEOPLE}", f"user-{i % PEOPLE}") for i, id in enumerate(ids)]
            store.notifications.commit_batch("main", batch, matches)
            progress.send(batch)


def stages_until_killed(url: str, progress: Connection, first: int) -> None:
    """Stage and commit large batches one after the other, and report each."""
    with open_store(url) as store:
        for batch in count(first):
            attempts: dict[int, RowCounts] = {}
            for task in range(3):
                attempt, ids = randbits(63), [f"p-{batch}-{task}-{i}" for i in range(BATCH // 3)]
                for part in (ids[:200], ids[200:]):
                    matches = [
                        MatchRow(id, f"s-{i % PEOPLE}", f"user-{i % PEOPLE}") for i, id in enumerate(part)
                    ]
                    store.staged_rows.write("main", "journal", attempt, matches)
                attempts[attempt] = RowCounts(len(ids), 0)
            store.staged_rows.commit("main", batch, attempts)
            progress.send(batch)
