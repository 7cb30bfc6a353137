"""Audiences: who is told of publications that carry a label, and who still sees what they were told.

The definition is two lines: a match becomes a notification if its subscriber may see the publication when the batch is
committed, and it is withheld whenever it is read while they may not. Whatever happens in whatever order, the store has
to agree with it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import event

from tests.support.strategies.effort import share
from tidings.errors import IdTaken, InputError
from tidings.model import WITHHELD, Publication, Reason, Subscription, notification_id
from tidings.store.audiences import Grant, is_visible
from tidings.store.database import sqlite_url
from tidings.store.dead_letters import DeadLetter
from tidings.store.encoding import MatchRow
from tidings.store.journal import AppendBatch
from tidings.store.notifications import CommitResult
from tidings.store.store import Store, open_store

JSON = "application/json"
IDS = [f"p-{i}" for i in range(8)]
PEOPLE = st.sampled_from(["ana", "bo"])
LABELS = st.sampled_from(["board", "press"])
WISHES = {"s-0": "ana", "s-1": "ana", "s-2": "bo", "s-3": "bo"}
DELAYED = {"s-1", "s-3"}
PAIRS = st.lists(st.tuples(st.sampled_from(IDS), st.sampled_from(sorted(WISHES))), max_size=8)


def found(publication: str, subscription: str) -> MatchRow:
    because = [Reason("price < 200", 180, "/price")]
    return MatchRow(publication, subscription, WISHES[subscription], because, {"secret": publication})


class History(RuleBasedStateMachine):
    """A store, and beside it what should be in it."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.now = datetime(2026, 5, 1, tzinfo=UTC)
        self.store = open_store(url, lambda: self.now)
        wanted = [
            Subscription(id, who, "predicates", "a = 1", 60 if id in DELAYED else None)
            for id, who in WISHES.items()
        ]
        self.store.subscriptions.add_many(wanted)
        self.labels: dict[str, str | None] = {}
        self.granted: set[tuple[str, str]] = set()
        self.batches: list[list[MatchRow]] = []
        self.told: dict[str, list[tuple[str, str]]] = {"ana": [], "bo": []}
        self.held: dict[str, list[tuple[str, str]]] = {"ana": [], "bo": []}

    def teardown(self) -> None:
        self.store.close()

    def may_see(self, subscriber: str, publication: str) -> bool:
        label = self.labels.get(publication)
        return label is None or (subscriber, label) in self.granted

    @rule(id=st.sampled_from(IDS), label=st.none() | LABELS)
    def publish(self, id: str, label: str | None) -> None:
        one = Publication(id, JSON, b"{}", audience=label)
        [outcomes] = self.store.journal.append_batches([AppendBatch([one])])
        [outcome] = outcomes or ()
        assert isinstance(outcome, IdTaken) == (self.labels.setdefault(id, label) != label)

    @rule(who=PEOPLE, label=LABELS)
    def grant(self, who: str, label: str) -> None:
        assert self.store.audiences.grant(who, label) == ((who, label) not in self.granted)
        self.granted.add((who, label))

    @rule(who=PEOPLE, label=LABELS)
    def revoke(self, who: str, label: str) -> None:
        assert self.store.audiences.revoke(who, label) == ((who, label) in self.granted)
        self.granted.discard((who, label))

    @rule(pairs=PAIRS)
    def commit(self, pairs: list[tuple[str, str]]) -> None:
        self.take([found(p, s) for p, s in pairs])

    @precondition(lambda self: self.batches)
    @rule(data=st.data(), marked=st.booleans())
    def repeat(self, data: st.DataObject, marked: bool) -> None:
        """A batch again, under its number or, with the marks lost, under another: then grants of now count."""
        number = data.draw(st.integers(0, len(self.batches) - 1))
        if marked:
            done = self.store.notifications.commit_batch("main", number, self.batches[number])
            assert done == CommitResult(0, 0, skipped=True)
        else:
            self.take(self.batches[number])

    def take(self, batch: list[MatchRow]) -> None:
        turn = [one.publication for one in batch]
        new, later, unseen = 0, 0, 0
        known = [pair for rows in (*self.told.values(), *self.held.values()) for pair in rows]
        for one in sorted(batch, key=lambda one: (turn.index(one.publication), one.subscription)):
            pair = (one.publication, one.subscription)
            if not self.may_see(one.subscriber, one.publication):
                unseen += 1
            elif pair not in known:
                (self.held if one.subscription in DELAYED else self.told)[one.subscriber].append(pair)
                known.append(pair)
                new, later = new + (pair[1] not in DELAYED), later + (pair[1] in DELAYED)
        done = self.store.notifications.commit_batch("main", len(self.batches), batch)
        repeated = len(batch) - new - later - unseen
        assert done == CommitResult(new, repeated, held=later, unseen=unseen)
        self.batches.append(batch)

    @rule()
    def hand_over(self) -> None:
        self.now += timedelta(seconds=61)
        self.store.notifications.hand_over()
        for who, waiting in self.held.items():
            self.told[who] += waiting
            waiting.clear()

    @invariant()
    def everybody_reads_what_they_may(self) -> None:
        for who, pairs in self.told.items():
            read = self.store.notifications.read(who)
            assert [one.sequence for one in read] == list(range(1, len(pairs) + 1))
            for one, (publication, subscription) in zip(read, pairs, strict=True):
                assert one.id == notification_id(publication, subscription)
                assert one.subscription == subscription
                shown = (one.kind, one.publication, len(one.because), one.bindings)
                seen = self.may_see(who, publication)
                whole = ("matched", publication, 1, {"secret": publication})
                assert shown == (whole if seen else (WITHHELD, "", 0, None))
            for id in {subscription for _, subscription in pairs}:
                last, _ = self.store.numbered_notifications.last(who, id)
                entries = self.store.numbered_notifications.read(who, id, 1, last)
                own = [one for one in read if one.subscription == id]
                assert [one.notification for one in reversed(entries)] == own

    @invariant()
    def grants_are_listed(self) -> None:
        listed = {(one.subscriber, one.label) for one in self.store.audiences.list()}
        assert listed == self.granted
        for who in ("ana", "bo"):
            assert self.store.audiences.of(who) == {label for name, label in self.granted if name == who}
            granted = self.store.audiences.of(who)
            seen = {one.id for one in self.store.journal.read(0) if is_visible(granted, one.audience)}
            assert seen == {id for id in self.labels if self.may_see(who, id)}


