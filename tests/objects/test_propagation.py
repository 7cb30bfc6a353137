"""Who is told about a change, by definition: the paper's university, limits, circles, classes above."""

from __future__ import annotations

from tests.support.paths import ROOT
from tidings.cli.objects.model import read_model
from tidings.objects.model.class_model import (
    Association,
    Attribute,
    ChangeKind,
    End,
    ImplicitMark,
    MarkLimits,
    Model,
    ModelClass,
    PropagatesMark,
)
from tidings.objects.propagation import (
    Change,
    Limits,
    Object,
    ObjectGraph,
    ObjectLink,
    Truncation,
    Watch,
    find_changed_end,
    find_reasons,
    propagate_change,
)

MODEL = read_model(f"{ROOT}/examples/university/university.puml").model
BY_NAME = {each.name: each for each in MODEL.associations}


def named(family: str, *keys: str) -> list[Object]:
    return [Object(family, key) for key in keys]


S1, S2, S3 = named("Student", "S1", "S2", "S3")
BASICS, STRUCTURES = named("Course", "ProgrammingBasics", "DataStructures")
SCRIPT1, SCRIPT2 = named("LearningMaterial", "Script1", "Script2")

GRAPH = ObjectGraph(
    MODEL,
    {each: each.family for each in (S1, S2, S3, BASICS, STRUCTURES, SCRIPT1, SCRIPT2)},
    frozenset(
        (
            ObjectLink(BY_NAME["attends"], S2, BASICS),
            ObjectLink(BY_NAME["attends"], S3, STRUCTURES),
            ObjectLink(BY_NAME["usedIn"], SCRIPT1, BASICS),
            ObjectLink(BY_NAME["usedIn"], SCRIPT2, BASICS),
            ObjectLink(BY_NAME["usedIn"], SCRIPT2, STRUCTURES),
        )
    ),
)
"""Figure 2 is a picture; this is what the text of section 3.4 says about it."""
WATCHES = frozenset((Watch(S1, "Course", "ProgrammingBasics"), Watch(S2, "Course")))


def because(
    change: Change, graph: ObjectGraph = GRAPH, watches: frozenset[Watch] = WATCHES
) -> dict[str, list[str]]:
    found = propagate_change(graph, watches, change)
    why = find_reasons(change.object, found.steps, found.hits)
    return {str(who.key): [each.render(lambda one: str(one.key)) for each in all] for who, all in why.items()}


def test_the_script_about_data_structures_changes() -> None:
    """Section 3.4: both courses count as changed, and all three students are told."""
    change = Change(ChangeKind.UPDATE, SCRIPT2, frozenset(("title",)))
    assert propagate_change(GRAPH, WATCHES, change).reached == {SCRIPT2, BASICS, STRUCTURES}
    assert because(change) == {
        "S1": ["Script2 -usedIn-> ProgrammingBasics (S1 watches it)"],
        "S2": [
            "Script2 -usedIn-> DataStructures (S2 watches Course)",
            "Script2 -usedIn-> ProgrammingBasics (S2 watches Course)",
            "Script2 -usedIn-> ProgrammingBasics <-attends- S2",
        ],
        "S3": ["Script2 -usedIn-> DataStructures <-attends- S3"],
    }


def test_what_goes_along_no_propagating_association_stays_where_it_is() -> None:
    assert because(Change(ChangeKind.UPDATE, S3, frozenset(("name",)))) == {}
    assert because(Change(ChangeKind.UPDATE, STRUCTURES, frozenset(("room",)))) == {
        "S2": ["DataStructures (S2 watches Course)"],
        "S3": ["DataStructures <-attends- S3"],
    }


A = ModelClass("A", (Attribute("x"), Attribute("y")), subscriber=True)
MODEL_OF_A = Model({"A": A, "B": ModelClass("B", (), ("A",))})
A1, A2, A3 = named("A", "1", "2", "3")


def chain(limits: MarkLimits, *more: ObjectLink) -> ObjectGraph:
    """1 -> 2 -> 3, along an association of a class to itself."""
    next_one = Association("next", "A", "A", propagates=PropagatesMark(End.TARGET, limits))
    links = frozenset((ObjectLink(next_one, A1, A2), ObjectLink(next_one, A2, A3), *more))
    return ObjectGraph(MODEL_OF_A, {A1: "A", A2: "B", A3: "A"}, links)


def test_limits_to_attributes_count_for_the_object_that_was_updated() -> None:
    """What is changed by reference has no attribute that is another."""
    graph = chain(MarkLimits(attributes=frozenset(("x",))))
    assert propagate_change(graph, frozenset(), Change(ChangeKind.UPDATE, A1, frozenset(("x",)))).reached == {
        A1,
        A2,
        A3,
    }
    assert propagate_change(graph, frozenset(), Change(ChangeKind.UPDATE, A1, frozenset(("y",)))).reached == {
        A1
    }
    assert propagate_change(graph, frozenset(), Change(ChangeKind.DELETE, A1)).reached == {A1, A2, A3}


