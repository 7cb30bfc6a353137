"""`write_matches`: match a DataFrame and write the matches as Parquet files, in the tasks that find them.

    from tidings.spark import write_matches

    written = write_matches(events, subscriptions, "s3://bucket/matches")
    written.publications, written.matches, written.rejects

The rows are those of `match(events, subscriptions).write.parquet(path)`, without the way of each match through the JVM
and Spark's Parquet writer. Tasks write files into a folder beside the result and report them. The driver moves the
reported files into the result when all tasks have finished, so a retried task counts once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import reduce
from pathlib import Path
from typing import Literal
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from tidings.errors import InputError
from tidings.matching.index.index import Index
from tidings.matching.parquet import Dictionary
from tidings.model import Reject
from tidings.spark.batch.output import (
    PUBLICATION,
    SUBSCRIPTION,
    ChunkOutput,
    ChunkReport,
    SubscriptionColumn,
    check_rejects_file,
    check_separate,
    check_target_free,
    publish_result,
    working_folder,
    write_rejects,
)
from tidings.spark.dataframe.environment import explain_memory
from tidings.spark.dataframe.match import ID, PublicationColumns, check_choice
from tidings.spark.dataframe.match_stage import NUMBERS, BatchMatch, MatchStage
from tidings.spark.dataframe.subscription_set import Subscriptions, SubscriptionsLike
from tidings.spark.sources.files import Location
from tidings.spark.worker_gc import freeze_memory

SUBSCRIBER = "subscriber"
COLUMNS = (PUBLICATION, SUBSCRIPTION, SUBSCRIBER)
OVERWRITE = "overwrite"
Mode = Literal["error", "overwrite"]
OnError = Literal["separate", "fail"]


@dataclass(frozen=True, slots=True)
class WrittenMatches:
    """Counts of what was matched and written. `examples` are the first rejects."""

    publications: int
    matches: int
    rejects: int
    rejected_subscriptions: int
    examples: tuple[Reject, ...] = ()


def write_matches(
    events: DataFrame,
    subscriptions: SubscriptionsLike,
    path: str | Path,
    *,
    mode: Mode = "error",
    rejects: str | Path | None = None,
    id: str | None = None,
    value: str | None = None,
    format: str | None = None,
    id_field: str = ID,
    on_error: OnError = "separate",
    groups: int = 1,
) -> WrittenMatches:
    """Match a batch DataFrame, write the matches to a folder of Parquet files, and return counts.

    The files have the columns `publication`, `subscription` and `subscriber`. `path` is a path or URI that the driver
    and all executors can write to (`s3://`, `gs://`, `hdfs://`). Nothing is visible there until the job has succeeded;
    `_SUCCESS` is created last. With `mode="overwrite"` an earlier result is replaced at that moment.

    `rejects` is a file on the driver's machine for rejected publications and subscriptions, as lines of JSON. With
    `on_error="fail"` the first rejected publication fails the job. The other arguments are those of `match`.
    """
    check_choice("mode", mode, Mode)
    check_choice("on_error", on_error, OnError)
    if events.isStreaming:
        raise InputError(
            "write_matches writes batches, and this DataFrame is a stream",
            hint="match(events, subscriptions).writeStream, or write_matches in foreachBatch",
        )
    out, rejects_file = Location.of(path), None if rejects is None else Path(rejects)
    check_target_free(out, path, mode == OVERWRITE, 'mode="overwrite"')
    if mode == OVERWRITE:
        check_separate(out.uri, events.inputFiles())
    check_rejects_file(rejects_file)
    compiled = Subscriptions.of(subscriptions)
    source = PublicationColumns.of(events, value, format)
    publications = source.select(events, id, id_field, (), compiled.attributes)
    parts = compiled.environment(events.sparkSession).split(groups)
    stages = [
        MatchStage(part, source.media_type, id_field, NUMBERS, (), on_error == "fail") for part in parts
    ]
    with working_folder(out) as work:
        reports = _run(publications, stages, work)
        publish_result(work, out, reports, mode == OVERWRITE, COLUMNS)
        examples = write_rejects(rejects_file, compiled.rejects, work, reports)
    return WrittenMatches(
        sum(report.events for report in reports),
        sum(report.matches for report in reports),
        sum(report.rejects for report in reports),
        len(compiled.rejects),
        examples,
    )


def _run(publications: DataFrame, stages: list[MatchStage], work: Location) -> list[ChunkReport]:
    """Run the tasks; return the report of the successful attempt of each."""
    written = [
        publications.mapInArrow(WriteStage(stage, work.uri, counts=number == 0), "report string")
        for number, stage in enumerate(stages)
    ]
    rows = reduce(DataFrame.unionByName, written).collect()
    return [ChunkReport(**json.loads(row.report)) for row in rows]


@dataclass(frozen=True)
class WriteStage:
    """Matches Arrow batches in a task and writes the matches to a file in a folder. Its output is one report.

    Each group of segments decodes all publications. Only a stage that `counts` counts them and those that are rejected;
    pairs that cannot be decided belong to one group.
    """

    stage: MatchStage
    folder: str
    counts: bool = True

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_memory()
        context = TaskContext.get()
        report = ChunkReport(context.partitionId() if context else 0, 0)
        with explain_memory(self.stage.environment):
            index, decoder = self.stage.environment.open(self.stage.id_field)
            with ChunkOutput(Location(self.folder), report, *_build_columns(index)) as output:
                for batch in batches:
                    if batch.num_rows:
                        self._write(BatchMatch(self.stage, index, decoder, batch), output)
        yield pa.RecordBatch.from_pydict({"report": [json.dumps(asdict(report))]})

    def _write(self, batch: BatchMatch, output: ChunkOutput) -> None:
        for pairs in batch.run_numbered():
            output.write(*pairs)
        for problem in batch.take_problems():
            if self.counts or problem.subscription is not None:
                output.reject(problem.publication, {}, problem.error, problem.subscription)
        if self.counts:
            output.report.events += batch.publications


_columns: WeakKeyDictionary[Index, tuple[SubscriptionColumn, ...]] = WeakKeyDictionary()


def _build_columns(index: Index) -> tuple[SubscriptionColumn, ...]:
    """Return the columns of subscriptions and subscribers. A worker runs many tasks with one index."""
    if index not in _columns:
        subscribers = index.subscribers.dictionary_encode()
        _columns[index] = (
            SubscriptionColumn(SUBSCRIPTION, Dictionary(index.ids)),
            SubscriptionColumn(
                SUBSCRIBER, Dictionary(subscribers.dictionary), subscribers.indices.to_numpy()
            ),
        )
    return _columns[index]
