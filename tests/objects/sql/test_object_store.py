"""Whom a change of an object concerns is told once, in one transaction, in the order of the changes."""

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


def notice(change: int, who: str = "Student:3", because: tuple[tuple[str, str], ...] = ()) -> Notice:
    changed = {"object": "Course:1", "label": "Trees", "attributes": ["room"], "after": {"room": change}}
    return Notice(f"o-{change}-{who}", who, "Course:1", "updated", because, changed)


def sequence_of(store: Store, who: str) -> list[tuple[int, str]]:
    return [(each.sequence, each.id) for each in store.notifications.read(who)]


def test_what_is_told_has_what_changed_and_why(store: Store) -> None:
    why = (("Trees <-attends- you", "Course:1"), ("Trees (you watch Course)", "Course:1"))
    assert store.object_notifications.tell("university", [notice(1, because=why)]) == NotificationOutcome(
        1, 0
    )
    [told] = store.notifications.read("Student:3")
    assert (told.subscription, told.publication, told.kind) == ("university", "Course:1", "updated")
    assert told.because == tuple(Reason(text, None, at) for text, at in why)
    assert told.bindings == notice(1).changed


def test_numbers_follow_the_changes_and_share_the_sequence_of_a_subscriber(store: Store) -> None:
    store.notifications.commit_batch("s", 0, [MatchRow("p-1", "s-1", "Student:3")])
    done = store.object_notifications.tell("university", [notice(each) for each in (9, 2, 5)])
    store.notifications.commit_batch("s", 1, [MatchRow("p-2", "s-1", "Student:3")])
    assert done == NotificationOutcome(3, 0)
    told = sequence_of(store, "Student:3")
    assert [number for number, _ in told] == [1, 2, 3, 4, 5]
    assert [id for _, id in told[1:4]] == [f"o-{each}-Student:3" for each in (9, 2, 5)]


def test_what_comes_again_is_told_once(store: Store) -> None:
    store.object_notifications.tell("university", [notice(1), notice(2)])
    again = [notice(1), notice(2), notice(3), notice(3)]
    assert store.object_notifications.tell("university", again) == NotificationOutcome(1, 3)
    assert [number for number, _ in sequence_of(store, "Student:3")] == [1, 2, 3]


def test_several_who_read_the_same_changes_tell_once(store: Store, url: str) -> None:
    changes = [notice(change, who) for change in range(20) for who in PEOPLE]
    together = Barrier(4)

    def tells(number: int) -> NotificationOutcome:
        with open_store(url) as own:
            together.wait()
            parts = [changes[first : first + 10] for first in range(0, len(changes), 10)]
            done = [own.object_notifications.tell("university", part) for part in parts]
        return NotificationOutcome(sum(each.new for each in done), sum(each.repeated for each in done))

    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(tells, range(4)))
    assert sum(each.new for each in done) == len(changes)
    assert sum(each.repeated for each in done) == 3 * len(changes)
    for who in PEOPLE:
        expected = [(number + 1, f"o-{number}-{who}") for number in range(20)]
        assert sequence_of(store, who) == expected


def test_who_cannot_be_told_is_a_dead_letter_and_holds_nobody_up(store: Store) -> None:
    given = [
        notice(1, "Student:a\nb"),
        notice(1),
        notice(2, "Student:a\nb"),
        notice(2, "Student:" + "x" * 500),
    ]
    assert store.object_notifications.tell("university", given) == NotificationOutcome(1, 0, dead=3)
    assert store.object_notifications.tell("university", given) == NotificationOutcome(0, 1)
    first, second, last = store.dead_letters.read(source="university")
    assert first.publication.startswith("o-1-") and second.publication.startswith("o-2-")
    assert "Course:1 updated: a subscriber's name has only characters that can be shown" in first.reason
    assert "1 to 500 characters" in last.reason and b'"room":2' in (last.body or b"")


def test_nothing_is_told_under_a_name_that_no_source_can_have(store: Store) -> None:
    with pytest.raises(InputError, match="a source's name"):
        store.object_notifications.tell("", [notice(1)])
    assert store.notifications.read("Student:3") == []
