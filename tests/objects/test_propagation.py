"""Propagation by definition: the university of the paper, limits, cycles and superclasses."""

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


def create_objects(family: str, *keys: str) -> list[Object]:
    return [Object(family, key) for key in keys]


S1, S2, S3 = create_objects("Student", "S1", "S2", "S3")
BASICS, STRUCTURES = create_objects("Course", "ProgrammingBasics", "DataStructures")
SCRIPT1, SCRIPT2 = create_objects("LearningMaterial", "Script1", "Script2")

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
"""Figure 2, as the text of section 3.4 describes it."""
WATCHES = frozenset((Watch(S1, "Course", "ProgrammingBasics"), Watch(S2, "Course")))


def reasons_by_subscriber(
    change: Change, graph: ObjectGraph = GRAPH, watches: frozenset[Watch] = WATCHES
) -> dict[str, list[str]]:
    result = propagate_change(graph, watches, change)
    reasons = find_reasons(change.object, result.steps, result.hits)
    return {
        str(subscriber.key): [each.render(lambda one: str(one.key)) for each in each_reason]
        for subscriber, each_reason in reasons.items()
    }


def test_propagate_change_example_of_section_3_4() -> None:
    """Both courses count as changed, and all three students are notified."""
    change = Change(ChangeKind.UPDATE, SCRIPT2, frozenset(("title",)))
    assert propagate_change(GRAPH, WATCHES, change).reached == {SCRIPT2, BASICS, STRUCTURES}
    assert reasons_by_subscriber(change) == {
        "S1": ["Script2 -usedIn-> ProgrammingBasics (S1 watches it)"],
        "S2": [
            "Script2 -usedIn-> DataStructures (S2 watches Course)",
            "Script2 -usedIn-> ProgrammingBasics (S2 watches Course)",
            "Script2 -usedIn-> ProgrammingBasics <-attends- S2",
        ],
        "S3": ["Script2 -usedIn-> DataStructures <-attends- S3"],
    }


def test_propagate_change_without_propagating_association_reaches_only_object() -> None:
    assert reasons_by_subscriber(Change(ChangeKind.UPDATE, S3, frozenset(("name",)))) == {}
    assert reasons_by_subscriber(Change(ChangeKind.UPDATE, STRUCTURES, frozenset(("room",)))) == {
        "S2": ["DataStructures (S2 watches Course)"],
        "S3": ["DataStructures <-attends- S3"],
    }


A = ModelClass("A", (Attribute("x"), Attribute("y")), subscriber=True)
MODEL_OF_A = Model({"A": A, "B": ModelClass("B", (), ("A",))})
A1, A2, A3 = create_objects("A", "1", "2", "3")


def chain(limits: MarkLimits, *more: ObjectLink) -> ObjectGraph:
    """Build 1 -> 2 -> 3, along an association of a class to itself."""
    next_one = Association("next", "A", "A", propagates=PropagatesMark(End.TARGET, limits))
    links = frozenset((ObjectLink(next_one, A1, A2), ObjectLink(next_one, A2, A3), *more))
    return ObjectGraph(MODEL_OF_A, {A1: "A", A2: "B", A3: "A"}, links)


def test_propagate_change_attribute_limit_applies_to_updated_object() -> None:
    """Objects reached by reference have no changed attributes."""
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


def test_propagate_change_kind_limit_applies_to_each_step() -> None:
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


def test_propagate_change_cycle_terminates_and_keeps_limits() -> None:
    back = Association("back", "A", "A", propagates=PropagatesMark(End.SOURCE))
    notified_of_x = Association(
        "of", "A", "A", implicit=ImplicitMark(End.SOURCE, MarkLimits(attributes=frozenset(("x",))))
    )
    graph = chain(MarkLimits(), ObjectLink(back, A1, A3), ObjectLink(notified_of_x, A3, A1))
    result = propagate_change(graph, frozenset(), Change(ChangeKind.UPDATE, A1, frozenset(("y",))))
    assert result.reached == {A1, A2, A3} and not result.hits
    assert reasons_by_subscriber(Change(ChangeKind.UPDATE, A2, frozenset(("y",))), graph, frozenset()) == {
        "3": ["2 -next-> 3 <-back- 1 <-of- 3"]
    }


