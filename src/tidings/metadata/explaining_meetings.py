"""What two resources that a join rule brings together have to do with each other, in words.

    entered     serverPort 7 < <other.rdf#d>.serverPort
    left        serverInformation.memory 32 is not > serverPort

What is registered stands first. What it meets is called by the way there if that is along a reference, else by its URI.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product

from tidings.languages.rules_shown import show_name
from tidings.languages.rules_tree import Compares
from tidings.metadata.atomic import Meeting, Predicate, Side, is_path
from tidings.metadata.atomic_shown import show_property
from tidings.metadata.definition import holds
from tidings.metadata.resources import SUBJECT, Ref, Resource, Value
from tidings.model import Reason
from tidings.values import Scalar

Find = Callable[[str], Resource | None]
"""Finds a resource by its URI."""

Placed = tuple[Value, str]
"""A value, and the URI of the resource where it stands."""


def sides(meeting: Meeting) -> tuple[Side, Side]:
    """What is registered, and what it meets."""
    return (meeting.left, meeting.right) if meeting.registers_left else (meeting.right, meeting.left)


def is_along(meeting: Meeting) -> bool:
    """Whether what is met is the resource itself, or one that it refers to."""
    own, other = sides(meeting)
    return (
        meeting.compares is Compares.EQUAL and other.property in (None, SUBJECT) and not is_path(own.property)
    )


def way(meeting: Meeting, other: str, path: str) -> str:
    """How the properties of what is met are called."""
    name = sides(meeting)[0].property
    if not is_along(meeting):
        return f"<{other}>."
    return path if name in (None, SUBJECT) else f"{path}{show_name(name)}."


@dataclass(frozen=True, slots=True)
class Pair:
    """What is registered, the URI of what it meets or could meet, and what is there. `path` leads to the first. `find`
    finds what paths lead through.
    """

    meeting: Meeting
    own: Resource
    uri: str
    there: Resource | None
    path: str
    find: Find

    def look(self) -> None:
        """Find all that is compared."""
        for asked in self.meeting.predicates if self.there is not None else ():
            both = asked if self.meeting.registers_left else asked.back()
            self._mine(both)
            self._others(both)

    def held(self) -> list[Reason] | None:
        """What the two have to do with each other; None if something does not hold."""
        found: list[Reason] = []
        for asked in _further(self.meeting):
            pairs = product(self._mine(asked), self._others(asked))
            met = next((own for own, (theirs, _) in pairs if _meet(asked, own[0], theirs)), None)
            if met is None:
                return None
            found.append(_compared(asked, self._theirs(asked), met, self.path))
        return found

    def unheld(self) -> Iterator[Reason]:
        """What does not hold between them. Of a reference that leads nowhere something else is told."""
        for asked in _further(self.meeting) if self.there is not None else ():
            mine, theirs = self._mine(asked), self._theirs(asked)
            if not mine:
                yield Reason(f"{called(asked.left, self.path)} is missing", None, self.own.uri)
            elif not self._others(asked):
                yield Reason(f"{theirs} is missing", None, self.uri)
            elif not any(
                _meet(asked, own, other) for (own, _), (other, _) in product(mine, self._others(asked))
            ):
                yield _compared(asked, theirs, mine[0], self.path, is_so=False)

    def _mine(self, asked: Predicate) -> tuple[Placed, ...]:
        return placed(asked.left, self.own, self.find)

    def _others(self, asked: Predicate) -> tuple[Placed, ...]:
        return placed(asked.right, self.there, self.find) if self.there is not None else ()

    def _theirs(self, asked: Predicate) -> str:
        if is_along(self.meeting):
            return called(asked.right, way(self.meeting, self.uri, self.path))
        right = asked.right
        return f"<{self.uri}>" if right in (None, SUBJECT) else f"<{self.uri}>.{show_property(right)}"


def _predicates(meeting: Meeting) -> tuple[Predicate, ...]:
    """What must hold, seen from what is registered."""
    found = meeting.predicates
    return found if meeting.registers_left else tuple(each.back() for each in found)


def _further(meeting: Meeting) -> tuple[Predicate, ...]:
    """What the path to the other does not tell: of those along a reference, it tells the first."""
    return _predicates(meeting)[int(is_along(meeting)) :]


def alone(meeting: Meeting, resource: Resource, path: str, find: Find) -> Reason:
    """Nothing is met: `serverPort 7 = that of no DataProvider.serverPort with synthValue < its memory`."""
    first, *also = _predicates(meeting)
    own = next(iter(placed(first.left, resource, find)), None)
    if own is None or is_along(meeting):
        return Reason(f"{called(first.left, path)} is missing", None, resource.uri)
    name = "" if first.right in (None, SUBJECT) else f".{show_property(first.right)}"
    told = _compared(first, f"that of no {show_name(sides(meeting)[1].cls)}{name}", own, path)
    with_ = (_compared(each, _its(each.right), own, path).predicate for each in also)
    return replace(told, predicate=" with ".join((told.predicate, *with_)))


def _its(name: str | None) -> str:
    return "itself" if name in (None, SUBJECT) else f"its {show_property(name)}"


def _compared(asked: Predicate, other: str, found: Placed, path: str, is_so: bool = True) -> Reason:
    """A comparison with what is registered on the left; `contains` has no opposite."""
    value, at = found
    own, says = called(asked.left, path), said(asked.compares, is_so)
    if asked.turned:
        return Reason(f"{other} {says} {own}", None, at)
    return Reason(f"{own} {says} {other}", None if asked.left in (None, SUBJECT) else scalar(value), at)


def said(compares: Compares, is_so: bool) -> str:
    if is_so:
        return compares.value
    return "does not contain" if compares is Compares.CONTAINS else f"is not {compares.value}"


def _meet(asked: Predicate, own: Value, other: Value) -> bool:
    left, right = (other, own) if asked.turned else (own, other)
    return holds(left, asked.compares, right)


def values(name: str | None, resource: Resource, find: Find) -> tuple[Value, ...]:
    return tuple(value for value, _ in placed(name, resource, find))


def placed(name: str | None, resource: Resource, find: Find) -> tuple[Placed, ...]:
    """What is compared of a resource, and where it stands. A path leads through whatever there is."""
    if name is None or name == SUBJECT:
        return ((Ref(resource.uri), resource.uri),)
    first, _, further = name.partition(".")
    found = resource.values.get(first, ())
    if not further:
        return tuple((value, resource.uri) for value in found)
    there = [find(value.uri) for value in found if isinstance(value, Ref)]
    return tuple(each for one in there if one is not None for each in placed(further, one, find))


def called(name: str | None, path: str) -> str:
    return (path[:-1] or "it") if name in (None, SUBJECT) else f"{path}{show_property(name)}"


def scalar(value: Value) -> Scalar:
    return value.uri if isinstance(value, Ref) else value
