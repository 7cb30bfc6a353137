"""Rewrites that bring a tree into clauses: an `or` of `and`s of predicates and negated predicates.

Each is a pure function and keeps the meaning. They compare predicates for equality only, never for what one implies
of another: so what they do to a shape without its literals they do to every text of that shape whose literals differ.
"""

from __future__ import annotations

from itertools import product
from math import prod

from tidings.errors import TooLarge
from tidings.events.tree import And, Comparison, Not, Or, Tree, both, either
from tidings.matching.compiler.context import Context

Clauses = tuple[tuple[Tree, ...], ...]
"""A tree in clauses, for reading: the parts of each alternative."""


def clauses_of(tree: Tree) -> Clauses:
    """A tree that is in clauses already, taken apart."""
    alternatives = tree.parts if isinstance(tree, Or) else (tree,)
    return tuple(part.parts if isinstance(part, And) else (part,) for part in alternatives)


def comparison_of(part: Tree) -> Comparison:
    """The predicate of a part of a clause, negated or not."""
    found = part.part if isinstance(part, Not) else part
    assert isinstance(found, Comparison), "a tree in clauses has predicates at its leaves"
    return found


def _tree_of(clauses: Clauses) -> Tree:
    return either(tuple(both(clause) for clause in clauses))


def push_not_down(tree: Tree, _: Context) -> Tree:
    """`not` stands before predicates only.

    A negated predicate stays one: an event without `a`, or with several, tells `not a < 5` from `a >= 5`.
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
    """`and` over `or`. What would become more clauses than the limit is refused before it is made."""
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
    """How many clauses `distribute` would make."""
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
    """What is said twice in a clause counts once."""
    return _tree_of(tuple(tuple(dict.fromkeys(clause)) for clause in clauses_of(tree)))


def drop_subsumed(tree: Tree, _: Context) -> Tree:
    """A clause that says all another one says, and perhaps more, adds nothing: `a or (a and b)` is `a`."""
    kept: dict[frozenset[Tree], tuple[Tree, ...]] = {}
    for clause in sorted(clauses_of(tree), key=len):
        tests = frozenset(clause)
        if not any(said <= tests for said in kept):
            kept[tests] = clause
    return _tree_of(tuple(kept.values()))
