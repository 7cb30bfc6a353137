"""Rewrites that bring a tree into clauses: an `or` of `and`s of predicates and negated predicates.

Each is a pure function that keeps the meaning. They compare predicates for equality only, never by
implication. So their effect on a shape without literals is that on every text of that shape whose literals
differ.

Predicates that can never match are refused: `a = 1 and not a = 1`, `a = 1 and not exists a`, and, for
attributes with one value, `price > 10 and price < 5`. A subscription is refused only if none of its clauses
can hold. Distributing a sensible text also makes clauses that cannot, as in `(price < 5 or price > 10) and
(price < 3 or price > 20)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

from tidings.core.source_text import Span
from tidings.core.suggest import EVENT_TYPE
from tidings.errors import TooLarge
from tidings.events.check import bounds
from tidings.events.operators import BETWEEN, EQ, EXISTS, GE, GT, IN, LE, LT
from tidings.events.predicate_tree import (
    And,
    Comparison,
    Not,
    Or,
    Slots,
    Tree,
    both,
    either,
    show_path,
    show_test,
    show_tree,
)
from tidings.events.schema.domains import LISTED, Domain, DomainKind
from tidings.events.schema.event_schema import EventSchema
from tidings.matching.compiler.language import Context
from tidings.values import Instant, Literal, Scalar, show_instant

Clauses = tuple[tuple[Tree, ...], ...]
"""A tree in clauses: the parts of each alternative."""


def clauses_of(tree: Tree) -> Clauses:
    """Split a tree that is already in clauses."""
    alternatives = tree.parts if isinstance(tree, Or) else (tree,)
    return tuple(part.parts if isinstance(part, And) else (part,) for part in alternatives)


def comparison_of(part: Tree) -> Comparison:
    """Return the predicate of a part of a clause, negated or not."""
    comparison = part.part if isinstance(part, Not) else part
    assert isinstance(comparison, Comparison), "a tree in clauses has predicates at its leaves"
    return comparison


def _tree_of(clauses: Clauses) -> Tree:
    return either(tuple(both(clause) for clause in clauses))


def push_not_down(tree: Tree, _: Context) -> Tree:
    """Move `not` to the predicates.

    A negated predicate stays negated: events without `a`, or with several values, satisfy `not a < 5` and `a
    >= 5` differently.
    """
    return _push(tree, negated=False)


def _push(tree: Tree, negated: bool) -> Tree:
    if isinstance(tree, Not):
        return _push(tree.part, not negated)
    if isinstance(tree, Comparison):
        return Not(tree) if negated else tree
    join = both if isinstance(tree, And) != negated else either
    return join(tuple(_push(part, negated) for part in tree.parts))


def distribute(tree: Tree, context: Context) -> Tree:
    """Distribute `and` over `or`; a tree with more clauses than the limit is refused before it is expanded."""
    size = count_clauses(tree)
    if size > context.limit:
        shown = f"{size:,}" if size < 10**12 else "more than 10^12"
        raise TooLarge(
            f"the subscription needs {shown} clauses",
            accepted=f"at most {context.limit:,}",
            hint="each combination of alternatives is a clause: split it into several subscriptions",
        )
    return _tree_of(_expand(tree))


def count_clauses(tree: Tree) -> int:
    """Return how many clauses `distribute` would make."""
    if isinstance(tree, Or):
        return sum(count_clauses(part) for part in tree.parts)
    return prod(count_clauses(part) for part in tree.parts) if isinstance(tree, And) else 1


def _expand(tree: Tree) -> Clauses:
    if isinstance(tree, Or):
        return tuple(clause for part in tree.parts for clause in _expand(part))
    if not isinstance(tree, And):
        return ((tree,),)
    combinations = product(*(_expand(part) for part in tree.parts))
    return tuple(tuple(test for part in chosen for test in part) for chosen in combinations)


def drop_repeated(tree: Tree, _: Context) -> Tree:
    """Drop repeated predicates within a clause."""
    return _tree_of(tuple(tuple(dict.fromkeys(clause)) for clause in clauses_of(tree)))


def drop_subsumed(tree: Tree, _: Context) -> Tree:
    """Drop clauses that contain all predicates of another one: `a or (a and b)` is `a`."""
    minimal: dict[frozenset[Tree], tuple[Tree, ...]] = {}
    for clause in sorted(clauses_of(tree), key=len):
        tests = frozenset(clause)
        if not any(smaller <= tests for smaller in minimal):
            minimal[tests] = clause
    return _tree_of(tuple(minimal.values()))


def drop_contradictions(tree: Tree, context: Context) -> Tree:
    """Drop clauses with a predicate and its negation, or with one on an absent attribute; refuse if none is left."""
    clauses = clauses_of(tree)
    possible = [clause for clause in clauses if _find_contradiction(clause) is None]
    if not possible:
        contradiction = _find_contradiction(clauses[0])
        assert contradiction is not None
        predicate, other = contradiction
        span = predicate.spans.whole
        is_open = isinstance(predicate.operand, Slots)  # the shape of many texts has no literals to show
        shown = context.text[span.start : span.end] if is_open else show_tree(predicate)
        raise context.problem(f"can never match: {shown} and {other}", span)
    return either(tuple(both(clause) for clause in possible))


def _find_contradiction(clause: Sequence[Tree]) -> tuple[Comparison, str] | None:
    """Return a predicate of a clause that another one contradicts, and a phrase for the other one."""
    denied = {part.part for part in clause if isinstance(part, Not)}
    absent = {part.path for part in denied if isinstance(part, Comparison) and part.operator is EXISTS}
    for part in clause:
        if isinstance(part, Comparison) and part in denied:
            return part, "its negation"
        if isinstance(part, Comparison) and part.path in absent:
            return part, f"not exists {show_path(part.path)}"
    return None


def refuse_impossible(tree: Tree, context: Context) -> Tree:
    """Refuse a tree if no event of the schema can satisfy any of its clauses."""
    schema = context.schema
    if schema is None or schema.is_empty:
        return tree
    conflicts = [_find_impossible(clause, schema) for clause in clauses_of(tree)]
    if all(conflicts):
        first = conflicts[0]
        spans = [comparison_of(part).spans.whole for part in first]
        shown = " and ".join(_show_part(part) for part in first)
        path = comparison_of(first[0]).path
        domain = schema.domain_of(path)
        raise context.problem(
            f"no {path} satisfies {shown}",
            Span(min(span.start for span in spans), max(span.end for span in spans)),
            accepted=bounds(domain) if domain else None,
        )
    return tree


def _show_part(part: Tree) -> str:
    return ("not " if isinstance(part, Not) else "") + show_test(comparison_of(part))


def _find_impossible(clause: Sequence[Tree], schema: EventSchema) -> list[Tree]:
    """Return the parts of a clause that no single value can satisfy together; empty if the clause is possible."""
    by_path: dict[str, list[Tree]] = {}
    for part in clause:
        by_path.setdefault(comparison_of(part).path, []).append(part)
    for path, parts in by_path.items():
        domain = schema.domain_of(path)
        if domain is not None and is_single(path, schema) and not _possible(parts, domain):
            return [part for part in parts if comparison_of(part).operator is not EXISTS]
    return []


def is_single(path: str, schema: EventSchema) -> bool:
    """Return whether events have at most one value there: the attribute is unique in all its event types."""
    if schema.open or path == EVENT_TYPE:
        return False
    members = [member for each in schema.event_types.values() if (member := each.member(path))]
    return not any(member.multiple for member in members)


def _possible(parts: Sequence[Tree], domain: Domain) -> bool:
    """Return whether one value can satisfy all wanted parts and none of the negated ones."""
    required = [part for part in parts if isinstance(part, Comparison)]
    if not required or any(isinstance(comparison_of(part).operand, Slots) for part in parts):
        return True
    candidates = _candidates(required, domain)
    if candidates is None:
        return _bounds_meet(required, domain)
    return any(all(matches_one(part, value) for part in parts) for value in candidates)


def matches_one(part: Tree, value: Scalar) -> bool:
    """Return whether a part of a clause holds for an event with this single value."""
    return comparison_of(part).holds(value) is not isinstance(part, Not)


def _candidates(required: list[Comparison], domain: Domain) -> list[Scalar] | None:
    """Return the only possible values, if they can be enumerated."""
    if domain.kind in LISTED:
        return list(domain.values)
    if domain.kind is DomainKind.BOOLEAN:
        return [True, False]
    equal = next((test for test in required if test.operator in (EQ, IN)), None)
    return None if equal is None else [_as_value(literal) for literal in equal.literals]


def _as_value(literal: Literal) -> Scalar:
    return show_instant(literal) if isinstance(literal, Instant) else literal


_LOWER = {GT: True, GE: False, BETWEEN: False}
_UPPER = {LT: True, LE: False, BETWEEN: False}
"""Operators that bound from below and from above, and whether they exclude the bound itself."""


def _bounds_meet(required: list[Comparison], domain: Domain) -> bool:
    lower: list[tuple[Any, bool]] = [] if domain.minimum is None else [(domain.minimum, False)]
    upper: list[tuple[Any, bool]] = [] if domain.maximum is None else [(domain.maximum, False)]
    for test in required:
        literals = test.literals
        if test.operator in _LOWER:
            lower.append((literals[0], _LOWER[test.operator]))
        if test.operator in _UPPER:
            upper.append((literals[-1], _UPPER[test.operator]))
    if not lower or not upper:
        return True
    low, high = max(bound for bound, _ in lower), min(bound for bound, _ in upper)
    strict = (low, True) in lower or (high, True) in upper
    return bool(low < high or (low == high and not strict))
