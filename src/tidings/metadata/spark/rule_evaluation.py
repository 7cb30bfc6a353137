"""Evaluation of new rules on Spark: tasks read ranges of resources and match them against an index of the new rules.

    with SparkRuleEvaluator(session, store, Path(".tidings")) as evaluate:
        provider.add_rules(texts, "ana", evaluate=evaluate)

The rules are not stored yet, so they are identified by their places in a list. The transaction that adds them inserts
the results, evaluates later changes, and runs the joins (`metadata.sql.trigger_evaluation`).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import SparkSession

from tidings.matching.index.index import Index
from tidings.metadata.filter.trigger_index import TriggerIndex
from tidings.metadata.provider.log_applier import SchemaContext
from tidings.metadata.resources import Resource
from tidings.metadata.schema.schema_parser import parse_schema_file
from tidings.metadata.sql.rule_base import NamedRule
from tidings.metadata.sql.trigger_evaluation import TriggerResults
from tidings.spark.sources.position_reader import open_shared_store
from tidings.spark.stream.sink import BatchRows
from tidings.spark.worker_gc import freeze_memory
from tidings.store.store import Store

RESOURCES_PER_TASK = 5_000
MATCH_SCHEMA = pa.schema([("uri", pa.string()), ("place", pa.int32())])


@dataclass(frozen=True, slots=True)
class EvaluationJob:
    """The common input of tasks: the store, the schema file, the rules, and the ranges."""

    store: str
    media_type: str
    schema: bytes
    index: str
    results: str
    ranges: Sequence[tuple[str, str | None]]


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """The report of a task."""

    resources: int
    found: int
    file: str


class SparkRuleEvaluator:
    """Evaluator of new rules. Its files exist until it is closed; `reports` are those of the last tasks."""

    def __init__(
        self, session: SparkSession, store: Store, home: Path, size: int = RESOURCES_PER_TASK
    ) -> None:
        self.reports: Sequence[EvaluationReport] = ()
        self._session, self._store, self._size = session, store, size
        self._folder = home.absolute() / "evaluations" / uuid4().hex[:8]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def __call__(self, context: SchemaContext, rules: Sequence[NamedRule]) -> TriggerResults:
        """Evaluate the new triggering rules. The position is read first: later changes are evaluated again."""
        metadata = self._store.metadata
        position, new = metadata.position(), metadata.new_triggering_rules(context.schema, rules)
        results = self._folder / uuid4().hex[:8]
        index = TriggerIndex(context.schema, Index.create(results / "index"))
        index.add(dict(enumerate(new.values())))
        self.reports = self._run(context, results) if new else ()
        pairs = BatchRows([report.file for report in self.reports], lambda uri, place: (uri, place))
        return TriggerResults(position, list(new), pairs, index.find_satisfied)

    def _run(self, context: SchemaContext, results: Path) -> list[EvaluationReport]:
        ranges = self._store.metadata.resource_ranges(self._size)
        url = self._store.database.engine.url.render_as_string(hide_password=False)
        index = str(results / "index")
        job = EvaluationJob(url, context.file.media_type, context.file.body, index, str(results), ranges)
        numbers = self._session.range(0, len(ranges), 1, len(ranges))
        rows = numbers.mapInArrow(build_evaluation_stage(job), "report string").collect()
        return [EvaluationReport(**json.loads(row.report)) for row in rows]


def build_evaluation_stage(job: EvaluationJob) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return the function for `mapInArrow`: numbers of ranges in, JSON reports out."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        freeze_memory()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                metadata = open_shared_store(job.store).metadata
                report = _match(job, metadata.resources_between(*job.ranges[number]))
                yield pa.RecordBatch.from_pydict({"report": [json.dumps(asdict(report))]})

    return run


def _match(job: EvaluationJob, resources: Sequence[Resource]) -> EvaluationReport:
    triggers = _triggers(job.media_type, job.schema, job.index)
    matches = list(triggers.find_satisfied(resources))
    if not matches:
        return EvaluationReport(len(resources), 0, "")
    uris, places = zip(*matches, strict=True)
    path = str(Path(job.results) / f"found-{uuid4().hex}.arrow")
    with pa.ipc.new_stream(path, MATCH_SCHEMA) as file:
        file.write_batch(pa.RecordBatch.from_pydict({"uri": uris, "place": places}, schema=MATCH_SCHEMA))
    return EvaluationReport(len(resources), len(uris), path)


@lru_cache(maxsize=2)
def _triggers(media_type: str, schema: bytes, index: str) -> TriggerIndex:
    """Kept from task to task."""
    return TriggerIndex(parse_schema_file(schema, media_type), Index.open(index))
