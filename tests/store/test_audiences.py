"""Audiences: who gets and who sees publications with an audience label.

The definition is two lines: a match becomes a notification if its subscriber may see the publication when the batch is
committed, and the notification is withheld in each read while the subscriber may not. The store must agree with it
after any sequence of operations.
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
from tidings.errors import IdConflict, InputError
from tidings.model import WITHHELD, Publication, Reason, Subscription, notification_id
from tidings.store.audiences import Grant, is_visible
from tidings.store.database import sqlite_url
from tidings.store.dead_letters import DeadLetter
from tidings.store.encoding import MatchRow
from tidings.store.journal import AppendBatch
from tidings.store.notifications.batch_commit import CommitResult
from tidings.store.store import Store, open_store

JSON = "application/json"
IDS = [f"p-{i}" for i in range(8)]
PEOPLE = st.sampled_from(["ana", "bo"])
LABELS = st.sampled_from(["board", "press"])
OWNERS = {"s-0": "ana", "s-1": "ana", "s-2": "bo", "s-3": "bo"}
DELAYED = {"s-1", "s-3"}
PAIRS = st.lists(st.tuples(st.sampled_from(IDS), st.sampled_from(sorted(OWNERS))), max_size=8)


def match_row(publication: str, subscription: str) -> MatchRow:
    because = [Reason("price < 200", 180, "/price")]
    return MatchRow(publication, subscription, OWNERS[subscription], because, {"secret": publication})


class History(RuleBasedStateMachine):
    """A store, and next to it a model of its contents."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.now = datetime(2026, 5, 1, tzinfo=UTC)
        self.store = open_store(url, lambda: self.now)
        subscriptions = [
            Subscription(id, subscriber, "predicates", "a = 1", 60 if id in DELAYED else None)
            for id, subscriber in OWNERS.items()
        ]
        self.store.subscriptions.add_many(subscriptions)
        self.labels: dict[str, str | None] = {}
        self.granted: set[tuple[str, str]] = set()
        self.batches: list[list[MatchRow]] = []
        self.delivered: dict[str, list[tuple[str, str]]] = {"ana": [], "bo": []}
        self.held: dict[str, list[tuple[str, str]]] = {"ana": [], "bo": []}

    def teardown(self) -> None:
        self.store.close()

    def may_see(self, subscriber: str, publication: str) -> bool:
        label = self.labels.get(publication)
        return label is None or (subscriber, label) in self.granted

    @rule(id=st.sampled_from(IDS), label=st.none() | LABELS)
    def publish(self, id: str, label: str | None) -> None:
        publication = Publication(id, JSON, b"{}", audience=label)
        [outcomes] = self.store.journal.append_batches([AppendBatch([publication])])
        [outcome] = outcomes or ()
        assert isinstance(outcome, IdConflict) == (self.labels.setdefault(id, label) != label)

    @rule(subscriber=PEOPLE, label=LABELS)
    def grant(self, subscriber: str, label: str) -> None:
        assert self.store.audiences.grant(subscriber, label) == ((subscriber, label) not in self.granted)
        self.granted.add((subscriber, label))

    @rule(subscriber=PEOPLE, label=LABELS)
    def revoke(self, subscriber: str, label: str) -> None:
        assert self.store.audiences.revoke(subscriber, label) == ((subscriber, label) in self.granted)
        self.granted.discard((subscriber, label))

    @rule(pairs=PAIRS)
    def commit(self, pairs: list[tuple[str, str]]) -> None:
        self.commit_and_check([match_row(p, s) for p, s in pairs])

    @precondition(lambda self: self.batches)
    @rule(data=st.data(), marked=st.booleans())
    def repeat(self, data: st.DataObject, marked: bool) -> None:
        """Commit a batch again.

        Under its number; or, with the marks lost, under another one: then the current grants count.
        """
        number = data.draw(st.integers(0, len(self.batches) - 1))
        if marked:
            result = self.store.notifications.commit_batch("main", number, self.batches[number])
            assert result == CommitResult(0, 0, skipped=True)
        else:
            self.commit_and_check(self.batches[number])

    def commit_and_check(self, batch: list[MatchRow]) -> None:
        order = [match.publication for match in batch]
        new, later, unseen = 0, 0, 0
        existing = [pair for rows in (*self.delivered.values(), *self.held.values()) for pair in rows]
        for match in sorted(batch, key=lambda match: (order.index(match.publication), match.subscription)):
            pair = (match.publication, match.subscription)
            if not self.may_see(match.subscriber, match.publication):
                unseen += 1
            elif pair not in existing:
                (self.held if match.subscription in DELAYED else self.delivered)[match.subscriber].append(
                    pair
                )
                existing.append(pair)
                new, later = new + (pair[1] not in DELAYED), later + (pair[1] in DELAYED)
        result = self.store.notifications.commit_batch("main", len(self.batches), batch)
        repeated = len(batch) - new - later - unseen
        assert result == CommitResult(new, repeated, deferred=later, unseen=unseen)
        self.batches.append(batch)

    @rule()
    def hand_over(self) -> None:
        self.now += timedelta(seconds=61)
        self.store.notifications.hand_over()
        for subscriber, waiting in self.held.items():
            self.delivered[subscriber] += waiting
            waiting.clear()

    @invariant()
    def reads_withhold_hidden_publications(self) -> None:
        for subscriber, pairs in self.delivered.items():
            read = self.store.notifications.read(subscriber)
            assert [notification.sequence for notification in read] == list(range(1, len(pairs) + 1))
            for notification, (publication, subscription) in zip(read, pairs, strict=True):
                assert notification.id == notification_id(publication, subscription)
                assert notification.subscription == subscription
                shown = (
                    notification.kind,
                    notification.publication,
                    len(notification.because),
                    notification.bindings,
                )
                seen = self.may_see(subscriber, publication)
                complete = ("matched", publication, 1, {"secret": publication})
                assert shown == (complete if seen else (WITHHELD, "", 0, None))
            for id in {subscription for _, subscription in pairs}:
                last, _ = self.store.numbered_notifications.last(subscriber, id)
                entries = self.store.numbered_notifications.read(subscriber, id, 1, last)
                own = [one for one in read if one.subscription == id]
                assert [entry.notification for entry in reversed(entries)] == own

    @invariant()
    def grants_are_listed(self) -> None:
        listed = {(grant.subscriber, grant.label) for grant in self.store.audiences.list()}
        assert listed == self.granted
        for subscriber in ("ana", "bo"):
            assert self.store.audiences.of(subscriber) == {
                label for name, label in self.granted if name == subscriber
            }
            granted = self.store.audiences.of(subscriber)
            visible = {one.id for one in self.store.journal.read(0) if is_visible(granted, one.audience)}
            assert visible == {id for id in self.labels if self.may_see(subscriber, id)}


