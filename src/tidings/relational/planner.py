"""Which engine, and which plan, if nobody says: by the sizes of things, with a sentence that tells why.

The index is faster as long as it fits into memory. Among the plans section 4 of the paper weighs: sharing pays where
subscriptions have many equalities in common, buckets where chains begin with ranges, unrolling in most other cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tidings.relational.branches import EQUAL, RANGES, PredicateSet
from tidings.relational.tables import Layout, Plan

BASE_BYTES, PREDICATE_BYTES = 120, 60
"""What a subscription and each of its predicates are taken to need in the index: about twice what `make bench` measures
for XPaths of all sorts over real documents (docs/performance.md), for while segments are merged the old ones are there,
too. Those of one shape need far less.
"""

SHARE_OF_MEMORY = 0.5
"""So much of the memory that is free the index may take: documents and Spark need some, too."""

LONGEST_ROW = 6
"""More predicates than these are not unrolled into one row (section 4.3: "a reasonable k (5 or 6)")."""

BUCKETS_FROM = 0.5
"""If so many subscriptions begin with a range, lookups by value find nothing to hold on to."""

COMMON_FROM = 0.9
"""If so many first predicates are shared, following chains reads less than unrolled rows do."""


class Engine(StrEnum):
    INDEX = "index"
    RELATIONAL = "relational"


@dataclass(frozen=True, slots=True)
class Sizes:
    """What subscriptions look like: how many; how many predicates each has, in the mean and at most; which share of
    them begins with a range; which share of the first predicates is somebody else's, too, and an equality."""

    subscriptions: int
    predicates: float
    longest: int
    ranges_first: float
    common: float

    @property
    def index_bytes(self) -> float:
        return self.subscriptions * (BASE_BYTES + PREDICATE_BYTES * self.predicates)


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen, and why; with the index there is no layout. What goes without saying is no news."""

    engine: Engine
    why: str
    layout: Layout | None = None
    is_news: bool = True


def sizes_of(sample: Iterable[Sequence[PredicateSet]], subscriptions: int) -> Sizes:
    """The sizes of so many subscriptions, judged by some of them."""
    chains = [predicates for each in sample for predicates, _ in each if predicates]
    if not chains:
        return Sizes(subscriptions, 0.0, 0, 0.0, 0.0)
    firsts = [chain[0][:4] for chain in chains]
    seen: dict[object, int] = {}
    for first in firsts:
        seen[first] = seen.get(first, 0) + 1
    lengths = [len(chain) for chain in chains]
    return Sizes(
        subscriptions,
        sum(lengths) / len(chains),
        max(lengths),
        sum(first[1] in RANGES for first in firsts) / len(chains),
        sum(first[1] == EQUAL and seen[first] > 1 for first in firsts) / len(chains),
    )


def choose(sizes: Sizes, memory: int, engine: Engine | None = None, plan: Plan | None = None) -> Choice:
    """The engine and the plan; what is given is kept to. `memory` is how many bytes are free."""
    room = memory * SHARE_OF_MEMORY
    if engine is None and plan is None:
        fits = sizes.index_bytes <= room
        what = f"{sizes.subscriptions:,} subscriptions take about {shown_size(sizes.index_bytes)} in an index"
        limit = f"of the {shown_size(memory)} that are free"
        if fits:
            return Choice(Engine.INDEX, f"index: {what}, which is less than half {limit}")
        chosen = _plan(sizes)
        return Choice(
            Engine.RELATIONAL, f"relational, {chosen.why}; {what}, more than half {limit}", chosen.layout
        )
    if engine is Engine.INDEX:
        return Choice(engine, "index: as asked for")
    if plan is not None:
        return Choice(Engine.RELATIONAL, f"relational, {plan.value}: as asked for", _layout(plan, sizes))
    chosen = _plan(sizes)
    return Choice(Engine.RELATIONAL, f"relational as asked for, {chosen.why}", chosen.layout)


@dataclass(frozen=True, slots=True)
class _Chosen:
    layout: Layout
    why: str


def _plan(sizes: Sizes) -> _Chosen:
    if sizes.ranges_first >= BUCKETS_FROM:
        why = f"share-bucket: {sizes.ranges_first:.0%} of the subscriptions have no equality to begin with"
        return _Chosen(_layout(Plan.SHARE_BUCKET, sizes), why)
    if sizes.predicates > LONGEST_ROW:
        why = f"share: with {sizes.predicates:.1f} predicates each, unrolled rows would not hold them"
        return _Chosen(_layout(Plan.SHARE, sizes), why)
    if sizes.common >= COMMON_FROM and sizes.predicates <= 2:
        why = f"share: {sizes.common:.0%} of the subscriptions begin with a predicate that others have, too"
        return _Chosen(_layout(Plan.SHARE, sizes), why)
    layout = _layout(Plan.UNROLL, sizes)
    why = (
        f"unroll: {sizes.predicates:.1f} predicates each, so rows of {layout.unroll} hold most subscriptions"
    )
    return _Chosen(layout, why)


def _layout(plan: Plan, sizes: Sizes) -> Layout:
    return Layout(plan, unroll=min(max(sizes.longest, 1), LONGEST_ROW))


def shown_size(size: float) -> str:
    """A size for people: `1.2 GB`."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1_000 or unit == "GB":
            return f"{size:,.0f} {unit}" if unit == "bytes" or size >= 10 else f"{size:,.1f} {unit}"
        size /= 1_000
    raise AssertionError
