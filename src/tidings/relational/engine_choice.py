"""Choice of the engine and the plan for a batch job, by the sizes of subscriptions and memory.

The index is faster as long as it fits into memory. Among the plans, section 4 of the paper weighs: sharing pays where
subscriptions have many equalities in common, buckets where chains begin with ranges, unrolling in most other cases.
A small subscription file is not even opened: its index fits.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import pyarrow.compute as pc
from pyspark.sql import SparkSession

from tidings.core.text import plural
from tidings.errors import InputError, SubscriptionError
from tidings.relational import job as relational_job
from tidings.relational.branches import EQUAL, LANGUAGE, RANGES, PredicateSet, Templates
from tidings.relational.tables import Layout, Plan
from tidings.spark.batch import job as batch_job
from tidings.spark.batch.job import BatchListener, BatchRequest, BatchSummary
from tidings.spark.batch.subscription_file import read_subscription_blocks, read_subscriptions
from tidings.spark.sources.files import Location

BASE_BYTES, PREDICATE_BYTES = 120, 60
"""Estimated bytes of a subscription and of each predicate in the index: about twice what `make bench` measures for
mixed XPaths over real documents (docs/performance.md), because a merge keeps the old segments. Subscriptions of one
shape need far less.
"""

SHARE_OF_MEMORY = 0.5
"""Share of the free memory that the index may use: documents and Spark need the rest."""

LONGEST_ROW = 6
"""Maximum number of predicates in an unrolled row (section 4.3: "a reasonable k (5 or 6)")."""

BUCKETS_FROM = 0.5
"""From this share of subscriptions that begin with a range, lookups by value do not pay."""

COMMON_FROM = 0.9
"""From this share of common first predicates, chains read fewer rows than unrolled rows do."""


class Engine(StrEnum):
    INDEX = "index"
    RELATIONAL = "relational"


@dataclass(frozen=True, slots=True)
class Sizes:
    """Statistics of subscriptions.

    `predicates` and `longest` are the mean and the maximum number of predicates; `ranges_first` and
    `common` are the shares that begin with a range, and with an equality that another subscription has, too.
    """

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
    """The chosen engine with the reason; the index has no layout. `is_news` is false for an obvious choice."""

    engine: Engine
    why: str
    layout: Layout | None = None
    is_news: bool = True


def sizes_of(sample: Iterable[Sequence[PredicateSet]], subscriptions: int) -> Sizes:
    """Estimate the statistics of subscriptions from a sample."""
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
    """Choose the engine and the plan, as far as they are not given. `memory` is the number of free bytes."""
    room = memory * SHARE_OF_MEMORY
    if engine is None and plan is None:
        fits = sizes.index_bytes <= room
        what = f"{sizes.subscriptions:,} subscriptions take about {shown_size(sizes.index_bytes)} in an index"
        limit = f"of the {shown_size(memory)} that are free"
        if fits:
            return Choice(Engine.INDEX, f"index: {what}, which is less than half {limit}")
        chosen = _choose_plan(sizes)
        return Choice(
            Engine.RELATIONAL, f"relational, {chosen.why}; {what}, more than half {limit}", chosen.layout
        )
    if engine is Engine.INDEX:
        return Choice(engine, "index: as requested")
    if plan is not None:
        return Choice(Engine.RELATIONAL, f"relational, {plan.value}: as requested", _layout(plan, sizes))
    chosen = _choose_plan(sizes)
    return Choice(Engine.RELATIONAL, f"relational as requested, {chosen.why}", chosen.layout)


@dataclass(frozen=True, slots=True)
class _PlanChoice:
    layout: Layout
    why: str


def _choose_plan(sizes: Sizes) -> _PlanChoice:
    if sizes.ranges_first >= BUCKETS_FROM:
        why = f"share-bucket: {sizes.ranges_first:.0%} of the subscriptions have no equality to begin with"
        return _PlanChoice(_layout(Plan.SHARE_BUCKET, sizes), why)
    if sizes.predicates > LONGEST_ROW:
        why = f"share: with {sizes.predicates:.1f} predicates each, unrolled rows would not hold them"
        return _PlanChoice(_layout(Plan.SHARE, sizes), why)
    if sizes.common >= COMMON_FROM and sizes.predicates <= 2:
        why = f"share: {sizes.common:.0%} of the subscriptions begin with a predicate that others have, too"
        return _PlanChoice(_layout(Plan.SHARE, sizes), why)
    layout = _layout(Plan.UNROLL, sizes)
    why = (
        f"unroll: {sizes.predicates:.1f} predicates each, so rows of {layout.unroll} hold most subscriptions"
    )
    return _PlanChoice(layout, why)


def _layout(plan: Plan, sizes: Sizes) -> Layout:
    return Layout(plan, unroll=min(max(sizes.longest, 1), LONGEST_ROW))


def shown_size(size: float) -> str:
    """Format a size: `1.2 GB`."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1_000 or unit == "GB":
            return f"{size:,.0f} {unit}" if unit == "bytes" or size >= 10 else f"{size:,.1f} {unit}"
        size /= 1_000
    raise AssertionError


SAMPLE = 5_000

Name = TypeVar("Name", Engine, Plan)

SMALL = 0.125
"""Up to this share of the free memory, a subscription file has an index that takes less than half of it."""


