"""How the variables of a normal rule hang together: each must be reached from the registered one, in one way.

A join rule gives resources of one side and forgets those of the other. So a variable is asked once, with all that hangs
on it, and then it is gone. All that compares it with the one that it is reached from is asked in one join:

    search A a, B b register a where a.x = b and a.y = b

Two joins would be true of a resource whose x and y are two different Bs. In a circle of three or more, what closes it
would be asked of another resource in the same way, and no join has more than two. So circles are opened before, along
references (`folding`); one that cannot be opened is refused.

    search A a, B b, C c register a where a.x = b.x and b.y = c.y and c.z = a.z
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product

from tidings.core.source_text import Span
from tidings.errors import Place
from tidings.metadata.rules import semantic_errors as problems
from tidings.metadata.rules.atomic import JoinPredicate
from tidings.metadata.rules.tree import And, Comparison, Operator, Path, Rule, Step
from tidings.metadata.schema.model import Schema


def list_predicates(normal: Rule) -> tuple[Comparison, ...]:
    """The predicates of a normal rule, which are joined by `and` only."""
    if normal.where is None:
        return ()
    parts = normal.where.parts if isinstance(normal.where, And) else (normal.where,)
    return tuple(part for part in parts if isinstance(part, Comparison))


def list_joins(normal: Rule) -> Iterator[tuple[str, JoinPredicate, str, Comparison]]:
    """Those that compare two variables, or one with itself."""
    for each in list_predicates(normal):
        if isinstance(each.left, Path) and isinstance(each.right, Path):
            asked = JoinPredicate(_property(each.left), each.compares, _property(each.right))
            yield each.left.variable, asked, each.right.variable, each


def _property(path: Path) -> str | None:
    """A property; a path, where a circle was opened; or None, for the resource itself."""
    return ".".join(step.property for step in path.steps) if path.steps else None


def build_adjacency(normal: Rule) -> dict[str, dict[str, list[JoinPredicate]]]:
    """The variables that each one is compared with, and how, seen from it; itself may be among them."""
    found: dict[str, dict[str, list[JoinPredicate]]] = {each.variable: {} for each in normal.searched}
    for left, asked, right, _ in list_joins(normal):
        found[left].setdefault(right, []).append(asked)
        if left != right:
            found[right].setdefault(left, []).append(asked.back())
    return found


def find_cycle_closing(normal: Rule) -> Comparison | None:
    """The comparison that closes a circle of three variables or more, if there is one."""
    return _grown(normal)[1]


def _grown(normal: Rule) -> tuple[dict[str, set[str]], Comparison | None]:
    """The variables that each one is connected with, up to the first comparison that closes a circle."""
    part = {each.variable: {each.variable} for each in normal.searched}
    linked: set[frozenset[str]] = set()
    for left, _, right, comparison in list_joins(normal):
        pair = frozenset((left, right))
        if left == right or pair in linked:
            continue
        if right in part[left]:
            return part, comparison
        linked.add(pair)
        together = part[left] | part[right]
        part |= dict.fromkeys(together, together)
    return part, None


def check_connected(normal: Rule, rule: Rule, several: bool, place: Callable[[Span], Place]) -> None:
    """Refuse what a normal rule cannot be taken apart for. `several` says that it is one of several alternatives."""
    part, circle = _grown(normal)
    if circle is not None:
        raise problems.cyclic_variables(place(circle.span))
    for each in rule.searched:
        if each.variable not in part[rule.register]:
            raise problems.disconnected_variable(each.variable, rule.register, several, place(each.span))


# Circles of variables are opened along references that have one value.
#
#     search CycleProvider c, DataProvider d register c
#     where c.serverInformation = s and s.memory > d.synthValue and c.serverPort = d.serverPort
#
# A join rule gives resources of one side and forgets the other, so nothing can be compared around a circle: here c, s
# and d. But where c is known, so is s. What is asked of s and d can be asked of c and d, and all of that is one join:
#
#     where c.serverInformation = s and c.serverInformation.memory > d.synthValue and c.serverPort = d.serverPort
#
# The reference itself stays, with whatever else is asked of s. So a path in such a comparison may lead through
# anything: that it leads to a resource of the right class is asked beside it. A circle in which no reference leads on
# from one variable to the next stays as it is, and is refused.


MAX_ATTEMPTS = 64
"""So many ways are tried to choose by which of several references a variable is known."""

ReferenceComparisons = Mapping[str, Comparison]
"""For variables that another one leads to: the comparison that says so, as `c.serverInformation = s`."""


def break_cycles(normal: Rule, schema: Schema, classes: Mapping[str, str]) -> Rule:
    """The same rule without circles, if there is a way; else the rule. Most have none, and are left alone."""
    if find_cycle_closing(normal) is None:
        return normal
    for known in islice(_choices(list_predicates(normal), schema, classes), MAX_ATTEMPTS):
        lifted = [_lifted(each, known) for each in list_predicates(normal)]
        if find_cycle_closing(_with(normal, lifted)) is None:
            return _with(normal, _few(normal, lifted))
    return normal


def _few(normal: Rule, lifted: list[Comparison]) -> list[Comparison]:
    """As many comparisons as they were written as can be: paths are followed for each pair, properties are indexed."""
    found = lifted
    for at, each in enumerate(list_predicates(normal)):
        tried = [*found[:at], each, *found[at + 1 :]]
        if find_cycle_closing(_with(normal, tried)) is None:
            found = tried
    return found


def _with(normal: Rule, comparisons: Sequence[Comparison]) -> Rule:
    return replace(normal, where=And(tuple(dict.fromkeys(comparisons))))


def _choices(
    asked: Sequence[Comparison], schema: Schema, classes: Mapping[str, str]
) -> Iterator[ReferenceComparisons]:
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
    if asked.compares is not Operator.EQUAL or not isinstance(left, Path) or not isinstance(right, Path):
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


def _ends(variable: str, known: ReferenceComparisons) -> bool:
    """Whether the way up from a variable ends."""
    at = variable
    for _ in known:
        if at not in known:
            return True
        at = _reference(known[at])[0]
    return at not in known


def _lifted(asked: Comparison, known: ReferenceComparisons) -> Comparison:
    """A comparison seen from where its variables are known from. What makes them known stays."""
    if not isinstance(asked.left, Path) or not isinstance(asked.right, Path) or asked in known.values():
        return asked
    return replace(asked, left=_up(asked.left, known), right=_up(asked.right, known))


def _up(path: Path, known: ReferenceComparisons) -> Path:
    while path.variable in known:
        variable, step = _reference(known[path.variable])
        path = Path(variable, (step, *path.steps), path.span)
    return path
