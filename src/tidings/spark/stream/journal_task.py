"""Tasks that read ranges of the journal from the store and match them.

The rows of the streaming source would be the same, but would pass through a second Python process per task and through
the JVM. The Spark plan is the same for every batch and is made once: a request file holds what differs. Each report
names the request that its task read, so that a task which read an outdated file, on a drive that shows writes late, is
detected.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from tidings.core.atomic_files import temporary_beside
from tidings.errors import SetupError
from tidings.spark.sources.position_reader import PositionRange, cut_ranges, read_range
from tidings.spark.stream.match_output import MatchReport
from tidings.spark.stream.match_task import MatchJob, build_match_stage


@dataclass(frozen=True, slots=True)
class TaskRanges:
    """The request to the tasks of one batch: task number `i` matches `ranges[i]`."""

    name: str
    job: MatchJob
    ranges: Sequence[PositionRange]


class JournalTasks:
    """Matches ranges of the journal in tasks. `request_file` must be visible to all of them."""

    def __init__(self, store: str, request_file: Path) -> None:
        self._store, self._request_file = store, request_file
        self._planned: dict[int, DataFrame] = {}

    def match(self, session: SparkSession, job: MatchJob, after: int, upto: int) -> list[MatchReport]:
        """Match the publications after `after`, up to and including `upto`."""
        request = TaskRanges(uuid4().hex, job, cut_ranges(after, upto))
        if not request.ranges:
            return []
        self._write(request)
        reports = [json.loads(row.report) for row in self._plan(session, len(request.ranges)).collect()]
        names = [report.pop("asked") for report in reports]
        if names != [request.name] * len(request.ranges):
            raise SetupError(
                "a task matched a different batch than the one requested",
                where=str(self._request_file),
                hint="put the home folder on a drive where all machines see a write immediately",
            )
        return [MatchReport(**report) for report in reports]

    def _write(self, request: TaskRanges) -> None:
        """Write the request file. It is not synced: a repeated batch writes it again."""
        with temporary_beside(self._request_file) as new:
            new.write_bytes(pickle.dumps(request))
            new.replace(self._request_file)

    def _plan(self, session: SparkSession, tasks: int) -> DataFrame:
        if tasks not in self._planned:
            numbers = session.range(0, tasks, 1, tasks)
            function = _build_stage(self._store, str(self._request_file))
            self._planned[tasks] = numbers.mapInArrow(function, "report string")
        return self._planned[tasks]


def _build_stage(store: str, request_file: str) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Build the function for `mapInArrow`: numbers of ranges in, one JSON report for each out.

    A number without a range gives no report: an outdated request file may have fewer ranges.
    """

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        request: TaskRanges = pickle.loads(Path(request_file).read_bytes())
        for number in [number for batch in batches for number in batch.column(0).to_pylist()]:
            for part in request.ranges[number : number + 1]:
                yield from build_match_stage(request.job, asked=request.name)(read_range(store, part))

    return run
