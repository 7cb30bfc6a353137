"""Reference matcher for events, and explanations: the predicates and values that decided.

furniture_category 'table' is a 'dining room'; price 180 < 200
"""

from __future__ import annotations

from collections.abc import Iterable

from tidings.atoms import Event
from tidings.events.tree import And, Comparison, Not, Or, Tree, comparisons, show_path, show_tree
from tidings.model import Reason
from tidings.values import Scalar, show


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


def explain_miss(tree: Tree, event: Event) -> tuple[Reason, ...]:
    """Return the predicates that failed, each with a value it failed on, or None. Empty for a match."""
    return () if matches(tree, event) else tuple(_failures(tree, event))


def _reasons(tree: Tree, event: Event) -> Iterable[Reason]:
    if isinstance(tree, And):
        return [reason for part in tree.parts for reason in _reasons(part, event)]
    if isinstance(tree, Or):
        return _reasons(next(part for part in tree.parts if matches(part, event)), event)
    if isinstance(tree, Not):
        return [Reason(_cut(show_tree(tree), LONGEST_PREDICATE), None, _first_place(tree))]
    return [_reason(tree, next(value for value in event[tree.path] if tree.holds(value)))]


def _failures(tree: Tree, event: Event) -> Iterable[Reason]:
    if isinstance(tree, And | Or):
        missed = [part for part in tree.parts if not matches(part, event)]
        return [reason for part in missed for reason in _failures(part, event)]
    if isinstance(tree, Not):
        held = next(iter(_reasons(tree.part, event)))
        return [Reason(_cut(show_tree(tree), LONGEST_PREDICATE), held.value, held.at)]
    return [_reason(tree, next(iter(event.get(tree.path, ())), None))]


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


def _path(pointer: str) -> str:
    return pointer[1:].replace("/", ".").replace("~1", "/").replace("~0", "~")


def show_reason(reason: Reason) -> str:
    """Format a reason, with the value next to its attribute: `price 180 < 200`."""
    return _show(reason, "")


def show_failure(reason: Reason) -> str:
    """Format a predicate that failed: `price 250 is not < 200`, `no price`."""
    negated = reason.predicate.startswith("not (")
    if reason.value is None and not negated:
        return f"no {show_path(_path(reason.at))}"
    if negated:
        return (
            f"{reason.predicate}, but it is {show(reason.value)}"
            if reason.value is not None
            else reason.predicate
        )
    return _show(reason, "is not ")


def _show(reason: Reason, word: str) -> str:
    path = show_path(_path(reason.at))
    test = reason.predicate.removeprefix(f"{path} ")
    if reason.value is None or test == reason.predicate:
        return reason.predicate
    value = show(reason.value)
    return reason.predicate if test == f"= {value}" and not word else f"{path} {value} {word}{test}"


def show_reasons(reasons: Iterable[Reason]) -> str:
    """Format the reasons of a match on one line."""
    return "; ".join(map(show_reason, reasons))
