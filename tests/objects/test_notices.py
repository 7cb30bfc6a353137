"""What each subscriber is told about a change: once, with all reasons, and not who made it."""

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


def all_of(noticed: ObjectChange, tell_author: bool = False) -> list[Notice]:
    return list(build_notices("university", MODEL, noticed, LABELS, tell_author))


def test_several_reasons_are_one_notice() -> None:
    one, two, three = all_of(NEW_TITLE)
    assert [each.subscriber for each in (one, two, three)] == ["Student:S1", "Student:S2", "Student:S3"]
    assert one.because == (
        ("Second edition -usedIn-> Course:ProgrammingBasics (you watch it)", "Course:ProgrammingBasics"),
    )
    assert [text for text, _ in two.because] == [
        "Second edition -usedIn-> Data structures (you watch Course)",
        "Second edition -usedIn-> Course:ProgrammingBasics (you watch Course)",
        "Second edition -usedIn-> Course:ProgrammingBasics <-attends- you",
    ]
    assert three.kind == "updated" and three.object == "LearningMaterial:Script2"
    assert three.changed["before"] == {"title": "Script2"} and three.changed["after"] == {
        "title": "Second edition"
    }


def test_ids_are_the_same_again_and_different_for_others() -> None:
    once = [each.id for each in all_of(NEW_TITLE)]
    assert once == [each.id for each in all_of(NEW_TITLE)]
    another = [each.id for each in all_of(replace(NEW_TITLE, id="2"))]
    elsewhere = [each.id for each in build_notices("library", MODEL, NEW_TITLE, LABELS)]
    assert len({*once, *another, *elsewhere}) == 9


def test_who_made_the_change_is_left_out_unless_they_want_it() -> None:
    made = replace(NEW_TITLE, author=S3)
    assert [each.subscriber for each in all_of(made)] == ["Student:S1", "Student:S2"]
    told_all = all_of(made, tell_author=True)
    assert len(told_all) == 3 and told_all[0].changed["author_label"] == "Sam"


def test_what_is_gone_is_called_as_it_was() -> None:
    change = Change(ChangeKind.DELETE, STRUCTURES)
    gone = ObjectChange(
        "3", "", "Course", change, propagate_change(GRAPH, WATCHES, change), {"title": "Trees", "room": "A2"}
    )
    [watching, attending] = build_notices("university", MODEL, gone, {})
    assert watching.because[0][0] == "Trees (you watch Course)"
    assert attending.because[0][0] == "Trees <-attends- you"


def test_a_link_says_with_what() -> None:
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
    said = all_of(linked)[0].changed
    assert (said["association"], said["other"]) == ("usedIn", "LearningMaterial:Script2")
    assert linked.objects() == {STRUCTURES, S2, S3, SCRIPT2}


def test_a_limit_that_was_reached_is_said() -> None:
    short = propagate_change(GRAPH, WATCHES | {Watch(S1, "LearningMaterial")}, TITLE, Limits(steps=0))
    [only] = all_of(replace(NEW_TITLE, propagation=short))
    assert only.subscriber == str(Object("Student", "S1"))
    assert only.changed["limits"] == ["followed for 0 steps only: 2 more lead on"]
    few = propagate_change(GRAPH, WATCHES, TITLE, Limits(subscribers=1))
    assert all_of(replace(NEW_TITLE, propagation=few))[0].changed["limits"] == [
        "only the first 1 of 3 subscribers were notified"
    ]


def test_a_class_that_the_model_has_no_more_is_told_all_the_same() -> None:
    old = [each.because for each in build_notices("university", MODEL, replace(NEW_TITLE, cls="Leaflet"), {})]
    assert old[2] == (
        ("LearningMaterial:Script2 -usedIn-> Course:DataStructures <-attends- you", "Course:DataStructures"),
    )
