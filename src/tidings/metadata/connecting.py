"""How the variables of a normal rule hang together: each must be reached from the registered one, in one way.

A join rule gives resources of one side and forgets those of the other. So a variable is asked once, with all that hangs
on it, and then it is gone: what connects it a second time would be asked of another resource, and give wrong results.

    search A a, B b register a where a.x = b and a.y = b      true of a resource whose x and y are two different Bs
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tidings.errors import Place
from tidings.languages.rules_tree import Both, Comparison, Path, Rule
from tidings.languages.tree import Span
from tidings.metadata import rule_problems as problems


def predicates(normal: Rule) -> tuple[Comparison, ...]:
    """The predicates of a normal rule, which are joined by `and` only."""
    if normal.where is None:
        return ()
    parts = normal.where.parts if isinstance(normal.where, Both) else (normal.where,)
    return tuple(part for part in parts if isinstance(part, Comparison))


def joins(normal: Rule) -> Iterator[tuple[Path, Path, Comparison]]:
    """Those that compare two variables, with their sides."""
    for each in predicates(normal):
        if isinstance(each.left, Path) and isinstance(each.right, Path):
            yield each.left, each.right, each


def check_connected(normal: Rule, rule: Rule, several: bool, place: Callable[[Span], Place]) -> None:
    """Refuse what a normal rule cannot be taken apart for. `several` says that it is one of several alternatives."""
    part = {each.variable: {each.variable} for each in normal.searched}
    for left, right, comparison in joins(normal):
        if left.variable == right.variable:
            raise problems.one_resource(place(comparison.span))
        if right.variable in part[left.variable]:
            raise problems.in_a_circle(place(comparison.span))
        together = part[left.variable] | part[right.variable]
        part |= dict.fromkeys(together, together)
    for each in rule.searched:
        if each.variable not in part[rule.register]:
            raise problems.not_connected(each.variable, rule.register, several, place(each.span))
