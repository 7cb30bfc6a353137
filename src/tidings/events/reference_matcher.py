"""Reference matcher for events, and explanations: the predicates and values that decided."""

from __future__ import annotations

from collections.abc import Iterable

from tidings.atoms import Event
from tidings.events.predicate_tree import And, Comparison, Not, Or, Tree, comparisons, show_tree
from tidings.model import Reason
from tidings.values import Scalar


def matches(tree: Tree, event: Event) -> bool:
    """Return whether an event satisfies a tree of `predicate_compiler.parse_and_check`.

    This is the specification: everything faster is tested against it.
    """
    if isinstance(tree, And):
        return all(matches(part, event) for part in tree.parts)
    if isinstance(tree, Or):
        return any(matches(part, event) for part in tree.parts)
    if isinstance(tree, Not):
        return not matches(tree.part, event)
    return any(tree.holds(value) for value in event.get(tree.path, ()))


SHOWN = 200
"""Maximum length of a value in a reason: otherwise every notification would repeat a long text."""

LONGEST_PREDICATE = 2_000
"""Maximum length of a predicate in a reason: `in` may have thousands of operands."""


def explain(tree: Tree, event: Event) -> tuple[Reason, ...]:
    """Return the reasons of a match in text order; of alternatives, the first that holds. Empty for a miss."""
    return tuple(_reasons(tree, event)) if matches(tree, event) else ()


def _reasons(tree: Tree, event: Event) -> Iterable[Reason]:
    if isinstance(tree, And):
        return [reason for part in tree.parts for reason in _reasons(part, event)]
    if isinstance(tree, Or):
        return _reasons(next(part for part in tree.parts if matches(part, event)), event)
    if isinstance(tree, Not):
        return [Reason(_cut(show_tree(tree), LONGEST_PREDICATE), None, _first_place(tree))]
    return [_reason(tree, next(value for value in event[tree.path] if tree.holds(value)))]


def _reason(comparison: Comparison, value: Scalar | None) -> Reason:
    shown = _cut(value, SHOWN) if isinstance(value, str) else value
    return Reason(_cut(show_tree(comparison), LONGEST_PREDICATE), shown, pointer(comparison.path))


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _first_place(tree: Tree) -> str:
    return pointer(next(comparisons(tree)).path)


def pointer(path: str) -> str:
    """Format a path as a JSON pointer: `seller.city` is /seller/city."""
    return "/" + path.replace("~", "~0").replace("/", "~1").replace(".", "/")
