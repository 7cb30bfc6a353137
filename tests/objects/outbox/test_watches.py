"""Watches by calls: each is stored once, and classes must exist."""

from __future__ import annotations

import pytest

from tests.objects.databases import Database
from tidings.errors import InputError
from tidings.objects.propagation import Object, Watch

S1, S2, S3 = (Object("Student", key) for key in "123")


def test_watch_and_unwatch_store_watch_once(university: Database) -> None:
    site = university.site
    assert site.watches() == [Watch(S1, "Course", "1"), Watch(S2, "Course")]
    assert site.watch(S3, "Lecturer", "7") and site.watch(S3, "Course")
    assert not site.watch(S3, "Lecturer", "7") and not site.watch(S3, "Course")
    assert site.watches(S3) == [Watch(S3, "Course"), Watch(S3, "Lecturer", "7")]
    university.run("INSERT INTO lecturer VALUES (7, 'Ada', '4711')")
    [change] = site.changes(limit=10)
    assert {hit.subscriber for hit in change.propagation.hits} == {S3}
    assert site.unwatch(S3, "Lecturer", "7") and not site.unwatch(S3, "Lecturer", "7")
    assert site.watches(S3) == [Watch(S3, "Course")]


def test_watch_of_class_differs_from_watch_of_object(university: Database) -> None:
    assert not university.site.unwatch(S1, "Course") and not university.site.unwatch(S2, "Course", "1")
    assert university.site.watch(S1, "Course") and university.site.watches(S1) == [
        Watch(S1, "Course"),
        Watch(S1, "Course", "1"),
    ]


@pytest.mark.parametrize(
    ("subscriber", "cls", "problem"),
    [
        (
            S1,
            "Cuorse",
            "no such class can be watched; received Cuorse; accepted: Student, Lecturer, Course, Learni",
        ),
        (Object("Lecturer", "1"), "Course", "cannot be notified; received Lecturer; accepted: Student$"),
    ],
)
def test_watch_unknown_class_is_rejected(
    university: Database, subscriber: Object, cls: str, problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        university.site.watch(subscriber, cls, "1")
    assert len(university.site.watches()) == 2


def test_watch_without_outbox_is_rejected(database: Database) -> None:
    with pytest.raises(InputError, match="has no outbox"):
        database.site.watch(S1, "Course")
