"""Shredding: subscriptions to rows of the tables, for each of the three plans.

share          equalities, then the rest, a row each, chained by pre_id and chain_id
share-bucket   equalities, a bucket of the first range (shared by many), the rest, that range itself
unroll         the first k in one row, the others chained to it

A task writes Parquet files of its own and reports their names; the driver lists them. A repeated task leaves files
that are not listed.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import inf
from typing import Any

import pyarrow as pa

from tidings.errors import SubscriptionError
from tidings.model import Reject
from tidings.relational.branches import EQUAL, RANGES, Predicate, PredicateSet, Templates
from tidings.relational.tables import ROOT, UNROLLED, Layout, Plan, brinfo_id, chain_id, sub_id, write_tables

Bounds = Mapping[tuple[int, str], Sequence[float]]
"""Ends of buckets by linear path and operator, in ascending order."""


@dataclass(slots=True)
class Rows:
    """Rows by table, and the linear paths and branching informations they use."""

    layout: Layout
    generation: int
    bounds: Bounds = field(default_factory=dict)
    rows: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    linear: dict[str, None] = field(default_factory=dict)
    infos: dict[tuple[str, str], None] = field(default_factory=dict)
    _chained: set[bytes] = field(default_factory=set)

    def add(
        self,
        subscription: str,
        text: str,
        alternatives: Iterable[PredicateSet],
        subscriber: str | None = None,
    ) -> None:
        """Add the rows of a subscription; shared predicates are not repeated."""
        for number, (predicates, exact) in enumerate(alternatives):
            if not predicates:
                self._put("query_everywhere", subscription, subscriber, text, self.generation)
                continue
            own = sub_id(subscription, self.generation, number)
            if self.layout.plan is Plan.SHARE_BUCKET:
                predicates = bucketed(predicates, self.bounds)
            verified = None if exact else text
            met = self._meeting(predicates)
            self._put("query_branchpoint", own, met, subscription, subscriber, verified, self.generation)
            self._predicates(own, predicates)

    def _put(self, table: str, *row: Any) -> None:
        self.rows.setdefault(table, []).append(row)

    def _meeting(self, predicates: Sequence[Predicate]) -> str | None:
        """Return the branching informations of the predicates in order; None if no branches have to meet."""
        self.linear.update(dict.fromkeys(predicate.path for predicate in predicates))
        if not any(predicate.info for predicate in predicates):
            return None
        pairs = [(predicate.path, predicate.info) for predicate in predicates]
        self.infos.update(dict.fromkeys(pairs))
        return "&".join(str(brinfo_id(*pair)) for pair in pairs)

    def _predicates(self, own: bytes, predicates: Sequence[Predicate]) -> None:
        if self.layout.plan is not Plan.UNROLL:
            self._chain(ROOT, own, predicates)
            return
        first, rest = predicates[: self.layout.unroll], predicates[self.layout.unroll :]
        empty = (None,) * (len(UNROLLED) * (self.layout.unroll - len(first)))
        columns = [column for predicate in first for column in predicate.columns]
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
        """Return the rows as Arrow tables."""
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
    """Rewrite `a > x and rest` to `a > b and rest and a > x` (section 4.2), where b is the start of x's bucket.

    Without a rest this saves nothing. Only ranges have buckets.
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
    """Return the end of a number's bucket that every value beyond the number passes, too."""
    if op in (">", ">="):
        place = bisect_right(bounds, number)
        return bounds[place - 1] if place else -inf
    place = bisect_left(bounds, number)
    return bounds[place] if place < len(bounds) else inf


def bounds_of(alternatives: Iterable[PredicateSet], buckets: int) -> Iterator[tuple[int, str, list[float]]]:
    """Yield the ends of equally filled buckets for each path and operator."""
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


COLUMNS = ("id", "text", "subscriber")
"""The columns of subscriptions that are shredded."""

FLUSHED = 50_000
"""Subscriptions per file: their rows take some hundred megabytes of memory."""

TableFiles = dict[str, dict[str, int]]


@dataclass(slots=True)
class ShredResult:
    """Result of shredding: number of accepted subscriptions, files by table, paths, and rejects."""

    taken: int = 0
    files: list[TableFiles] = field(default_factory=list)
    linear: list[str] = field(default_factory=list)
    infos: list[tuple[str, str]] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ShredResult:
        held = json.loads(text)
        held["infos"] = [(linear, info) for linear, info in held["infos"]]
        return cls(**held | {"rejects": [Reject(**reject) for reject in held["rejects"]]})


@dataclass(frozen=True, slots=True)
class Task:
    """The folder and the layout of rows."""

    folder: str
    layout: Layout
    generation: int
    bounds: Bounds

    def shred(self, subscriptions: Iterable[tuple[str, str, str | None]]) -> Iterator[ShredResult]:
        """Write the rows of subscriptions (id, text and subscriber)."""
        templates, (rows, apart) = Templates(), self._begin()
        for id, text, subscriber in subscriptions:
            try:
                rows.add(id, text, templates.predicate_sets_of(text), subscriber)
            except SubscriptionError as problem:
                apart.rejects.append(Reject("subscription", id, problem.message(), problem.facts()))
                continue
            apart.taken += 1
            if apart.taken == FLUSHED:
                yield self._end(rows, apart)
                rows, apart = self._begin()
        yield self._end(rows, apart)

    def _begin(self) -> tuple[Rows, ShredResult]:
        return Rows(self.layout, self.generation, self.bounds), ShredResult()

    def _end(self, rows: Rows, apart: ShredResult) -> ShredResult:
        apart.files.append(write_tables(self.folder, rows.tables()))
        apart.linear, apart.infos = list(rows.linear), list(rows.infos)
        return apart

    def stage(self) -> Callable[[Iterable[Any]], Iterator[Any]]:
        """Return the function for `mapInArrow`: subscriptions in, reports in JSON out."""

        def run(batches: Iterable[Any]) -> Iterator[Any]:
            rows = (
                row
                for batch in batches
                for row in zip(*(batch.column(name).to_pylist() for name in COLUMNS), strict=True)
            )
            for apart in self.shred(rows):
                yield pa.RecordBatch.from_pydict({"report": [apart.to_json()]})

        return run