def choose_engine(
    request: BatchRequest,
    engine: Engine | None = None,
    plan: Plan | None = None,
    unroll: int | None = None,
    memory: int | None = None,
) -> Choice:
    """Choose the engine and the plan of a request. `unroll` is the number of predicates in a row."""
    plan = _requested_plan(engine, plan, unroll)
    memory = free_memory() if memory is None else memory
    if engine is None and plan is None and (small := _choose_small(request, memory)):
        return small
    if engine is Engine.INDEX:
        return Choice(engine, "index: as requested")
    given = read_subscriptions(request.subscriptions).subscriptions
    others = pc.sum(pc.not_equal(given["language"], LANGUAGE)).as_py()
    if others and engine is None and plan is None:
        return Choice(
            Engine.INDEX,
            "index: the relational engine only supports XPath, and some subscriptions are not XPaths",
        )
    if others:
        raise InputError(
            "the relational engine only supports XPath",
            received=f"{plural(others, 'subscription')} of {given.num_rows:,} in other languages",
            accepted="--engine index, or a file of XPaths alone",
        )
    choice = choose(sizes_of(_sample(given), given.num_rows), memory, engine, plan)
    if unroll is None or choice.layout is None:
        return choice
    return replace(choice, layout=replace(choice.layout, unroll=unroll))


def choose_layout(
    subscriptions: str | Path | None, plan: str | None, unroll: int | None
) -> tuple[Layout, str]:
    """Choose the layout of tables that will be filled with a file of subscriptions; return the reason as well."""
    wanted = _requested_plan(Engine.RELATIONAL, parse_name(Plan, plan), unroll)
    if subscriptions is None and wanted is None:
        raise InputError(
            "the plan of the tables is missing",
            accepted="--plan with share, share-bucket or unroll",
            hint="or fill the tables at once, and it is chosen for these subscriptions: --subscriptions FILE",
        )
    sizes = Sizes(0, 0.0, LONGEST_ROW, 0.0, 0.0)
    if subscriptions is not None:
        first = next(read_subscription_blocks(subscriptions)).subscriptions
        xpaths = first.filter(pc.equal(first["language"], LANGUAGE))
        sizes = sizes_of(_sample(xpaths), xpaths.num_rows)
    choice = choose(sizes, 0, Engine.RELATIONAL, wanted)
    assert choice.layout is not None
    return (choice.layout if unroll is None else replace(choice.layout, unroll=unroll)), choice.why


SUGGESTED_FROM = 1_000
"""The least number of subscriptions that say something about those to come."""


def suggest_layout(xpaths: Any) -> Layout:
    """Suggest the layout of tables whose first subscriptions are known, a table with `text`."""
    if xpaths.num_rows < SUGGESTED_FROM:
        return Layout(Plan.UNROLL)
    return _choose_plan(sizes_of(_sample(xpaths), xpaths.num_rows)).layout


def asked_for(request: BatchRequest, engine: str | None, plan: str | None, unroll: int | None) -> Choice:
    """Choose by the names of engine and plan."""
    return choose_engine(request, parse_name(Engine, engine), parse_name(Plan, plan), unroll)


def match(
    session: SparkSession, request: BatchRequest, choice: Choice, listener: BatchListener | None = None
) -> BatchSummary:
    """Run the batch job with the engine that was chosen."""
    if choice.layout is None:
        return batch_job.run_batch_job(session, request, listener)
    return relational_job.run(session, request, choice.layout, listener)


def parse_name(kind: type[Name], given: str | None) -> Name | None:
    """Parse the name of an engine or a plan."""
    if given is None:
        return None
    if given not in {each.value for each in kind}:
        accepted = ", ".join(each.value for each in kind)
        raise InputError(f"there is no such {kind.__name__.lower()}", received=repr(given), accepted=accepted)
    return kind(given)


def _requested_plan(engine: Engine | None, plan: Plan | None, unroll: int | None) -> Plan | None:
    """Return the requested plan, which `unroll` implies; refuse contradictions."""
    if engine is Engine.INDEX and (plan is not None or unroll is not None):
        raise InputError("the index has no plan", accepted="--plan and --unroll with --engine relational")
    if unroll is None:
        return plan
    if plan not in (None, Plan.UNROLL) or unroll < 1:
        accepted = "--unroll with a number from 1 on, for the plan unroll"
        raise InputError(
            "invalid use of --unroll", received=f"{plan or Plan.UNROLL}, {unroll}", accepted=accepted
        )
    return Plan.UNROLL


def _choose_small(request: BatchRequest, memory: int) -> Choice | None:
    size = Location.of(request.subscriptions).info().size or 0
    if size > memory * SMALL:
        return None
    free = f"{shown_size(memory)} are free"
    why = f"index: {shown_size(size)} of subscriptions fit where {free}"
    return Choice(Engine.INDEX, why, is_news=False)


def _sample(given: Any) -> Iterator[Sequence[PredicateSet]]:
    templates = Templates()
    rows = range(0, given.num_rows, max(1, given.num_rows // SAMPLE))
    for text in given["text"].take(list(rows)).to_pylist():
        with suppress(SubscriptionError):  # it is refused when it is shredded
            yield templates.predicate_sets_of(text)


def free_memory() -> int:
    """Return the bytes of available memory."""
    listed = Path("/proc/meminfo")
    if listed.exists():
        for line in listed.read_text().splitlines():
            name, _, rest = line.partition(":")
            if name == "MemAvailable":
                return int(rest.split()[0]) * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
