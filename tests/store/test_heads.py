"""News of many subscribers at once."""

from __future__ import annotations

from tidings.store.encoding import MatchRow
from tidings.store.store import Store


def test_where_everybody_stands(store: Store) -> None:
    found = [MatchRow(f"p-{i}", f"s-{name}", name) for name in ("ana", "bo", 'é"l') for i in range(len(name))]
    store.notifications.commit_batch("main", 0, found)
    assert store.heads.last(["ana", 'é"l', "nobody"]) == {"ana": 3, 'é"l': 3}
    assert store.heads.last([]) == {}


def test_what_some_were_told(store: Store) -> None:
    many = [f"user-{number}" for number in range(3_000)]
    found = [MatchRow(f"p-{i}", f"s-{name}", name) for i in range(3) for name in many]
    store.notifications.commit_batch("main", 0, found)
    told = store.heads.told((name, number) for name in many for number in (3, 2, 9))
    assert [(one.subscriber, one.sequence) for one in told] == sorted(
        (name, number) for name in many for number in (2, 3)
    )
    assert told[0] == store.notifications.read(told[0].subscriber, 1)[0]
    assert store.heads.told([]) == []
