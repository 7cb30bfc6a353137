"""Warnings about predicate texts that compile but may have another meaning than intended.

Texts that can never match are refused (`contradictions`). These are accepted with a warning:

    bid > 4 and bid < 6       with several bids, 7 and 3 match: each predicate looks for its own value
    price > 6 and price < 4   no single value satisfies both, so an event needs two prices
    colour contains 'red'     of several colours, 'darkred' matches: contains looks for characters, not a value

Paper 004 binds one value of an attribute for all predicates of a conjunction, and its `contains` is
membership.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations

from tidings.core.source_text import Span
from tidings.core.suggest import EVENT_TYPE
from tidings.errors import TextWarning
from tidings.events.operators import BETWEEN, CONTAINS, EQ, EXISTS, GE, GT, IN, LE, LT, NE
from tidings.events.predicate_tree import Comparison, Tree, comparisons, show_path, show_tree
from tidings.events.rewrites import clauses_of, is_single
from tidings.events.schema.event_schema import EventSchema
from tidings.matching.compiler.language import Context
from tidings.values import kind_of, show

_LOWER, _UPPER = (GT, GE), (LT, LE)
_MEANINGFUL_TWICE = (EQ, NE, IN, EXISTS)
"""Operators whose conjunctions are meaningful: `tag = 'oak' and tag = 'old'` needs two values."""


def warn_about_several_values(tree: Tree, context: Context) -> Iterator[TextWarning]:
    """Warn of conjunctions that two values of a multi-valued attribute satisfy together."""
    schema = context.schema
    if schema is None:
        return
    for first, second in _pairs(tree):
        if is_multiple(first.path, schema) and not _is_empty_range(first, second):
            yield context.warning(
                f"each predicate looks for its own value of {first.path}, which may have several: one value may "
                f"satisfy {show_tree(first)} and another {show_tree(second)}",
                _span_of(first, second),
                _hint_at_between(first, second),
            )


def warn_about_empty_ranges(tree: Tree, context: Context) -> Iterator[TextWarning]:
    """Warn of two bounds that no single value satisfies, where the schema does not limit the number of values."""
    for first, second in _pairs(tree):
        single = context.schema is not None and (
            is_multiple(first.path, context.schema) or is_single(first.path, context.schema)
        )
        if _is_empty_range(first, second) and not single:
            yield context.warning(
                f"no single value of {first.path} satisfies both predicates: "
                f"only an event with several values of {first.path} can match",
                _span_of(first, second),
                "join them with 'or' if either is enough",
            )


def warn_about_contains(tree: Tree, context: Context) -> Iterator[TextWarning]:
    """Warn of `contains` on a multi-valued attribute, where membership may be meant."""
    schema = context.schema
    for comparison in comparisons(tree):
        if comparison.operator is CONTAINS and schema is not None and is_multiple(comparison.path, schema):
            literal, path = show(comparison.literals[0]), show_path(comparison.path)
            yield context.warning(
                f"'contains' looks for the characters {literal} within each value of {comparison.path}: "
                "a longer value that contains them matches, too",
                comparison.spans.whole,
                f"write {path} = {literal} to find events where one of the values is {literal}",
            )


CHECKS: tuple[Callable[[Tree, Context], Iterable[TextWarning]], ...] = (
    warn_about_several_values,
    warn_about_empty_ranges,
    warn_about_contains,
)
"""The checks, in this order."""


def is_multiple(path: str, schema: EventSchema) -> bool:
    """Return whether the schema allows several values there."""
    if path == EVENT_TYPE:
        return False
    members = [event_type.member(path) for event_type in schema.event_types.values()]
    return any(member is not None and member.multiple for member in members)


def _pairs(tree: Tree) -> Iterator[tuple[Comparison, Comparison]]:
    """Yield pairs of predicates of one clause on one attribute that different values may satisfy."""
    for clause in clauses_of(tree):
        by_path: dict[str, list[Comparison]] = {}
        for part in clause:
            if isinstance(part, Comparison) and part.operator not in _MEANINGFUL_TWICE:
                by_path.setdefault(part.path, []).append(part)
        for parts in by_path.values():
            yield from (pair for pair in combinations(_in_text_order(parts), 2) if not _is_one_side(*pair))


def _in_text_order(parts: Sequence[Comparison]) -> list[Comparison]:
    return sorted(parts, key=lambda part: part.spans.whole.start)


def _is_one_side(first: Comparison, second: Comparison) -> bool:
    """Return whether both bound from the same side: a value within the narrower bound satisfies the other."""
    return any(first.operator in side and second.operator in side for side in (_LOWER, _UPPER))


def _span_of(first: Comparison, second: Comparison) -> Span:
    spans = (first.spans.whole, second.spans.whole)
    return Span(min(span.start for span in spans), max(span.end for span in spans))


def _bounds(first: Comparison, second: Comparison) -> tuple[Comparison, Comparison] | None:
    """Return the lower and the upper bound if the two delimit a range of one kind."""
    low, high = (first, second) if first.operator in _LOWER else (second, first)
    is_range = low.operator in _LOWER and high.operator in _UPPER and low.order is None
    return (low, high) if is_range and low.kind is high.kind else None


def _is_empty_range(first: Comparison, second: Comparison) -> bool:
    if (bounds := _bounds(first, second)) is None:
        return False
    (low,), (high,) = bounds[0].literals, bounds[1].literals
    is_closed = bounds[0].operator is GE and bounds[1].operator is LE
    return bool(low > high or (low == high and not is_closed))  # type: ignore[operator]


def _hint_at_between(first: Comparison, second: Comparison) -> str | None:
    if (bounds := _bounds(first, second)) is None:
        return None
    (low,), (high,) = bounds[0].literals, bounds[1].literals
    assert kind_of(low) is kind_of(high)
    path = show_path(first.path)
    return f"write {path} {BETWEEN.spelling} {show(low)} and {show(high)} for one value, both ends included"
