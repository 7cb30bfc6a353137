"""Notifications of object changes: once per subscriber, in one transaction and in order."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from tidings.errors import InputError
from tidings.model import Reason
from tidings.objects.notices import Notice
from tidings.objects.sql.object_store import NotificationOutcome
from tidings.store.encoding import MatchRow
from tidings.store.store import Store, open_store

PEOPLE = [f"Student:{number}" for number in range(1, 6)]


def notice(change: int, subscriber: str = "Student:3", reasons: tuple[tuple[str, str], ...] = ()) -> Notice:
    changed = {"object": "Course:1", "label": "Trees", "attributes": ["room"], "after": {"room": change}}
    return Notice(f"o-{change}-{subscriber}", subscriber, "Course:1", "updated", reasons, changed)


def sequence_of(store: Store, subscriber: str) -> list[tuple[int, str]]:
    return [(each.sequence, each.id) for each in store.notifications.read(subscriber)]


def test_tell_notification_has_change_and_reasons(store: Store) -> None:
    reasons = (("Trees <-attends- you", "Course:1"), ("Trees (you watch Course)", "Course:1"))
    assert store.object_notifications.add("university", [notice(1, reasons=reasons)]) == NotificationOutcome(
        1, 0
    )
    [notification] = store.notifications.read("Student:3")
    assert (notification.subscription, notification.publication, notification.kind) == (
        "university",
        "Course:1",
        "updated",
    )
    assert notification.because == tuple(Reason(text, None, at) for text, at in reasons)
    assert notification.bindings == notice(1).changed


def test_tell_sequence_follows_changes_and_is_shared(store: Store) -> None:
    store.notifications.commit_batch("s", 0, [MatchRow("p-1", "s-1", "Student:3")])
    outcome = store.object_notifications.add("university", [notice(each) for each in (9, 2, 5)])
    store.notifications.commit_batch("s", 1, [MatchRow("p-2", "s-1", "Student:3")])
    assert outcome == NotificationOutcome(3, 0)
    sequence = sequence_of(store, "Student:3")
    assert [number for number, _ in sequence] == [1, 2, 3, 4, 5]
    assert [id for _, id in sequence[1:4]] == [f"o-{each}-Student:3" for each in (9, 2, 5)]


def test_tell_repeated_notice_is_notified_once(store: Store) -> None:
    store.object_notifications.add("university", [notice(1), notice(2)])
    again = [notice(1), notice(2), notice(3), notice(3)]
    assert store.object_notifications.add("university", again) == NotificationOutcome(1, 3)
    assert [number for number, _ in sequence_of(store, "Student:3")] == [1, 2, 3]


def test_tell_concurrent_workers_notify_once(store: Store, url: str) -> None:
    changes = [notice(change, subscriber) for change in range(20) for subscriber in PEOPLE]
    barrier = Barrier(4)

    def notify(number: int) -> NotificationOutcome:
        with open_store(url) as own:
            barrier.wait()
            parts = [changes[first : first + 10] for first in range(0, len(changes), 10)]
            outcomes = [own.object_notifications.add("university", part) for part in parts]
        return NotificationOutcome(
            sum(each.new for each in outcomes), sum(each.repeated for each in outcomes)
        )

    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(notify, range(4)))
    assert sum(each.new for each in outcomes) == len(changes)
    assert sum(each.repeated for each in outcomes) == 3 * len(changes)
    for subscriber in PEOPLE:
        expected = [(number + 1, f"o-{number}-{subscriber}") for number in range(20)]
        assert sequence_of(store, subscriber) == expected


def test_tell_invalid_subscriber_is_dead_letter_and_blocks_no_other(store: Store) -> None:
    notices = [
        notice(1, "Student:a\nb"),
        notice(1),
        notice(2, "Student:a\nb"),
        notice(2, "Student:" + "x" * 500),
    ]
    assert store.object_notifications.add("university", notices) == NotificationOutcome(1, 0, dead=3)
    assert store.object_notifications.add("university", notices) == NotificationOutcome(0, 1)
    first, second, last = store.dead_letters.read(source="university")
    assert first.publication.startswith("o-1-") and second.publication.startswith("o-2-")
    assert "Course:1 updated: a subscriber's name has only characters that can be shown" in first.reason
    assert "1 to 500 characters" in last.reason and b'"room":2' in (last.body or b"")


def test_tell_invalid_source_name_is_rejected(store: Store) -> None:
    with pytest.raises(InputError, match="a source's name"):
        store.object_notifications.add("", [notice(1)])
    assert store.notifications.read("Student:3") == []
