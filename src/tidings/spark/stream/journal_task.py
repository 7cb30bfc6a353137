"""Tasks that read ranges of the journal from the store and match them.

The rows of the streaming source would be the same, but would pass through a second Python process per task and through
the JVM. The Spark plan is the same for every batch and is made once; what differs travels as a local property of
Spark's job, which Spark gives to each of its tasks. Spark Connect has no local properties: there, each batch has a plan
of its own, which contains the request. Decision 0059 has the measurements.
"""

from __future__ import annotations

import json
import pickle
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark import TaskContext
from pyspark.sql import DataFrame, Row, SparkSession

from tidings.spark.sources.position_reader import PositionRange, cut_ranges, read_range
from tidings.spark.stream.match_output import MatchReport
from tidings.spark.stream.match_task import MatchJob, build_match_stage

REQUEST_PROPERTY = "tidings.journal.request"


@dataclass(frozen=True, slots=True)
class TaskRanges:
    """The request to the tasks of one batch: task number `i` matches `ranges[i]`."""

    job: MatchJob
    ranges: Sequence[PositionRange]

    def encode(self) -> str:
        return b64encode(pickle.dumps(self)).decode()

    @classmethod
    def of_task(cls) -> TaskRanges:
        """Return the request of the job that this task belongs to."""
        context = TaskContext.get()
        encoded = context and context.getLocalProperty(REQUEST_PROPERTY)
        assert encoded, "the driver sets the property before it starts the job"
        request: TaskRanges = pickle.loads(b64decode(encoded))
        return request


class JournalTasks:
    """Matches ranges of the journal of a store in tasks."""

    def __init__(self, store: str) -> None:
        self._store = store
        self._plans: dict[int, DataFrame] = {}

    def match(self, session: SparkSession, job: MatchJob, after: int, upto: int) -> list[MatchReport]:
        """Match the publications after `after`, up to and including `upto`."""
        request = TaskRanges(job, cut_ranges(after, upto))
        rows = self._run(session, request) if request.ranges else []
        return [MatchReport(**json.loads(row.report)) for row in rows]

    def _run(self, session: SparkSession, request: TaskRanges) -> list[Row]:
        tasks = len(request.ranges)
        context = getattr(session, "sparkContext", None)
        if context is None:  # Spark Connect
            rows: list[Row] = _plan(session, tasks, _build_stage(self._store, request)).collect()
            return rows
        if tasks not in self._plans:
            self._plans[tasks] = _plan(session, tasks, _build_stage(self._store))
        context.setLocalProperty(REQUEST_PROPERTY, request.encode())
        try:
            rows = self._plans[tasks].collect()
        finally:
            context.setLocalProperty(REQUEST_PROPERTY, None)
        return rows


def _plan(session: SparkSession, tasks: int, stage: Callable[[Iterable[Any]], Iterator[Any]]) -> DataFrame:
    return session.range(0, tasks, 1, tasks).mapInArrow(stage, "report string")


def _build_stage(store: str, request: TaskRanges | None = None) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Build the function for `mapInArrow`: numbers of ranges in, one JSON report for each out.

    Without a request, tasks find it in the properties of their job.
    """

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        job_request = request or TaskRanges.of_task()
        for number in [number for batch in batches for number in batch.column(0).to_pylist()]:
            yield from build_match_stage(job_request.job)(read_range(store, job_request.ranges[number]))

    return run