def test_limits_to_kinds_count_at_each_step() -> None:
    inserts = PropagatesMark(End.TARGET, MarkLimits(kinds=frozenset((ChangeKind.INSERT,))))
    graph = chain(
        MarkLimits(), ObjectLink(Association("late", "A", "A", propagates=inserts), A3, Object("A", "4"))
    )
    assert propagate_change(graph, frozenset(), Change(ChangeKind.UPDATE, A1)).reached == {A1, A2, A3}
    assert propagate_change(graph, frozenset(), Change(ChangeKind.INSERT, A1)).reached == {
        A1,
        A2,
        A3,
        Object("A", "4"),
    }


def test_circles_end_and_do_not_lift_the_limits_of_where_they_began() -> None:
    back = Association("back", "A", "A", propagates=PropagatesMark(End.SOURCE))
    told_x = Association(
        "of", "A", "A", implicit=ImplicitMark(End.SOURCE, MarkLimits(attributes=frozenset(("x",))))
    )
    graph = chain(MarkLimits(), ObjectLink(back, A1, A3), ObjectLink(told_x, A3, A1))
    found = propagate_change(graph, frozenset(), Change(ChangeKind.UPDATE, A1, frozenset(("y",))))
    assert found.reached == {A1, A2, A3} and not found.hits
    assert because(Change(ChangeKind.UPDATE, A2, frozenset(("y",))), graph, frozenset()) == {
        "3": ["2 -next-> 3 <-back- 1 <-of- 3"]
    }


def test_who_watches_a_class_watches_those_below() -> None:
    watches = frozenset((Watch(A1, "A"), Watch(A3, "B"), Watch(A1, "B", "2")))
    change = Change(ChangeKind.UPDATE, A2, frozenset(("x",)))
    found = because(change, ObjectGraph(MODEL_OF_A, {A1: "A", A2: "B", A3: "A"}), watches)
    assert found == {"1": ["2 (1 watches A)", "2 (1 watches it)"], "3": ["2 (3 watches B)"]}
    assert because(Change(ChangeKind.INSERT, A3), chain(MarkLimits()), watches) == {"1": ["3 (1 watches A)"]}


def test_links_are_changes_where_the_marks_admit_them() -> None:
    assert find_changed_end(BY_NAME["usedIn"], ChangeKind.LINK) is End.TARGET
    assert find_changed_end(BY_NAME["attends"], ChangeKind.LINK) is None
    updates = PropagatesMark(End.SOURCE, MarkLimits(kinds=frozenset((ChangeKind.UPDATE,))))
    assert find_changed_end(Association("a", "A", "A", propagates=updates), ChangeKind.UNLINK) is None
    assert because(Change(ChangeKind.LINK, STRUCTURES)) == because(Change(ChangeKind.INSERT, STRUCTURES))


RING = [Object("Node", f"n{number}") for number in range(4)]
NEXT = Association("next", "Node", "Node", propagates=PropagatesMark(End.TARGET))
WATCHERS = [Object("Reader", key) for key in ("10", "9", "a", "B")]
AROUND = ObjectGraph(
    Model({"Node": ModelClass("Node"), "Reader": ModelClass("Reader", subscriber=True)}, (NEXT,)),
    {**dict.fromkeys(RING, "Node"), **dict.fromkeys(WATCHERS, "Reader")},
    frozenset(ObjectLink(NEXT, one, RING[(at + 1) % 4]) for at, one in enumerate(RING)),
)
ALL_WATCH = frozenset(Watch(who, "Node") for who in WATCHERS)
NEWS = Change(ChangeKind.INSERT, RING[0])


def test_a_limit_of_steps_says_how_many_led_on() -> None:
    """A circle has no end of its own, but the limit that is as long as it leaves nothing out."""
    near = propagate_change(AROUND, ALL_WATCH, NEWS, Limits(steps=2))
    assert near.reached == set(RING[:3]) and {step.to for step in near.steps} == set(RING[1:3])
    assert near.truncations == {Truncation("steps", 2, 1)}
    assert propagate_change(AROUND, ALL_WATCH, NEWS, Limits(steps=3)) == propagate_change(
        AROUND, ALL_WATCH, NEWS
    )
    alone = propagate_change(AROUND, ALL_WATCH, NEWS, Limits(steps=0))
    assert alone.reached == {RING[0]} and alone.truncations == {Truncation("steps", 0, 1)}


def test_a_limit_of_those_who_are_told_takes_the_first_by_name() -> None:
    some = propagate_change(AROUND, ALL_WATCH, NEWS, Limits(subscribers=3))
    assert {hit.subscriber.key for hit in some.hits} == {"10", "9", "B"}
    assert some.truncations == {Truncation("told", 3, 4)}
    assert propagate_change(AROUND, ALL_WATCH, NEWS, Limits(subscribers=4)) == propagate_change(
        AROUND, ALL_WATCH, NEWS
    )
