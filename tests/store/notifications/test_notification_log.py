"""Positions of the notifications of all subscribers: gapless, unchanging, each notification at one of them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.model import Notification
from tidings.store.encoding import MatchRow
from tidings.store.notifications import notification_log
from tidings.store.notifications.notification_log import SequenceRange, cut_ranges
from tidings.store.store import Store, open_store


def notify(store: Store, batch: int, subscribers: list[str]) -> None:
    rows = [MatchRow(f"p{batch}-{number}", "s", name) for number, name in enumerate(subscribers)]
    store.notifications.commit_batch("test", batch, rows)


def read(store: Store, after: int, upto: int) -> list[tuple[str, int]]:
    """Return what is at a range of positions."""
    log = store.notification_log
    found: list[Notification] = [one for page in log.read(log.ranges(after, upto)) for one in page]
    return [(one.subscriber, one.sequence) for one in found]


batches = st.lists(st.lists(st.sampled_from(["ana", "bo", "cy"]), max_size=5), max_size=6)


@given(batches, st.data())
def test_ranges_are_a_part_of_one_order(
    new_url: Callable[[], str], commits: list[list[str]], data: st.DataObject
) -> None:
    with open_store(new_url()) as store:
        heads = []
        for batch, subscribers in enumerate(commits):
            notify(store, batch, subscribers)
            if data.draw(st.booleans()):
                heads.append(
                    (store.notification_log.catch_up(), read(store, 0, store.notification_log.head()))
                )
        head = store.notification_log.catch_up()
        order = read(store, 0, head)
        expected = {name: sum(each.count(name) for each in commits) for name in ("ana", "bo", "cy")}
        assert head == len(order) == sum(expected.values())
        for name, count in expected.items():
            assert [sequence for subscriber, sequence in order if subscriber == name] == list(
                range(1, count + 1)
            )
        for earlier, seen in heads:
            assert order[:earlier] == seen, "positions have changed"
        after, upto = sorted(data.draw(st.tuples(st.integers(0, head), st.integers(0, head))))
        assert read(store, after, upto) == order[after:upto]


def test_catch_up_with_more_subscribers_than_a_transaction_numbers(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notification_log, "SUBSCRIBERS", 2)
    monkeypatch.setattr(notification_log, "PAGE", 3)
    notify(store, 0, ["ana", "bo", "cy", "dan", "eve", "ana"])
    assert store.notification_log.catch_up() == 6
    assert read(store, 0, 6) == [("ana", 1), ("ana", 2), ("bo", 1), ("cy", 1), ("dan", 1), ("eve", 1)]


def test_catch_up_by_several_readers_gives_each_notification_one_position(store: Store) -> None:
    for batch in range(5):
        notify(store, batch, ["ana", "bo", "cy"])
        with ThreadPoolExecutor(4) as readers:
            heads = {
                each.result() for each in [readers.submit(store.notification_log.catch_up) for _ in range(4)]
            }
        assert heads == {3 * (batch + 1)}
    assert sorted(read(store, 0, 15)) == sorted(
        (name, n) for name in ("ana", "bo", "cy") for n in range(1, 6)
    )


def test_catch_up_without_news_writes_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    notify(store, 0, ["ana"])
    assert store.notification_log.catch_up() == 1

    def refuse(work: object) -> None:
        raise AssertionError("written")

    monkeypatch.setattr(store.database, "transact", refuse)
    assert store.notification_log.catch_up() == 1


ranges = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5), st.integers(0, 12)), max_size=5)


@given(ranges, st.integers(1, 7))
def test_cut_ranges_gives_groups_of_equal_size(parts: list[tuple[str, int, int]], size: int) -> None:
    given = [SequenceRange(name, after, after + length) for name, after, length in parts]

    def keys(some: list[SequenceRange]) -> list[tuple[str, int]]:
        return [(each.subscriber, n) for each in some for n in range(each.after + 1, each.upto + 1)]

    groups = [keys(list(group)) for group in cut_ranges(given, size)]
    assert [key for group in groups for key in group] == keys(given)
    assert all(len(group) == size for group in groups[:-1])
    assert all(0 < len(group) <= size for group in groups)
