"""Watches by call: each once, of classes that there are."""

from __future__ import annotations

import pytest

from tests.objects.databases import Database
from tidings.errors import InputError
from tidings.objects.propagation import Object, Watch

S1, S2, S3 = (Object("Student", key) for key in "123")


def test_watched_until_it_is_watched_no_more(university: Database) -> None:
    site = university.site
    assert site.watches() == [Watch(S1, "Course", "1"), Watch(S2, "Course")]
    assert site.watch(S3, "Lecturer", "7") and site.watch(S3, "Course")
    assert not site.watch(S3, "Lecturer", "7") and not site.watch(S3, "Course")
    assert site.watches(S3) == [Watch(S3, "Course"), Watch(S3, "Lecturer", "7")]
    university.run("INSERT INTO lecturer VALUES (7, 'Ada', '4711')")
    [found] = site.changes(most=10)
    assert {hit.subscriber for hit in found.propagation.hits} == {S3}
    assert site.unwatch(S3, "Lecturer", "7") and not site.unwatch(S3, "Lecturer", "7")
    assert site.watches(S3) == [Watch(S3, "Course")]


def test_all_of_a_class_is_something_else_than_one_of_it(university: Database) -> None:
    assert not university.site.unwatch(S1, "Course") and not university.site.unwatch(S2, "Course", "1")
    assert university.site.watch(S1, "Course") and university.site.watches(S1) == [
        Watch(S1, "Course"),
        Watch(S1, "Course", "1"),
    ]


@pytest.mark.parametrize(
    ("who", "cls", "problem"),
    [
        (
            S1,
            "Cuorse",
            "no such class can be watched; received Cuorse; accepted: Student, Lecturer, Course, Learni",
        ),
        (Object("Lecturer", "1"), "Course", "cannot be told; received Lecturer; accepted: Student$"),
    ],
)
def test_classes_that_there_are_not_are_refused(
    university: Database, who: Object, cls: str, problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        university.site.watch(who, cls, "1")
    assert len(university.site.watches()) == 2


def test_without_an_outbox_nothing_is_watched(database: Database) -> None:
    with pytest.raises(InputError, match="has no outbox"):
        database.site.watch(S1, "Course")
