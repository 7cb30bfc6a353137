"""Whatever happens in whatever order: nothing is lost, nothing comes twice or late, and nobody waits for another.

Subscriptions come, go, and change hands and delays; batches are committed and repeated; the clock is moved to and fro;
streams and readers hand over; the store is closed and opened. The store is compared with the plainest model of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import select

from tests.support.strategies.effort import share
from tidings.model import Subscription, notification_id
from tidings.store import tables
from tidings.store.clock_recovery import SET_BACK
from tidings.store.delayed_notifications import SOON
from tidings.store.encoding import MatchRow
from tidings.store.notifications import CommitResult
from tidings.store.store import open_store

IDS, PEOPLE = st.sampled_from(["s-0", "s-1", "s-2", "s-3"]), st.sampled_from(["ana", "bo"])
PAIRS = st.lists(st.tuples(st.sampled_from([f"p-{i}" for i in range(12)]), IDS), max_size=6)
Group = tuple[str, str]


@dataclass(frozen=True)
class Waiting:
    """A notification that is held, and by when it was promised."""

    group: Group
    publication: str
    found: datetime
    due: datetime


class History(RuleBasedStateMachine):
    """A store, and beside it what should be in it."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url, self.now = url, datetime(2026, 5, 1, tzinfo=UTC)
        self.open()
        self.wishes: dict[str, Subscription] = {}
        self.owners: dict[str, str] = {}
        self.batches: list[list[MatchRow]] = []
        self.known: set[str] = set()
        self.told: dict[str, list[Group]] = {"ana": [], "bo": []}
        self.waiting: list[Waiting] = []

    def open(self) -> None:
        self.store = open_store(self.url, lambda: self.now)

    def teardown(self) -> None:
        self.store.close()

    @rule()
    def crash(self) -> None:
        self.store.close()
        self.open()

    @rule(id=IDS, subscriber=PEOPLE, within=st.sampled_from([None, 1, 60, 3_600]))
    def subscribe(self, id: str, subscriber: str, within: int | None) -> None:
        self.store.subscriptions.remove([id])
        self.wishes[id] = Subscription(id, subscriber, "predicates", "a = 1", within)
        self.owners[id] = subscriber
        self.store.subscriptions.add(self.wishes[id])

    @rule(id=IDS)
    def unsubscribe(self, id: str) -> None:
        self.store.subscriptions.remove([id])
        self.wishes.pop(id, None)

    @rule(seconds=st.sampled_from([0.2, 1, 30, 61, 3_600, -0.5, -20, -600]))
    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    @rule(pairs=PAIRS)
    def commit(self, pairs: list[tuple[str, str]]) -> None:
        batch = [MatchRow(p, s, self.owners[s]) for p, s in pairs if s in self.owners]
        new, later = self.take(batch)
        done = self.store.notifications.commit_batch("main", len(self.batches), batch)
        assert done == CommitResult(new, len(batch) - new - later, held=later)
        self.batches.append(batch)

    def take(self, batch: list[MatchRow]) -> tuple[int, int]:
        """What a batch should do: who is told, who waits."""
        new, later, turn = 0, 0, [one.publication for one in batch]
        for one in sorted(batch, key=lambda one: (turn.index(one.publication), one.subscription)):
            id, wish = notification_id(one.publication, one.subscription), self.wishes.get(one.subscription)
            if id in self.known:
                continue
            self.known.add(id)
            if wish and wish.subscriber == one.subscriber and wish.within:
                due = self.now + timedelta(seconds=wish.within)
                group = (one.subscriber, one.subscription)
                self.waiting.append(Waiting(group, one.publication, self.now, due))
                later += 1
            else:
                self.told[one.subscriber].append((one.publication, one.subscription))
                new += 1
        return new, later

    @precondition(lambda self: self.batches)
    @rule(data=st.data(), marked=st.booleans())
    def repeat(self, data: st.DataObject, marked: bool) -> None:
        """A batch again, under its number or, with the marks lost, under another."""
        number = data.draw(st.integers(0, len(self.batches) - 1))
        batch = self.batches[number]
        if marked:
            done = self.store.notifications.commit_batch("main", number, batch)
            assert done == CommitResult(0, 0, skipped=True)
        else:
            self.batches.append(batch)
            done = self.store.notifications.commit_batch("main", len(self.batches) - 1, batch)
            assert done == CommitResult(0, len(batch))

    @rule()
    def stream_looks(self) -> None:
        handed_over = self.hand_over("ana") + self.hand_over("bo")
        assert self.store.notifications.hand_over() == handed_over
        self.nothing_is_late("ana", "bo")

    @rule(subscriber=PEOPLE)
    def reader_looks(self, subscriber: str) -> None:
        self.hand_over(subscriber)
        read = self.store.notifications.read(subscriber)
        expected = [(i, *pair) for i, pair in enumerate(self.told[subscriber], start=1)]
        assert [(one.sequence, one.publication, one.subscription) for one in read] == expected
        self.nothing_is_late(subscriber)

    def hand_over(self, subscriber: str) -> int:
        """What handing over should do: all that waits for a subscription goes with the first that must."""
        groups = {one.group for one in self.waiting if one.group[0] == subscriber and self.must_go(one.group)}
        going = [one for one in self.waiting if one.group in groups]
        self.waiting = [one for one in self.waiting if one.group not in groups]
        self.told[subscriber] += [(one.publication, one.group[1]) for one in going]
        return len(going)

    def must_go(self, group: Group) -> bool:
        gathered = [one for one in self.waiting if one.group == group]
        due = min(one.due for one in gathered) <= self.now + SOON
        return due or gathered[0].found > self.now + SET_BACK

    def nothing_is_late(self, *subscribers: str) -> None:
        """Said without the rules of handing over: nobody looked and left something whose time had come."""
        left = [one for one in self.waiting if one.group[0] in subscribers]
        assert all(one.due > self.now for one in left)
        assert len(left) == sum(self.store.notifications.held(who).count for who in subscribers)

    @invariant()
    def the_store_has_what_it_should(self) -> None:
        """Looked at behind the back of the store, for reading would hand over."""
        with self.store.database.read() as connection:
            told = connection.execute(select(tables.notifications)).all()
            held = connection.execute(select(tables.held).order_by(tables.held.c.place)).all()
            last = dict(row._tuple() for row in connection.execute(select(tables.subscribers)))
            promised = {row[:2] for row in connection.execute(select(tables.promises))}
        for who, pairs in self.told.items():
            rows = sorted(
                (row.sequence, row.publication, row.subscription) for row in told if row.subscriber == who
            )
            assert rows == [(i, *pair) for i, pair in enumerate(pairs, start=1)]
            assert last.get(who, 0) == len(pairs)
        waiting = [(*one.group, one.publication) for one in self.waiting]
        assert [(row.subscriber, row.subscription, row.publication) for row in held] == waiting
        assert promised == {one.group for one in self.waiting}
        assert {row.id for row in told} | {row.id for row in held} == self.known


def test_any_history(new_url: Callable[[], str]) -> None:
    run_state_machine_as_test(lambda: History(new_url()), settings=share(5, stateful_step_count=40))