def test_any_history(new_url: Callable[[], str]) -> None:
    run_state_machine_as_test(lambda: History(new_url()), settings=share(10, stateful_step_count=30))


def test_the_label_is_part_of_what_an_id_stands_for(store: Store) -> None:
    secret = Publication("p-1", JSON, b"{}", audience="board")
    assert [result.position for result in store.journal.append([secret, secret])] == [1, 1]
    for other in (None, "press"):
        with pytest.raises(IdTaken):
            store.journal.append([Publication("p-1", JSON, b"{}", audience=other)])
    assert [one.audience for one in store.journal.read(0)] == ["board"]
    assert store.journal.find("p-1") == Publication("p-1", JSON, b"{}", 1, "board")
    for wrong in ("", "bo\nard", "x" * 501):
        with pytest.raises(InputError, match="an audience label"):
            store.journal.append([Publication("p-2", JSON, b"{}", audience=wrong)])
        with pytest.raises(InputError):
            store.audiences.grant("ana", wrong)
    assert store.journal.head() == 1


def test_who_may_see_what(store: Store) -> None:
    audiences = store.audiences
    assert is_visible(audiences.of("ana"), None) and not is_visible(audiences.of("ana"), "board")
    assert audiences.grant("ana", "board") and not audiences.grant("ana", "board")
    first = audiences.changed("ana")
    assert is_visible(audiences.of("ana"), "board") and not is_visible(audiences.of("bo"), "board")
    [only] = audiences.list("ana")
    assert only == Grant("ana", "board", first.time) and audiences.list("bo") == []
    assert audiences.revoke("ana", "board") and not audiences.revoke("ana", "board")
    second = audiences.changed("ana")
    assert second.version > first.version and second.time > first.time
    assert audiences.grant("ana", "board")
    assert audiences.changed("ana").version > second.version


def test_things_that_are_called_like_a_publication_are_not_withheld(store: Store) -> None:
    """A resource or an object is in no journal: a publication of that name is another thing."""
    store.journal.append([Publication("doc.rdf#host", JSON, b"{}", audience="board")])
    store.notifications.commit_batch("main", 0, [MatchRow("doc.rdf#host", "rule", "ana", kind="entered")])
    assert [one.kind for one in store.notifications.read("ana")] == ["entered"]


def test_dead_letters_carry_the_label(store: Store) -> None:
    store.journal.append([Publication("p-1", JSON, b"{", audience="board")])
    store.dead_letters.add("journal", [DeadLetter("p-1", "no", {}, 1), DeadLetter("p-2", "no", {}, 2)])
    assert [one.audience for one in store.dead_letters.read()] == ["board", None]


def test_where_nothing_carries_a_label_a_batch_asks_once(tmp_path) -> None:
    """However many matches there are; with labels it asks once or twice for each part of thousands."""
    with open_store(sqlite_url(tmp_path / "store.db")) as store:
        asked: list[str] = []

        @event.listens_for(store.database.engine, "before_cursor_execute")
        def note(_c: object, _cursor: object, statement: str, *_: object) -> None:
            if "audience_" in statement:
                asked.append(statement)

        def commit(number: int) -> CommitResult:
            matches = [MatchRow(f"p-{number}-{i}", f"s-{i}", f"who-{i % 50}") for i in range(12_000)]
            return store.notifications.commit_batch("main", number, matches)

        assert (commit(0).new, len(asked)) == (12_000, 1)
        store.journal.append([Publication("p-1-0", JSON, b"{}", audience="board")])
        asked.clear()
        assert commit(1).unseen == 1
        assert len(asked) <= 1 + 2 * 3 + 1
