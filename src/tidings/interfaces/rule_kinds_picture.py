"""A large rule base as a picture: rules of one kind are one box, with counts of rules and of results."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidings.counts import plural
from tidings.interfaces.drawing.picture import Box, Edge, Picture
from tidings.languages.rules_shown import show_name
from tidings.metadata.atomic import Meeting, Predicate
from tidings.metadata.atomic_shown import show_property
from tidings.store.rule_graph import Counted, Kind, Kinds

TITLE = "Rules and the atomic rules they share"
NAMED = -1
"""The level of the kinds of rules with names."""


def rules_by_kind(kinds: Kinds, most: int) -> Picture:
    """A box for all rules of a kind. If even those are too many, kinds are taken together."""
    together = next(
        (each for each in _COARSER if len({each(kind) for kind in kinds.counts}) <= most), _COARSER[-1]
    )
    counts: dict[Kind, Counted] = {}
    for kind, counted in kinds.counts.items():
        before = counts.get(together(kind), Counted(0, 0))
        counts[together(kind)] = Counted(before.rules + counted.rules, before.results + counted.results)
    inputs: dict[tuple[Kind, Kind], int] = {}
    for (source, target), number in kinds.inputs.items():
        pair = together(source), together(target)
        inputs[pair] = inputs.get(pair, 0) + number
    return _picture(counts, inputs, kinds.groups)


def _without_owners(kind: Kind) -> Kind:
    return kind._replace(owner=None)


def _by_class(kind: Kind) -> Kind:
    return kind._replace(owner=None, property=None, compares=None)


def _by_level(kind: Kind) -> Kind:
    return Kind(kind.level)


_COARSER: tuple[Callable[[Kind], Kind], ...] = (lambda kind: kind, _without_owners, _by_class, _by_level)
"""From what is told apart most to what is least."""


def _picture(
    counts: Mapping[Kind, Counted], inputs: Mapping[tuple[Kind, Kind], int], groups: Mapping[int, Meeting]
) -> Picture:
    top = 1 + max(kind.level for kind in counts)
    rules = sum(counted.rules for kind, counted in counts.items() if kind.level == NAMED)
    atomic = sum(counted.rules for kind, counted in counts.items() if kind.level != NAMED)
    notes = (
        f"{plural(rules, 'rule')}, {plural(atomic, 'atomic rule')}: too many to draw each. A box is all of one kind.",
        "Numbers at lines are how often one is an input. For a few rules alone: tidings rules graph --rule NAME",
    )
    ordered = sorted(counts, key=lambda kind: tuple(str(part) for part in kind))
    boxes = tuple(_box(kind, counts[kind], top, groups) for kind in ordered)
    edges = tuple(
        Edge(_key(source), _key(target), f"{number:,}")
        for (source, target), number in sorted(inputs.items(), key=lambda each: tuple(map(_key, each[0])))
    )
    said = (f"{box.title}, {box.text}: {box.count}." for box in reversed(boxes))
    return Picture(TITLE, " ".join((*notes, *said)), layers(top), boxes, edges, notes)


def _key(kind: Kind) -> str:
    return " ".join("-" if part is None else str(part) for part in kind)


def _box(kind: Kind, counted: Counted, top: int, groups: Mapping[int, Meeting]) -> Box:
    count = plural(counted.results, "result")
    if kind.level == NAMED:
        text = "of all owners" if kind.owner is None else f"of {kind.owner}"
        return Box(_key(kind), top, "named", plural(counted.rules, "rule"), text, count)
    if kind.level == 0:
        return Box(_key(kind), 0, "triggering", plural(counted.rules, "triggering rule"), _asks(kind), count)
    group = None if kind.group is None else f"group {kind.group}"
    text = "of all groups" if kind.group is None else _asks_of(groups[kind.group])
    return Box(_key(kind), kind.level, "join", plural(counted.rules, "join rule"), text, count, group)


def _asks(kind: Kind) -> str:
    if kind.cls is None:
        return "of all classes"
    if kind.compares is None:
        return f"all of {show_name(kind.cls)}"
    path = show_name(kind.cls) + ("" if kind.property is None else f".{show_name(kind.property)}")
    return f"{path} {kind.compares} …"


def _asks_of(meeting: Meeting) -> str:
    return meets(meeting, show_name(meeting.left.cls), show_name(meeting.right.cls))


def meets(meeting: Meeting, left: str, right: str) -> str:
    """What is registered stands first, where the operator can be turned round."""
    if meeting.registers_left:
        return " and ".join(_stands(left, each, right) for each in meeting.predicates)
    return " and ".join(_stands(right, each.back(), left) for each in meeting.predicates)


def _stands(kept: str, asked: Predicate, other: str) -> str:
    one, two = _side(kept, asked.left), _side(other, asked.right)
    return f"{two} {asked.compares.value} {one}" if asked.turned else f"{one} {asked.compares.value} {two}"


def _side(name: str, property: str | None) -> str:
    return name if property is None else f"{name}.{show_property(property)}"


def layers(top: int) -> tuple[str, ...]:
    """The names of layers, from the lowest up."""
    joins = ("join rules",) if top == 2 else tuple(f"join rules,\nlevel {level}" for level in range(1, top))
    return ("triggering\nrules", *joins, "rules")
