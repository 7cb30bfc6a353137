"""Batches that are larger than what is held of them at once: the same numbers, the same counts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tidings.store import notifications
from tidings.store.dead_letters import DeadLetter
from tidings.store.encoding import MatchRow
from tidings.store.notifications import CommitResult
from tidings.store.store import Store


class Held(MatchRow):
    """Counts how many of its kind there are."""

    alive = most = 0

    def __init__(self, *fields: str) -> None:
        super().__init__(*fields)
        Held.alive += 1
        Held.most = max(Held.most, Held.alive)

    def __del__(self) -> None:
        Held.alive -= 1


class Produced:
    """Matches that are made while somebody goes through them: each publication has five, for three subscribers."""

    def __init__(self, publications: int) -> None:
        self._publications = publications

    def __iter__(self) -> Iterator[MatchRow]:
        for p in range(self._publications):
            for s in (3, 1, 4, 0, 2):
                yield Held(f"p-{p:04d}", f"s-{s}", f"user-{s % 3}")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "PART", 50)
    monkeypatch.setattr(notifications, "LETTERS", 10)
    monkeypatch.setattr(Held, "most", 0)


def told(store: Store, subscriber: str) -> list[tuple[int, str, str]]:
    return [(one.sequence, one.publication, one.subscription) for one in store.notifications.read(subscriber)]


def test_a_batch_is_never_held_whole(store: Store) -> None:
    assert store.notifications.commit_batch("main", 0, Produced(400)) == CommitResult(2_000, 0)
    assert Held.most <= 3 * 50
    wanted = [(f"p-{p:04d}", f"s-{s}") for p in range(400) for s in (0, 3)]
    assert told(store, "user-0") == [(i, *pair) for i, pair in enumerate(wanted, 1)]
    assert store.notifications.count() == 2_000


def test_what_is_repeated_is_known_across_parts(store: Store) -> None:
    store.notifications.commit_batch("main", 0, Produced(30))
    assert store.notifications.commit_batch("main", 1, Produced(60)) == CommitResult(150, 150)
    assert [one[0] for one in told(store, "user-2")] == list(range(1, 61))
    twice = [*Produced(40), *Produced(40)]
    assert store.notifications.commit_batch("other", 0, iter(twice)) == CommitResult(0, 400)


def test_a_failure_in_the_last_part_leaves_nothing(store: Store) -> None:
    bad = DeadLetter("p-x", "bad", {("a", "key"): 1})  # type: ignore[dict-item]
    letters = [DeadLetter(f"p-{i}", "bad", {}) for i in range(25)]
    with pytest.raises(TypeError):
        store.notifications.commit_batch("main", 0, Produced(100), [*letters, bad])
    assert store.notifications.count() == store.dead_letters.count() == 0
    assert store.notifications.commit_batch("main", 0, Produced(100), letters) == CommitResult(500, 0)
    assert [one.number for one in store.dead_letters.read()] == list(range(1, 26))
