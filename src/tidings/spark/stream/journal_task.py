"""Ranges of the journal, matched by Spark's tasks, which read them from the store themselves.

The rows of the streaming source would come to the same, by way of a second Python process for each task and of the JVM.
And what Spark is asked for is the same with every batch, so that it is planned once: what differs is in a file. Each
report has the name of what its task found there, so a task that saw an older file, on a drive that is slow to tell of
a new one, is noticed.
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
from tidings.spark.sources.journal import PositionRange, cut_ranges, read_range
from tidings.spark.stream.match_task import MatchJob, MatchReport, build_match_stage


@dataclass(frozen=True, slots=True)
class TaskRanges:
    """What the tasks of one batch are to do: each with the range of its number."""

    name: str
    job: MatchJob
    ranges: Sequence[PositionRange]


class JournalTasks:
    """Has tasks match what stands in the journal. `note` is the file that tells them what; they have to see it."""

    def __init__(self, store: str, note: Path) -> None:
        self._store, self._note = store, note
        self._planned: dict[int, DataFrame] = {}

    def match(self, session: SparkSession, job: MatchJob, after: int, upto: int) -> list[MatchReport]:
        """What became of the publications after a position, up to and with another one."""
        asked = TaskRanges(uuid4().hex, job, cut_ranges(after, upto))
        if not asked.ranges:
            return []
        self._write(asked)
        said = [json.loads(row.report) for row in self._plan(session, len(asked.ranges)).collect()]
        names = [each.pop("asked") for each in said]
        if names != [asked.name] * len(asked.ranges):
            raise SetupError(
                "a task has matched another batch than the one it was asked for",
                where=str(self._note),
                hint="the home folder has to be on a drive on which all machines see what is written at once",
            )
        return [MatchReport(**each) for each in said]

    def _write(self, asked: TaskRanges) -> None:
        """Write what the tasks are to do. It is not synced: a batch that is repeated writes it again."""
        with temporary_beside(self._note) as new:
            new.write_bytes(pickle.dumps(asked))
            new.replace(self._note)

    def _plan(self, session: SparkSession, tasks: int) -> DataFrame:
        if tasks not in self._planned:
            numbers = session.range(0, tasks, 1, tasks)
            function = _matching(self._store, str(self._note))
            self._planned[tasks] = numbers.mapInArrow(function, "report string")
        return self._planned[tasks]


def _matching(store: str, note: str) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The function for `mapInArrow`: numbers of ranges in, one report in JSON for each out; none for a range that is
    not there, of which an older file may have had fewer.
    """

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        asked: TaskRanges = pickle.loads(Path(note).read_bytes())
        for number in [number for batch in batches for number in batch.column(0).to_pylist()]:
            for part in asked.ranges[number : number + 1]:
                yield from build_match_stage(asked.job, asked=asked.name)(read_range(store, part))

    return run
