"""Notices of a change: one for each subscriber, with all reasons, and none for its author."""

from __future__ import annotations

from dataclasses import replace

from tests.objects.test_propagation import GRAPH, MODEL, S1, S2, S3, SCRIPT2, STRUCTURES, WATCHES
from tidings.objects.model.class_model import ChangeKind
from tidings.objects.notices import Notice, ObjectChange, build_notices
from tidings.objects.propagation import Change, Limits, Object, Watch, propagate_change

TITLE = Change(ChangeKind.UPDATE, SCRIPT2, frozenset(("title",)))
NEW_TITLE = ObjectChange(
    "1",
    "2026-11-16T12:00:00Z",
    "LearningMaterial",
    TITLE,
    propagate_change(GRAPH, WATCHES, TITLE),
    {"title": "Script2"},
    {"title": "Second edition"},
)
LABELS = {S3: "Sam", STRUCTURES: "Data structures"}


def notices_of(change: ObjectChange, notify_author: bool = False) -> list[Notice]:
    return list(build_notices("university", MODEL, change, LABELS, notify_author))


def test_build_notices_merges_reasons_of_subscriber() -> None:
    first, second, third = notices_of(NEW_TITLE)
    assert [each.subscriber for each in (first, second, third)] == ["Student:S1", "Student:S2", "Student:S3"]
    assert first.because == (
        ("Second edition -usedIn-> Course:ProgrammingBasics (you watch it)", "Course:ProgrammingBasics"),
    )
    assert [text for text, _ in second.because] == [
        "Second edition -usedIn-> Data structures (you watch Course)",
        "Second edition -usedIn-> Course:ProgrammingBasics (you watch Course)",
        "Second edition -usedIn-> Course:ProgrammingBasics <-attends- you",
    ]
    assert third.kind == "updated" and third.object == "LearningMaterial:Script2"
    assert third.changed["before"] == {"title": "Script2"} and third.changed["after"] == {
        "title": "Second edition"
    }


def test_build_notices_ids_are_stable_and_unique() -> None:
    once = [each.id for each in notices_of(NEW_TITLE)]
    assert once == [each.id for each in notices_of(NEW_TITLE)]
    another = [each.id for each in notices_of(replace(NEW_TITLE, id="2"))]
    elsewhere = [each.id for each in build_notices("library", MODEL, NEW_TITLE, LABELS)]
    assert len({*once, *another, *elsewhere}) == 9


def test_build_notices_excludes_author_unless_requested() -> None:
    change = replace(NEW_TITLE, author=S3)
    assert [each.subscriber for each in notices_of(change)] == ["Student:S1", "Student:S2"]
    with_author = notices_of(change, notify_author=True)
    assert len(with_author) == 3 and with_author[0].changed["author_label"] == "Sam"


def test_build_notices_deleted_object_has_last_label() -> None:
    change = Change(ChangeKind.DELETE, STRUCTURES)
    deleted = ObjectChange(
        "3", "", "Course", change, propagate_change(GRAPH, WATCHES, change), {"title": "Trees", "room": "A2"}
    )
    [watching, attending] = build_notices("university", MODEL, deleted, {})
    assert watching.because[0][0] == "Trees (you watch Course)"
    assert attending.because[0][0] == "Trees <-attends- you"


def test_build_notices_link_names_other_object() -> None:
    change = Change(ChangeKind.LINK, STRUCTURES)
    linked = ObjectChange(
        "4",
        "",
        "Course",
        change,
        propagate_change(GRAPH, WATCHES, change),
        association="usedIn",
        other=SCRIPT2,
    )
    content = notices_of(linked)[0].changed
    assert (content["association"], content["other"]) == ("usedIn", "LearningMaterial:Script2")
    assert linked.objects() == {STRUCTURES, S2, S3, SCRIPT2}


def test_build_notices_reached_limit_is_mentioned() -> None:
    short = propagate_change(GRAPH, WATCHES | {Watch(S1, "LearningMaterial")}, TITLE, Limits(steps=0))
    [only] = notices_of(replace(NEW_TITLE, propagation=short))
    assert only.subscriber == str(Object("Student", "S1"))
    assert only.changed["limits"] == ["followed for 0 steps only: 2 more lead on"]
    few = propagate_change(GRAPH, WATCHES, TITLE, Limits(subscribers=1))
    assert notices_of(replace(NEW_TITLE, propagation=few))[0].changed["limits"] == [
        "only the first 1 of 3 subscribers were notified"
    ]


def test_build_notices_class_missing_in_model_uses_key() -> None:
    old = [each.because for each in build_notices("university", MODEL, replace(NEW_TITLE, cls="Leaflet"), {})]
    assert old[2] == (
        ("LearningMaterial:Script2 -usedIn-> Course:DataStructures <-attends- you", "Course:DataStructures"),
    )
