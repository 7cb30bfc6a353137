"""A subscription as rows of the tables, for each of the three plans.

share          equalities, then the rest, a row each, chained by pre_id and chain_id
share-bucket   equalities, a bucket of the first range (shared by many), the rest, that range itself
unroll         the first k in one row, what remains chained to it
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import pyarrow as pa

from tidings.relational.branches import EQUAL, RANGES, Predicate, PredicateSet
from tidings.relational.tables import ROOT, UNROLLED, Layout, Plan, brinfo_id, chain_id, sub_id

Bounds = Mapping[tuple[int, str], Sequence[float]]
"""Where buckets end, by linear path and operator: ascending numbers."""


@dataclass(slots=True)
class Rows:
    """Rows by table, and the linear paths and branching informations that they use."""

    layout: Layout
    generation: int
    bounds: Bounds = field(default_factory=dict)
    rows: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    linear: dict[str, None] = field(default_factory=dict)
    infos: dict[tuple[str, str], None] = field(default_factory=dict)
    _chained: set[bytes] = field(default_factory=set)

    def add(self, subscription: str, text: str, alternatives: Iterable[PredicateSet]) -> None:
        """The rows of a subscription; predicates that another one here has brought already are not repeated."""
        for number, (predicates, exact) in enumerate(alternatives):
            if not predicates:
                self._put("query_everywhere", subscription, text, self.generation)
                continue
            own = sub_id(subscription, self.generation, number)
            if self.layout.plan is Plan.SHARE_BUCKET:
                predicates = bucketed(predicates, self.bounds)
            verified = None if exact else text
            self._put(
                "query_branchpoint", own, self._meeting(predicates), subscription, verified, self.generation
            )
            self._predicates(own, predicates)

    def _put(self, table: str, *row: Any) -> None:
        self.rows.setdefault(table, []).append(row)

    def _meeting(self, predicates: Sequence[Predicate]) -> str | None:
        """Which branching informations the predicates have, in their order; None if nothing has to meet."""
        self.linear.update(dict.fromkeys(each.path for each in predicates))
        if not any(each.info for each in predicates):
            return None
        self.infos.update(dict.fromkeys((each.path, each.info) for each in predicates))
        return "&".join(str(brinfo_id(each.path, each.info)) for each in predicates)

    def _predicates(self, own: bytes, predicates: Sequence[Predicate]) -> None:
        if self.layout.plan is not Plan.UNROLL:
            self._chain(ROOT, own, predicates)
            return
        first, rest = predicates[: self.layout.unroll], predicates[self.layout.unroll :]
        empty = (None,) * (len(UNROLLED) * (self.layout.unroll - len(first)))
        columns = [column for each in first for column in each.columns]
        self._put("predicate_unroll", own, *columns, *empty, not rest)
        if rest:
            self._chain(own, own, rest)

    def _chain(self, pre_id: bytes, own: bytes, predicates: Sequence[Predicate]) -> None:
        for each in predicates[:-1]:
            linear, op, value, number = each.columns
            chain = chain_id(pre_id, linear, op, value or "", number is not None)
            if chain not in self._chained:
                self._chained.add(chain)
                self._put("query_predicate", pre_id, *each.columns, chain, False)
            pre_id = chain
        self._put("query_predicate", pre_id, *predicates[-1].columns, own, True)

    def tables(self) -> dict[str, Any]:
        """The rows as Arrow tables."""
        schemas = self.layout.schemas
        return {
            name: pa.Table.from_arrays(
                [
                    pa.array(column, type)
                    for column, type in zip(zip(*rows, strict=True), schemas[name].types, strict=True)
                ],
                schema=schemas[name],
            )
            for name, rows in self.rows.items()
        }


def bucketed(predicates: list[Predicate], bounds: Bounds) -> list[Predicate]:
    """`a > x and rest` as `a > b and rest and a > x` (section 4.2), where b is where x's bucket begins.

    Without a rest there is nothing to save. What is not equal to x, or contains it, falls into no bucket.
    """
    equal = [each for each in predicates if each.op == EQUAL]
    others = predicates[len(equal) :]
    if len(others) < 2 or others[0].number is None or others[0][:2] not in bounds:
        return predicates
    first, *rest = others
    assert first.number is not None
    edge = edge_of(first.op, first.number, bounds[first.linearpath_id, first.op])
    bucket = first._replace(value=repr(edge), number=edge, info="")
    return [*equal, bucket, *rest, first]


def edge_of(op: str, number: float, bounds: Sequence[float]) -> float:
    """The end of a number's bucket that every value beyond the number has passed, too."""
    if op in (">", ">="):
        place = bisect_right(bounds, number)
        return bounds[place - 1] if place else -inf
    place = bisect_left(bounds, number)
    return bounds[place] if place < len(bounds) else inf


def bounds_of(alternatives: Iterable[PredicateSet], buckets: int) -> Iterator[tuple[int, str, list[float]]]:
    """Where buckets should end, so many for each path and operator, if each is to get as many subscriptions."""
    numbers: dict[tuple[int, str], list[float]] = {}
    for alternative in alternatives:
        for each in alternative.predicates:
            if each.op in RANGES and each.number is not None:
                numbers.setdefault((each.linearpath_id, each.op), []).append(each.number)
    for (linear, op), found in numbers.items():
        found.sort()
        places = [len(found) * n // buckets for n in range(buckets + 1)]
        edges = places[:-1] if op in (">", ">=") else [max(place - 1, 0) for place in places[1:]]
        yield linear, op, sorted({found[place] for place in edges})