def test_watch_class_includes_subclasses() -> None:
    watches = frozenset((Watch(A1, "A"), Watch(A3, "B"), Watch(A1, "B", "2")))
    change = Change(ChangeKind.UPDATE, A2, frozenset(("x",)))
    reasons = reasons_by_subscriber(change, ObjectGraph(MODEL_OF_A, {A1: "A", A2: "B", A3: "A"}), watches)
    assert reasons == {"1": ["2 (1 watches A)", "2 (1 watches it)"], "3": ["2 (3 watches B)"]}
    assert reasons_by_subscriber(Change(ChangeKind.INSERT, A3), chain(MarkLimits()), watches) == {
        "1": ["3 (1 watches A)"]
    }


def test_find_changed_end_follows_marks() -> None:
    assert find_changed_end(BY_NAME["usedIn"], ChangeKind.LINK) is End.TARGET
    assert find_changed_end(BY_NAME["attends"], ChangeKind.LINK) is None
    updates = PropagatesMark(End.SOURCE, MarkLimits(kinds=frozenset((ChangeKind.UPDATE,))))
    assert find_changed_end(Association("a", "A", "A", propagates=updates), ChangeKind.UNLINK) is None
    assert reasons_by_subscriber(Change(ChangeKind.LINK, STRUCTURES)) == reasons_by_subscriber(
        Change(ChangeKind.INSERT, STRUCTURES)
    )


RING = [Object("Node", f"n{number}") for number in range(4)]
NEXT = Association("next", "Node", "Node", propagates=PropagatesMark(End.TARGET))
WATCHERS = [Object("Reader", key) for key in ("10", "9", "a", "B")]
RING_GRAPH = ObjectGraph(
    Model({"Node": ModelClass("Node"), "Reader": ModelClass("Reader", subscriber=True)}, (NEXT,)),
    {**dict.fromkeys(RING, "Node"), **dict.fromkeys(WATCHERS, "Reader")},
    frozenset(ObjectLink(NEXT, one, RING[(at + 1) % 4]) for at, one in enumerate(RING)),
)
ALL_WATCH = frozenset(Watch(watcher, "Node") for watcher in WATCHERS)
INSERTION = Change(ChangeKind.INSERT, RING[0])


def test_propagate_change_step_limit_counts_remaining_steps() -> None:
    """A limit as long as the cycle omits nothing."""
    near = propagate_change(RING_GRAPH, ALL_WATCH, INSERTION, Limits(steps=2))
    assert near.reached == set(RING[:3]) and {step.to for step in near.steps} == set(RING[1:3])
    assert near.truncations == {Truncation("steps", 2, 1)}
    assert propagate_change(RING_GRAPH, ALL_WATCH, INSERTION, Limits(steps=3)) == propagate_change(
        RING_GRAPH, ALL_WATCH, INSERTION
    )
    alone = propagate_change(RING_GRAPH, ALL_WATCH, INSERTION, Limits(steps=0))
    assert alone.reached == {RING[0]} and alone.truncations == {Truncation("steps", 0, 1)}


def test_propagate_change_subscriber_limit_keeps_first_by_key() -> None:
    some = propagate_change(RING_GRAPH, ALL_WATCH, INSERTION, Limits(subscribers=3))
    assert {hit.subscriber.key for hit in some.hits} == {"10", "9", "B"}
    assert some.truncations == {Truncation("told", 3, 4)}
    assert propagate_change(RING_GRAPH, ALL_WATCH, INSERTION, Limits(subscribers=4)) == propagate_change(
        RING_GRAPH, ALL_WATCH, INSERTION
    )
