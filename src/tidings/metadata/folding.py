"""Circles of variables are opened along references that have one value.

    search CycleProvider c, DataProvider d register c
    where c.serverInformation = s and s.memory > d.synthValue and c.serverPort = d.serverPort

A join rule gives resources of one side and forgets the other, so nothing can be compared around a circle: here c, s and
d. But where c is known, so is s. What is asked of s and d can be asked of c and d, and all of that is one join:

    where c.serverInformation = s and c.serverInformation.memory > d.synthValue and c.serverPort = d.serverPort

The reference itself stays, with whatever else is asked of s. So a path in such a comparison may lead through anything:
that it leads to a resource of the right class is asked beside it. A circle in which no reference leads on from one
variable to the next stays as it is, and is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product

from tidings.languages.rules_tree import Both, Compares, Comparison, Path, Rule, Step
from tidings.metadata.connecting import closing, predicates
from tidings.metadata.schema import Schema

TRIED = 64
"""So many ways are tried to choose by which of several references a variable is known."""

Known = Mapping[str, Comparison]
"""For variables that another one leads to: the comparison that says so, as `c.serverInformation = s`."""


def folded(normal: Rule, schema: Schema, classes: Mapping[str, str]) -> Rule:
    """The same rule without circles, if there is a way; else the rule. Most have none, and are left alone."""
    if closing(normal) is None:
        return normal
    for known in islice(_choices(predicates(normal), schema, classes), TRIED):
        lifted = [_lifted(each, known) for each in predicates(normal)]
        if closing(_with(normal, lifted)) is None:
            return _with(normal, _few(normal, lifted))
    return normal


def _few(normal: Rule, lifted: list[Comparison]) -> list[Comparison]:
    """As many comparisons as they were written as can be: paths are followed for each pair, properties are indexed."""
    found = lifted
    for at, each in enumerate(predicates(normal)):
        tried = [*found[:at], each, *found[at + 1 :]]
        if closing(_with(normal, tried)) is None:
            found = tried
    return found


def _with(normal: Rule, comparisons: Sequence[Comparison]) -> Rule:
    return replace(normal, where=Both(tuple(dict.fromkeys(comparisons))))


def _choices(asked: Sequence[Comparison], schema: Schema, classes: Mapping[str, str]) -> Iterator[Known]:
    """By which reference each variable may be known, without running in a circle."""
    leading: dict[str, list[Comparison | None]] = {}
    for each in asked:
        variable = _led_to(each, schema, classes)
        if variable is not None:
            leading.setdefault(variable, []).append(each)
    for chosen in product(*([*found, None] for found in leading.values())):
        known = {variable: each for variable, each in zip(leading, chosen, strict=True) if each is not None}
        if all(_ends(variable, known) for variable in known):
            yield known


def _led_to(asked: Comparison, schema: Schema, classes: Mapping[str, str]) -> str | None:
    """The variable that a comparison says to be what a reference with one value leads to."""
    left, right = asked.left, asked.right
    if asked.compares is not Compares.EQUAL or not isinstance(left, Path) or not isinstance(right, Path):
        return None
    one, other = (left, right) if left.steps else (right, left)
    if other.steps or len(one.steps) != 1 or one.variable == other.variable:
        return None
    found = schema.property_of(classes[one.variable], one.steps[0].property)
    return None if found is None or found.several else other.variable


def _reference(asked: Comparison) -> tuple[str, Step]:
    path = asked.left if isinstance(asked.left, Path) and asked.left.steps else asked.right
    assert isinstance(path, Path)
    return path.variable, path.steps[0]


def _ends(variable: str, known: Known) -> bool:
    """Whether the way up from a variable ends."""
    at = variable
    for _ in known:
        if at not in known:
            return True
        at = _reference(known[at])[0]
    return at not in known


def _lifted(asked: Comparison, known: Known) -> Comparison:
    """A comparison seen from where its variables are known from. What makes them known stays."""
    if not isinstance(asked.left, Path) or not isinstance(asked.right, Path) or asked in known.values():
        return asked
    return replace(asked, left=_up(asked.left, known), right=_up(asked.right, known))


def _up(path: Path, known: Known) -> Path:
    while path.variable in known:
        variable, step = _reference(known[path.variable])
        path = Path(variable, (step, *path.steps), path.span)
    return path