def test_audiences_random_history_matches_model(new_url: Callable[[], str]) -> None:
    run_state_machine_as_test(lambda: History(new_url()), settings=share(10, stateful_step_count=30))


def test_append_same_id_with_other_audience_is_rejected(store: Store) -> None:
    secret = Publication("p-1", JSON, b"{}", audience="board")
    assert [result.position for result in store.journal.append([secret, secret])] == [1, 1]
    for other in (None, "press"):
        with pytest.raises(IdConflict):
            store.journal.append([Publication("p-1", JSON, b"{}", audience=other)])
    assert [publication.audience for publication in store.journal.read(0)] == ["board"]
    assert store.journal.find("p-1") == Publication("p-1", JSON, b"{}", 1, "board")
    for wrong in ("", "bo\nard", "x" * 501):
        with pytest.raises(InputError, match="an audience label"):
            store.journal.append([Publication("p-2", JSON, b"{}", audience=wrong)])
        with pytest.raises(InputError):
            store.audiences.grant("ana", wrong)
    assert store.journal.head() == 1


def test_grant_and_revoke_change_visible_audiences(store: Store) -> None:
    audiences = store.audiences
    assert is_visible(audiences.of("ana"), None) and not is_visible(audiences.of("ana"), "board")
    assert audiences.grant("ana", "board") and not audiences.grant("ana", "board")
    first = audiences.last_change("ana")
    assert is_visible(audiences.of("ana"), "board") and not is_visible(audiences.of("bo"), "board")
    [only] = audiences.list("ana")
    assert only == Grant("ana", "board", first.time) and audiences.list("bo") == []
    assert audiences.revoke("ana", "board") and not audiences.revoke("ana", "board")
    second = audiences.last_change("ana")
    assert second.version > first.version and second.time > first.time
    assert audiences.grant("ana", "board")
    assert audiences.last_change("ana").version > second.version


def test_read_resource_named_like_hidden_publication_is_not_withheld(store: Store) -> None:
    """A resource or an object is in no journal: a publication of the same name is something else."""
    store.journal.append([Publication("doc.rdf#host", JSON, b"{}", audience="board")])
    store.notifications.commit_batch("main", 0, [MatchRow("doc.rdf#host", "rule", "ana", kind="entered")])
    assert [notification.kind for notification in store.notifications.read("ana")] == ["entered"]


def test_dead_letters_have_audience_of_their_publication(store: Store) -> None:
    store.journal.append([Publication("p-1", JSON, b"{", audience="board")])
    store.dead_letters.add("journal", [DeadLetter("p-1", "no", {}, 1), DeadLetter("p-2", "no", {}, 2)])
    assert [letter.audience for letter in store.dead_letters.read()] == ["board", None]


def test_commit_batch_without_audiences_queries_them_once(tmp_path) -> None:
    """However many matches there are.

    With labels there are one or two queries for each part of thousands.
    """
    with open_store(sqlite_url(tmp_path / "store.db")) as store:
        statements: list[str] = []

        @event.listens_for(store.database.engine, "before_cursor_execute")
        def note(_c: object, _cursor: object, statement: str, *_: object) -> None:
            if "audience_" in statement:
                statements.append(statement)

        def commit(number: int) -> CommitResult:
            matches = [MatchRow(f"p-{number}-{i}", f"s-{i}", f"who-{i % 50}") for i in range(12_000)]
            return store.notifications.commit_batch("main", number, matches)

        assert (commit(0).new, len(statements)) == (12_000, 1)
        store.journal.append([Publication("p-1-0", JSON, b"{}", audience="board")])
        statements.clear()
        assert commit(1).unseen == 1
        assert len(statements) <= 1 + 2 * 3 + 1
