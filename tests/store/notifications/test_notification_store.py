"""Notifications: batches, cursors, repetition, and large batches in parts."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tidings.model import Notification, Reason, notification_id
from tidings.store.dead_letters import DeadLetter
from tidings.store.encoding import MatchRow, encode_reasons
from tidings.store.notifications import batch_commit
from tidings.store.notifications.batch_commit import CommitResult
from tidings.store.store import Store

BECAUSE = (Reason("price < 200", 180, "/price"), Reason("not sold", None, ""), Reason("new", True, "/new"))


def match_row(publication: str, subscription: str, subscriber: str = "ana") -> MatchRow:
    return MatchRow(publication, subscription, subscriber, BECAUSE)


def read_sequence(store: Store, subscriber: str = "ana") -> list[tuple[int, str, str]]:
    read = store.notifications.read(subscriber)
    return [(one.sequence, one.publication, one.subscription) for one in read]


def test_read_notification_keeps_all_fields(store: Store) -> None:
    bindings = {"?page": "http://example.org/é", "odd": "a\x00\ud800"}
    store.notifications.commit_batch("main", 0, [MatchRow("p-1", "s-1", "ana", BECAUSE, bindings, "entered")])
    [read] = store.notifications.read("ana")
    assert read == Notification(
        notification_id("p-1", "s-1"), "ana", 1, "s-1", "p-1", BECAUSE, read.time, "entered", bindings
    )
    assert read.time.endswith("Z")


def test_commit_batch_accepts_encoded_reasons(store: Store) -> None:
    store.notifications.commit_batch("main", 0, [MatchRow("p-1", "s-1", "ana", encode_reasons(BECAUSE))])
    assert store.notifications.read("ana")[0].because == BECAUSE


def test_commit_batch_sequence_follows_publications_then_subscription_ids(store: Store) -> None:
    store.notifications.commit_batch(
        "main",
        0,
        [
            match_row("p-9", "s-2"),
            match_row("p-1", "s-1"),
            match_row("p-9", "s-1"),
            match_row("p-1", "s-0", "bo"),
        ],
    )
    assert read_sequence(store) == [(1, "p-9", "s-1"), (2, "p-9", "s-2"), (3, "p-1", "s-1")]
    assert read_sequence(store, "bo") == [(1, "p-1", "s-0")]
    store.notifications.commit_batch("main", 1, [match_row("p-2", "s-1")])
    assert read_sequence(store)[-1] == (4, "p-2", "s-1")
    assert store.notifications.last_sequence("ana") == 4
    assert store.notifications.last_sequence("nobody") == 0
    assert store.notifications.count() == 5


def test_commit_batch_repeated_number_is_skipped(store: Store) -> None:
    assert store.notifications.commit_batch("main", 7, [match_row("p-1", "s-1")]) == CommitResult(1, 0)
    again = store.notifications.commit_batch(
        "main", 7, [match_row("p-2", "s-1")], [DeadLetter("p-3", "bad", {})]
    )
    assert again == CommitResult(0, 0, skipped=True)
    assert read_sequence(store) == [(1, "p-1", "s-1")]
    assert store.dead_letters.read() == []
    assert (store.notifications.last_batch("main"), store.notifications.last_batch("other")) == (7, None)


def test_commit_batch_match_of_other_stream_is_repeated(store: Store) -> None:
    store.notifications.commit_batch("main", 0, [match_row("p-1", "s-1")])
    twice = [match_row("p-1", "s-1"), match_row("p-2", "s-1"), match_row("p-2", "s-1")]
    assert store.notifications.commit_batch("other", 0, twice) == CommitResult(1, 2)
    assert read_sequence(store) == [(1, "p-1", "s-1"), (2, "p-2", "s-1")]


def test_commit_batch_empty_batch_is_recorded(store: Store) -> None:
    assert store.notifications.commit_batch("main", 0, []) == CommitResult(0, 0)
    assert store.notifications.commit_batch("main", 0, []).skipped


def test_commit_batch_number_without_mark_repeats_no_notification(store: Store) -> None:
    for batch in range(150):
        store.notifications.commit_batch("main", batch, [match_row(f"p-{batch}", "s-1")])
    assert store.notifications.commit_batch("main", 149, []).skipped
    assert store.notifications.commit_batch("main", 0, [match_row("p-0", "s-1")]) == CommitResult(0, 1)
    assert len(read_sequence(store)) == 150


def test_commit_batch_failure_is_rolled_back(store: Store) -> None:
    store.notifications.commit_batch("main", 0, [match_row("p-1", "s-1")])
    unserialisable = DeadLetter("p-9", "bad", {("a", "key"): 1})  # type: ignore[dict-item]
    with pytest.raises(TypeError):
        store.notifications.commit_batch("main", 1, [match_row("p-2", "s-1")], [unserialisable])
    assert len(read_sequence(store)) == 1
    assert store.notifications.commit_batch("main", 1, [match_row("p-2", "s-1")]) == CommitResult(1, 0)
    assert read_sequence(store)[-1] == (2, "p-2", "s-1")


def test_read_after_cursor_with_limit(store: Store) -> None:
    store.notifications.commit_batch("main", 0, [match_row(f"p-{i}", "s-1") for i in range(10)])
    assert [one.sequence for one in store.notifications.read("ana", after=3, limit=4)] == [4, 5, 6, 7]
    assert store.notifications.read("ana", after=10) == []


def test_subscribers_lists_notified_subscribers_in_order(store: Store) -> None:
    matches = [match_row("p-1", f"s-{name}", name) for name in ("cy", "ana", "bo")]
    store.notifications.commit_batch("main", 0, matches)
    assert store.notifications.subscribers(10) == ["ana", "bo", "cy"]
    assert store.notifications.subscribers(2) == ["ana", "bo"]


def test_follow_yields_existing_and_new_notifications(store: Store) -> None:
    store.notifications.commit_batch("main", 0, [match_row("p-0", "s-1"), match_row("p-1", "s-1")])
    stop = threading.Event()
    followed = store.notifications.follow("ana", after=1, stop=stop, poll=0.01)
    assert next(followed).sequence == 2
    writer = threading.Thread(
        target=store.notifications.commit_batch,
        args=("main", 1, [match_row("p-2", "s-1"), match_row("p-3", "s-1")]),
    )
    writer.start()
    assert [next(followed).sequence, next(followed).sequence] == [3, 4]
    writer.join()
    stop.set()
    assert list(followed) == []


def test_commit_batch_fourteen_thousand_matches_keep_sequences(store: Store) -> None:
    matches = [match_row(f"p-{i // 7}", f"s-{i}", f"user-{i % 700}") for i in range(14_000)]
    assert store.notifications.commit_batch("main", 0, matches) == CommitResult(14_000, 0)
    assert store.notifications.commit_batch("main", 1, matches) == CommitResult(0, 14_000)
    assert [one.sequence for one in store.notifications.read("user-3")] == list(range(1, 21))


def test_dead_letters_are_stored_once_per_source(store: Store) -> None:
    bad = DeadLetter("p-1", "not JSON (column 1)", {"where": "column 1"}, position=4, body=b"\x00\xff")
    other = DeadLetter("events/a.jsonl:3", "odd \x00 \ud800", {"received": "\x00\ud800"})
    store.notifications.commit_batch("main", 0, [], [bad, other])
    store.notifications.commit_batch("main", 1, [], [other, bad])
    assert store.dead_letters.add("folder", [other]) == 1
    assert store.dead_letters.add("folder", [other]) == 0
    first, second, third = store.dead_letters.read()
    assert (first.publication, first.reason, first.facts) == (bad.publication, bad.reason, bad.facts)
    assert (first.position, first.body, first.source, first.number) == (4, b"\x00\xff", "main", 1)
    assert second.reason == r"odd \x00 \ud800" and second.facts == other.facts
    assert (third.source, third.number) == ("folder", 3)
    assert store.dead_letters.read(after=1, limit=1) == [second]
    assert store.dead_letters.read(source="folder") == [third]
    assert store.dead_letters.count() == 3


class CountedRow(MatchRow):
    """A match row that counts its instances."""

    alive = most = 0

    def __init__(self, *fields: str) -> None:
        super().__init__(*fields)
        CountedRow.alive += 1
        CountedRow.most = max(CountedRow.most, CountedRow.alive)

    def __del__(self) -> None:
        CountedRow.alive -= 1


class GeneratedMatches:
    """Matches generated during iteration: each publication has five, for three subscribers."""

    def __init__(self, publications: int) -> None:
        self._publications = publications

    def __iter__(self) -> Iterator[MatchRow]:
        for p in range(self._publications):
            for s in (3, 1, 4, 0, 2):
                yield CountedRow(f"p-{p:04d}", f"s-{s}", f"user-{s % 3}")


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_commit, "PART", 50)
    monkeypatch.setattr(batch_commit, "LETTERS", 10)
    monkeypatch.setattr(CountedRow, "most", 0)


def test_commit_batch_is_consumed_in_parts(store: Store) -> None:
    assert store.notifications.commit_batch("main", 0, GeneratedMatches(400)) == CommitResult(2_000, 0)
    assert CountedRow.most <= 3 * 50
    expected = [(f"p-{p:04d}", f"s-{s}") for p in range(400) for s in (0, 3)]
    assert read_sequence(store, "user-0") == [(i, *pair) for i, pair in enumerate(expected, 1)]
    assert store.notifications.count() == 2_000


def test_commit_batch_repetition_is_recognized_across_parts(store: Store) -> None:
    store.notifications.commit_batch("main", 0, GeneratedMatches(30))
    assert store.notifications.commit_batch("main", 1, GeneratedMatches(60)) == CommitResult(150, 150)
    assert [one[0] for one in read_sequence(store, "user-2")] == list(range(1, 61))
    twice = [*GeneratedMatches(40), *GeneratedMatches(40)]
    assert store.notifications.commit_batch("other", 0, iter(twice)) == CommitResult(0, 400)


def test_commit_batch_failure_in_last_part_is_rolled_back(store: Store) -> None:
    bad = DeadLetter("p-x", "bad", {("a", "key"): 1})  # type: ignore[dict-item]
    letters = [DeadLetter(f"p-{i}", "bad", {}) for i in range(25)]
    with pytest.raises(TypeError):
        store.notifications.commit_batch("main", 0, GeneratedMatches(100), [*letters, bad])
    assert store.notifications.count() == store.dead_letters.count() == 0
    assert store.notifications.commit_batch("main", 0, GeneratedMatches(100), letters) == CommitResult(500, 0)
    assert [one.number for one in store.dead_letters.read()] == list(range(1, 26))
