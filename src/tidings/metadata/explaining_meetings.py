"""What two resources that a join rule brings together have to do with each other, in words.

    entered     serverPort 7 < <other.rdf#d>.serverPort
    left        serverInformation.memory 32 is not > serverPort

What is registered stands first. What it meets is called by the way there if that is along a reference, else by its URI.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from tidings.languages.rules_shown import show_name
from tidings.languages.rules_tree import Compares
from tidings.metadata.atomic import Meeting, Predicate, Side
from tidings.metadata.definition import holds
from tidings.metadata.resources import SUBJECT, Ref, Resource, Value
from tidings.model import Reason
from tidings.values import Scalar


def sides(meeting: Meeting) -> tuple[Side, Side]:
    """What is registered, and what it meets."""
    return (meeting.left, meeting.right) if meeting.registers_left else (meeting.right, meeting.left)


def is_along(meeting: Meeting) -> bool:
    """Whether what is met is the resource itself, or one that it refers to."""
    return meeting.compares is Compares.EQUAL and sides(meeting)[1].property in (None, SUBJECT)


def way(meeting: Meeting, other: str, path: str) -> str:
    """How the properties of what is met are called."""
    name = sides(meeting)[0].property
    if not is_along(meeting):
        return f"<{other}>."
    return path if name in (None, SUBJECT) else f"{path}{show_name(name)}."


@dataclass(frozen=True, slots=True)
class Pair:
    """What is registered, the URI of what it meets or could meet, and what is there. `path` leads to the first."""

    meeting: Meeting
    own: Resource
    uri: str
    there: Resource | None
    path: str

    def held(self) -> list[Reason] | None:
        """What the two have to do with each other; None if something does not hold."""
        found: list[Reason] = []
        for asked in _further(self.meeting):
            value = next((own for own, theirs in self._values(asked) if _meet(asked, own, theirs)), None)
            if value is None:
                return None
            found.append(_compared(asked, self._theirs(asked), value, self.path, self.own.uri))
        return found

    def unheld(self) -> Iterator[Reason]:
        """What does not hold between them. Of a reference that leads nowhere something else is told."""
        for asked in _further(self.meeting) if self.there is not None else ():
            mine, theirs = values(asked.left, self.own), self._theirs(asked)
            if not mine:
                yield Reason(f"{called(asked.left, self.path)} is missing", None, self.own.uri)
            elif self.there is not None and not values(asked.right, self.there):
                yield Reason(f"{theirs} is missing", None, self.uri)
            elif not any(_meet(asked, *pair) for pair in self._values(asked)):
                yield _compared(asked, theirs, mine[0], self.path, self.own.uri, is_so=False)

    def _values(self, asked: Predicate) -> Iterator[tuple[Value, Value]]:
        theirs = values(asked.right, self.there) if self.there is not None else ()
        return product(values(asked.left, self.own), theirs)

    def _theirs(self, asked: Predicate) -> str:
        if is_along(self.meeting):
            return called(asked.right, way(self.meeting, self.uri, self.path))
        return f"<{self.uri}>" if asked.right in (None, SUBJECT) else f"<{self.uri}>.{show_name(asked.right)}"


def _predicates(meeting: Meeting) -> tuple[Predicate, ...]:
    """What must hold, seen from what is registered."""
    found = meeting.predicates
    return found if meeting.registers_left else tuple(each.back() for each in found)


def _further(meeting: Meeting) -> tuple[Predicate, ...]:
    """What the path to the other does not tell: of those along a reference, it tells the first."""
    return _predicates(meeting)[int(is_along(meeting)) :]


def alone(meeting: Meeting, resource: Resource, path: str) -> Reason:
    """Nothing is met: `serverPort 7 = that of no DataProvider.serverPort with synthValue < its memory`."""
    first, *also = _predicates(meeting)
    own = next(iter(values(first.left, resource)), None)
    if own is None or is_along(meeting):
        return Reason(f"{called(first.left, path)} is missing", None, resource.uri)
    name = "" if first.right in (None, SUBJECT) else f".{show_name(first.right)}"
    told = _compared(first, f"that of no {show_name(sides(meeting)[1].cls)}{name}", own, path, resource.uri)
    with_ = (_compared(each, _its(each.right), own, path, resource.uri).predicate for each in also)
    return replace(told, predicate=" with ".join((told.predicate, *with_)))


def _its(name: str | None) -> str:
    return "itself" if name in (None, SUBJECT) else f"its {show_name(name)}"


def _compared(asked: Predicate, other: str, value: Value, path: str, at: str, is_so: bool = True) -> Reason:
    """A comparison with what is registered on the left; `contains` has no opposite."""
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


def values(name: str | None, resource: Resource) -> tuple[Value, ...]:
    return (Ref(resource.uri),) if name in (None, SUBJECT) else resource.values.get(name, ())


def called(name: str | None, path: str) -> str:
    return (path[:-1] or "it") if name in (None, SUBJECT) else f"{path}{show_name(name)}"


def scalar(value: Value) -> Scalar:
    return value.uri if isinstance(value, Ref) else value
