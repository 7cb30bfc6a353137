"""Rewrites that bring a tree into clauses: an `or` of `and`s of predicates and negated predicates.

Each is a pure function that keeps the meaning. They compare predicates for equality only, never by implication. So
what they do to a shape without literals, they do to every text of that shape whose literals differ.
"""

from __future__ import annotations

from itertools import product
from math import prod

from tidings.errors import TooLarge
from tidings.events.tree import And, Comparison, Not, Or, Tree, both, either
from tidings.matching.compiler.language import Context

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

    A negated predicate stays negated: events without `a`, or with several values, satisfy `not a < 5` and `a >= 5`
    differently.
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
    kept: dict[frozenset[Tree], tuple[Tree, ...]] = {}
    for clause in sorted(clauses_of(tree), key=len):
        tests = frozenset(clause)
        if not any(smaller <= tests for smaller in kept):
            kept[tests] = clause
    return _tree_of(tuple(kept.values()))
