"""Batch job over tables: any format that Spark reads in, any that it writes out.

    request = TableRequest(Table("subs.jsonl"), Table("table:shop.orders"), Table("matches", "delta"))
    summary = run_table_job(session, request)

    publications ── match ──▶ matches and problems ──▶ Table.write, rejects

The data flows through one Spark plan (`dataframe.match`). Problems are counted on the way; only if there are any, a
second pass over the publications lists them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from tidings.errors import InputError
from tidings.events.schema.event_schema import EventSchema
from tidings.model import Reject
from tidings.spark.batch.job import (
    BatchListener,
    BatchProgress,
    BatchSummary,
    IndexBuilt,
    notify_listener,
)
from tidings.spark.batch.output import (
    SHOWN_REJECTS,
    check_rejects_file,
    check_separate,
    check_target_free,
    format_reject,
    open_rejects,
)
from tidings.spark.batch.spark_table import TABLE_PREFIX, WITHOUT_PATH, Table, find_lake_format, is_table
from tidings.spark.dataframe.match import ID, match
from tidings.spark.dataframe.subscription_set import Subscriptions
from tidings.spark.sources.files import Location

POLL_SECONDS = 0.2


class MatchOptions(Protocol):
    """How the publications of a table are matched.

    `value` is the column that holds the publications, written as `value_format` says; without it the columns are the
    event. `id` names the column, or the field in the text of an event, with its id. `keep` are columns to pass through.
    """

    @property
    def id(self) -> str: ...

    @property
    def value(self) -> str | None: ...

    @property
    def value_format(self) -> str | None: ...

    @property
    def explain(self) -> bool: ...

    @property
    def keep(self) -> Sequence[str]: ...


def match_table(
    events: DataFrame, options: MatchOptions, subscriptions: Subscriptions, keep: Sequence[str] | None = None
) -> DataFrame:
    """Match the publications of a table: a row per match, and rows with a `problem`."""
    return match(
        events,
        subscriptions,
        id=options.id if options.id in events.columns else None,
        id_field=options.id,
        value=options.value,
        format=options.value_format,
        explain=options.explain,
        keep=options.keep if keep is None else keep,
        on_error="column",
    )


@dataclass(frozen=True, slots=True)
class TableRequest:
    """Input and output of a batch job over tables, with `MatchOptions`."""

    subscriptions: Table
    publications: Table
    out: Table
    rejects: Path | None = None
    id: str = ID
    value: str | None = None
    value_format: str | None = None
    explain: bool = False
    keep: tuple[str, ...] = ()
    schema: EventSchema | None = None
    taxonomies: tuple[Path, ...] = ()
    force: bool = False


def check_table_request(request: TableRequest) -> None:
    """Raise `InputError` for mistakes in a request that can be found before Spark starts."""
    check_rejects_file(request.rejects)
    inputs = [table.address for table in (request.subscriptions, request.publications) if has_path(table)]
    for address in inputs:
        if Location.of(address).info().type.name == "NotFound":
            raise InputError("there is no such file or folder", received=f"'{address}'")
    if has_path(request.out):
        check_separate(request.out.address, inputs)
        place = Location.of(request.out.address)
        if not (request.force and find_lake_format(place) == request.out.format is not None):
            check_target_free(place, request.out.address, request.force)


def has_path(table: Table) -> bool:
    """Return whether the address of a table is a path."""
    return not table.address.startswith(TABLE_PREFIX) and table.format not in WITHOUT_PATH


def run_table_job(
    session: SparkSession, request: TableRequest, listener: BatchListener | None = None
) -> BatchSummary:
    """Match all publications of a table with all subscriptions; report `IndexBuilt`, then progress."""
    began = perf_counter()
    subscriptions = _compile(session, request)
    bytes_each = subscriptions.nbytes / subscriptions.size if subscriptions.size else 0.0
    built = IndexBuilt(subscriptions.size, subscriptions.segments, bytes_each, perf_counter() - began)
    notify_listener(listener, built)
    publications = request.publications.read(session)
    counted = MatchCounts(publications, request, subscriptions)
    with _follow_tasks(session, listener) as run:
        run(lambda: request.out.write(counted.matches, request.force))
    seconds = perf_counter() - began
    problems = counted.problems if counted.rejects else iter(())
    examples = _write_rejects(request.rejects, subscriptions.rejects, problems)
    return BatchSummary(
        built,
        counted.publications,
        counted.pairs,
        len(subscriptions.rejects),
        counted.rejects,
        seconds - built.seconds,
        seconds,
        examples=examples,
    )


class MatchCounts:
    """The matches of a table as a DataFrame, with the counts that Spark takes while the DataFrame is written."""

    def __init__(self, events: DataFrame, options: MatchOptions, subscriptions: Subscriptions) -> None:
        self._read, self._found = Observation("publications"), Observation("matches")
        counted = events.observe(self._read, F.count(F.lit(1)).alias("rows"))
        result = match_table(counted, options, subscriptions)
        observed = result.observe(
            self._found, F.count("subscription").alias("pairs"), F.count("problem").alias("problems")
        )
        self.matches = observed.where("problem is null").drop("problem")
        self._problems = result.where("problem is not null").select("publication", "problem.*")

    @property
    def publications(self) -> int:
        return int(self._read.get["rows"])

    @property
    def pairs(self) -> int:
        return int(self._found.get["pairs"])

    @property
    def rejects(self) -> int:
        return int(self._found.get["problems"])

    @property
    def problems(self) -> Iterator[Reject]:
        """The rejected publications, and pairs that could not be decided; reads the publications once more."""
        for row in self._problems.toLocalIterator():
            facts = json.loads(row.facts)
            place = {"subscription": row.subscription} if row.subscription else {}
            yield Reject("publication", row.publication, row.reason, {**facts, **place})


def _compile(session: SparkSession, request: TableRequest) -> Subscriptions:
    table = request.subscriptions
    given: Any = table.read(session) if is_table(table.address, table.format) else table.address
    return Subscriptions.compile(given, request.schema, request.taxonomies)


@contextmanager
def _follow_tasks(
    session: SparkSession, listener: BatchListener | None
) -> Iterator[Callable[[Callable[[], None]], None]]:
    """Provide a function that runs a Spark action and reports how many of its tasks are done."""
    with ThreadPoolExecutor(1) as pool:

        def run(action: Callable[[], None]) -> None:
            running: Future[None] = pool.submit(action)
            try:
                _poll(session, running, listener)
            except BaseException:
                session.interruptAll()
                raise

        yield run


def _poll(session: SparkSession, running: Future[None], listener: BatchListener | None) -> None:
    began = perf_counter()
    tracker = None if (context := getattr(session, "_sc", None)) is None else context.statusTracker()
    while not running.done():
        try:
            running.result(POLL_SECONDS)
        except NotYet:
            if tracker is not None:  # Spark Connect has none: its client reports at the end only
                stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
                known = [stage for stage in stages if stage is not None]
                done, total = sum(s.numCompletedTasks for s in known), sum(s.numTasks for s in known)
                notify_listener(listener, BatchProgress(done, total, 0, 0, 0, perf_counter() - began))
    running.result()


def _write_rejects(
    path: Path | None, subscriptions: tuple[Reject, ...], publications: Iterator[Reject]
) -> tuple[Reject, ...]:
    """Write all rejects to the file, if there is one, and return the first few."""
    examples = list(subscriptions[:SHOWN_REJECTS])
    if path is None:
        examples += islice(publications, SHOWN_REJECTS - len(examples))
        return tuple(examples)
    with open_rejects(path) as file:
        for reject in subscriptions:
            file.write(format_reject(reject))
        for reject in publications:
            file.write(format_reject(reject))
            if len(examples) < SHOWN_REJECTS:
                examples.append(reject)
    return tuple(examples)
