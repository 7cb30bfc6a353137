"""Which engine the batch job takes: looks at the subscription file and at the memory that is free, asks the planner.

Reading a large file takes a while, so a small one is not even opened: its index fits.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pyarrow.compute as pc
from pyspark.sql import SparkSession

from tidings.core.text import plural
from tidings.errors import InputError, SubscriptionError
from tidings.relational import job as relational_job
from tidings.relational.branches import PredicateSet
from tidings.relational.planner import Choice, Engine, choose, shown_size, sizes_of
from tidings.relational.tables import Plan
from tidings.relational.templates import LANGUAGE, Templates
from tidings.spark.batch import job as batch_job
from tidings.spark.batch.job import BatchListener, BatchRequest, BatchSummary
from tidings.spark.batch.subscription_file import read_subscriptions
from tidings.spark.sources.files import Location

SAMPLE = 5_000

Name = TypeVar("Name", Engine, Plan)

SMALL = 0.125
"""A file of subscriptions that is so much of the free memory, or less, has an index that takes less than half of it."""


def choose_engine(
    request: BatchRequest,
    engine: Engine | None = None,
    plan: Plan | None = None,
    unroll: int | None = None,
    memory: int | None = None,
) -> Choice:
    """The engine and the plan for a request: as asked for, or by size. `unroll` says how many predicates a row has."""
    plan = _plan(engine, plan, unroll)
    memory = free_memory() if memory is None else memory
    if engine is None and plan is None and (small := _small(request, memory)):
        return small
    if engine is Engine.INDEX:
        return Choice(engine, "index: as asked for")
    given = read_subscriptions(request.subscriptions).subscriptions
    others = pc.sum(pc.not_equal(given["language"], LANGUAGE)).as_py()
    if others and engine is None and plan is None:
        return Choice(
            Engine.INDEX, "index: the other engine knows XPath only, and not all subscriptions are XPaths"
        )
    if others:
        raise InputError(
            "the relational engine matches XPaths only",
            received=f"{plural(others, 'subscription')} of {given.num_rows:,} in other languages",
            accepted="--engine index, or a file of XPaths alone",
        )
    choice = choose(sizes_of(_sample(given), given.num_rows), memory, engine, plan)
    if unroll is None or choice.layout is None:
        return choice
    return replace(choice, layout=replace(choice.layout, unroll=unroll))


def asked_for(request: BatchRequest, engine: str | None, plan: str | None, unroll: int | None) -> Choice:
    """The same by names, as a person writes them."""
    return choose_engine(request, _named(Engine, engine), _named(Plan, plan), unroll)


def match(
    session: SparkSession, request: BatchRequest, choice: Choice, listener: BatchListener | None = None
) -> BatchSummary:
    """Run the batch job with the engine that was chosen."""
    if choice.layout is None:
        return batch_job.run_batch_job(session, request, listener)
    return relational_job.run(session, request, choice.layout, listener)


def _named(kind: type[Name], given: str | None) -> Name | None:
    if given is None:
        return None
    if given not in {each.value for each in kind}:
        accepted = ", ".join(each.value for each in kind)
        raise InputError(f"there is no such {kind.__name__.lower()}", received=repr(given), accepted=accepted)
    return kind(given)


def _plan(engine: Engine | None, plan: Plan | None, unroll: int | None) -> Plan | None:
    """The plan that is asked for, if only by its number of predicates; what contradicts itself is refused."""
    if engine is Engine.INDEX and (plan is not None or unroll is not None):
        raise InputError("the index has no plan", accepted="--plan and --unroll with --engine relational")
    if unroll is None:
        return plan
    if plan not in (None, Plan.UNROLL) or unroll < 1:
        accepted = "--unroll with a number from 1 on, for the plan unroll"
        raise InputError(
            "there is nothing to unroll", received=f"{plan or Plan.UNROLL}, {unroll}", accepted=accepted
        )
    return Plan.UNROLL


def _small(request: BatchRequest, memory: int) -> Choice | None:
    size = Location.of(request.subscriptions).info().size or 0
    if size > memory * SMALL:
        return None
    free = f"{shown_size(memory)} are free"
    why = f"index: {shown_size(size)} of subscriptions are little where {free}"
    return Choice(Engine.INDEX, why, is_news=False)


def _sample(given: Any) -> Iterator[Sequence[PredicateSet]]:
    templates = Templates()
    rows = range(0, given.num_rows, max(1, given.num_rows // SAMPLE))
    for text in given["text"].take(list(rows)).to_pylist():
        with suppress(SubscriptionError):  # it is refused when it is taken apart
            yield templates.asked_by(text)


def free_memory() -> int:
    """The bytes of memory that programs could still have."""
    listed = Path("/proc/meminfo")
    if listed.exists():
        for line in listed.read_text().splitlines():
            name, _, rest = line.partition(":")
            if name == "MemAvailable":
                return int(rest.split()[0]) * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
