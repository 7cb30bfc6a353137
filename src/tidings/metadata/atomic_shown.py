"""Atomic rules and rule groups as text, in the words of figure 7 of paper 001.

    search view(4, ServerInformation) a, view(3, CycleProvider) c register c where c.serverInformation = a
    search group(ServerInformation) a, group(CycleProvider) c register c where c.serverInformation = a

Atomic rules do not keep the names of variables, since equal ones are one whatever variables were called. So names are
made from classes.
"""

from __future__ import annotations

from tidings.languages.rules_shown import show_comparison, show_name
from tidings.languages.rules_tree import Comparison, Constant, Path, Step
from tidings.metadata.atomic import Meeting, Predicate, Side, Triggering
from tidings.metadata.normal import initial
from tidings.metadata.resources import SUBJECT


def show_triggering(rule: Triggering) -> str:
    name = initial(rule.cls)
    head = f"search {show_name(rule.cls)} {name} register {name}"
    if rule.property is None or rule.compares is None or rule.constant is None:
        return head
    left = _path(name, None if rule.property == SUBJECT else rule.property)
    right = Constant(rule.constant, rule.is_resource)
    return f"{head} where {show_comparison(Comparison(left, rule.compares, right))}"


def show_join(meeting: Meeting, left: int, right: int) -> str:
    """A join rule. Its inputs are called by their numbers."""
    views = (f"view({left}, {show_name(meeting.left.cls)})", f"view({right}, {show_name(meeting.right.cls)})")
    return _show_meeting(meeting, *views)


def show_group(meeting: Meeting) -> str:
    left, right = show_name(meeting.left.cls), show_name(meeting.right.cls)
    return _show_meeting(meeting, f"group({left})", f"group({right})")


def _show_meeting(meeting: Meeting, left_input: str, right_input: str) -> str:
    left, right = "a", _right_name(meeting.left, meeting.right)
    kept, other = (left, right) if meeting.registers_left else (right, left)
    asked = (each if meeting.registers_left else each.back() for each in meeting.predicates)
    head = f"search {left_input} {left}, {right_input} {right} register {kept}"
    return f"{head} where {' and '.join(_shown(kept, each, other) for each in asked)}"


def _shown(kept: str, asked: Predicate, other: str) -> str:
    """What is registered stands first, unless the other one contains it."""
    one, two = _path(kept, asked.left), _path(other, asked.right)
    return show_comparison(
        Comparison(*((two, asked.compares, one) if asked.turned else (one, asked.compares, two)))
    )


def _right_name(left: Side, right: Side) -> str:
    name = initial(right.cls)
    return "b" if name == "a" or left.cls == right.cls else name


def show_property(property: str) -> str:
    """What is compared of a resource, as rules write it; a path has several steps."""
    return ".".join(map(show_name, property.split(".")))


def _path(variable: str, property: str | None) -> Path:
    return Path(variable, () if property is None else tuple(map(Step, property.split("."))))
