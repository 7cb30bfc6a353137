"""Stream of the metadata log: tasks parse and check entries, and the driver applies them.

For each batch, the driver updates the trigger index, the tasks parse documents and match them (`metadata_task`), and
one transaction applies their results: documents, results of rules, notifications, and the position. Spark may repeat a
batch, and other processes may apply entries in between: applied entries are skipped, under the lock.

    <home>/segments/metadata/state.json     the folder and version of the index, and its last rule
    <home>/segments/metadata/<folder>/      the index

Rule numbers only grow, so new rules have greater numbers. Removed rules are detected when a resource satisfies them:
checking all of them before each batch would cost more. Schemas only grow, too, so compiled rules stay valid.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from tidings.core.atomic_files import write_atomically
from tidings.errors import BudgetExceeded, SetupError
from tidings.matching.index.compaction import CompactionWorker
from tidings.matching.index.index import Index
from tidings.metadata.documents import Document
from tidings.metadata.filter.trigger_index import TriggerIndex
from tidings.metadata.log import Operation
from tidings.metadata.provider.log_applier import SchemaCache, SchemaContext, apply_entries
from tidings.metadata.provider.provider import DEFAULT_BATCH_SIZE
from tidings.metadata.resources import Resource
from tidings.metadata.rules.atomic import TriggeringRule
from tidings.metadata.schema.model import Schema
from tidings.metadata.spark.metadata_source import MetadataLogSource
from tidings.metadata.spark.metadata_task import (
    DocumentResult,
    MetadataJob,
    MetadataTaskReport,
    build_metadata_stage,
    build_warmup_stage,
    document_result_from_row,
)
from tidings.metadata.sql.metadata_reader import SchemaFile
from tidings.metadata.sql.transaction import MetadataTransaction, RegistrationResult
from tidings.spark import checkpoint
from tidings.spark.sources.admission_control import ONCE
from tidings.spark.stream.budget import DEFAULT_BUDGET, Budget
from tidings.spark.stream.isolation import Isolation, Span, Verdicts
from tidings.spark.stream.match_output import ROWS
from tidings.spark.stream.sink import BatchRows
from tidings.spark.stream.stream_events import MetadataProgress
from tidings.spark.stream.warm_up import MANY
from tidings.store.store import Store, open_store

_STATE = "state.json"


@dataclass(frozen=True, slots=True)
class IndexState:
    """The state of an index: its store, and the last rule number."""

    store: str
    folder: str
    index: int
    last: int


class LiveTriggerIndex:
    """An index that is kept up to date with the triggering rules of a store."""

    def __init__(self, folder: Path, store: Store) -> None:
        self._folder, self._store = folder, store
        self.index, self._state = self._open_index()
        self._merger = CompactionWorker(self.index)

    @property
    def last(self) -> int:
        """The greatest number of a rule in the index."""
        return self._state.last

    @property
    def folder(self) -> str:
        return str(self.index.folder.absolute())

    def refresh(self, schema: Schema, removed: Collection[int] = ()) -> None:
        """Add new rules and remove deleted ones; merge segments where that is worthwhile."""
        new = self._store.metadata.triggering_rules(self.last)
        if new or removed:
            self._merger.change(map(str, removed), TriggerIndex(schema, self.index).compile_rules(new))
        else:
            self._merger.step()
        self._save_state(max(self.last, *new) if new else self.last)

    def tidy(self) -> None:
        """Delete files that only earlier batches used."""
        self.index.collect(keep_versions=1)

    def _open_index(self) -> tuple[Index, IndexState]:
        """Open the index of an earlier run if it belongs to this store; otherwise create an empty one."""
        path = self._folder / _STATE
        state = IndexState(**json.loads(path.read_text())) if path.exists() else None
        if (
            state
            and state.store == self._store.database.name
            and state.last <= self._store.metadata.last_rule_number()
        ):
            try:
                return Index.open(self._folder / state.folder, state.index), state
            except SetupError:  # it was deleted; the store has all its rules
                pass
        for other in self._folder.glob("index-*"):
            shutil.rmtree(other)
        folder = f"index-{uuid4().hex[:8]}"
        index = Index.create(self._folder / folder)
        return index, self._write_state(IndexState(self._store.database.name, folder, index.version, 0))

    def _save_state(self, last: int) -> None:
        state = replace(self._state, index=self.index.version, last=last)
        if state != self._state:
            self._state = self._write_state(state)

    def _write_state(self, state: IndexState) -> IndexState:
        write_atomically(self._folder / _STATE, json.dumps(asdict(state)))
        return state


# Results of tasks, used when entries are applied.
#
# Entries are applied as by a provider without Spark, which parses each document and matches its
# resources. Here both were done before. Only rules that the tasks have not evaluated remain: those added since
# the index was written, and documents that they could not parse.


class CachedTriggerIndex(TriggerIndex):
    """An index with cached results for some resources.

    `index` has the rules of the tasks, up to the number `last`. Later rules go into a separate index, the only one that
    resources seen by tasks are matched against. `removed` are the numbers of removed rules.
    """

    def __init__(self, schema: Schema, index: Index, last: int, results: Iterable[DocumentResult]) -> None:
        super().__init__(schema, index, last)
        self.removed: set[int] = set()
        self._later_index: Index | None = None
        # By id(), because two versions of a resource have one URI. The value holds the resource, which keeps its id.
        self._evaluated: dict[int, tuple[Resource, Sequence[int]]] = {}
        for result in results:
            pairs = zip(result.document.resources, result.rules, strict=True)
            self._evaluated |= {id(resource): (resource, rules) for resource, rules in pairs}

    def with_schema(self, schema: Schema) -> CachedTriggerIndex:
        """Return the index for an extended schema, under which the results stay valid."""
        self._schema = schema
        return self

    def add(self, rules: Mapping[int, TriggeringRule]) -> None:
        if rules:
            self._later_index = self._later_index or Index.create()
            self._later_index.add(self.compile_rules(rules))
            self.last = max(self.last, *rules)

    def remove(self, numbers: Iterable[int]) -> None:
        self.removed.update(numbers)

    def find_satisfied(self, resources: Collection[Resource]) -> Iterator[tuple[str, int]]:
        unknown = [resource for resource in resources if id(resource) not in self._evaluated]
        for resource in resources:
            for rule in self._evaluated.get(id(resource), (resource, ()))[1]:
                yield resource.uri, rule
        if unknown:
            yield from super().find_satisfied(unknown)
        if self._later_index:
            yield from TriggerIndex(self._schema, self._later_index).find_satisfied(resources)


class PreparedSchemas(SchemaCache):
    """Schemas with cached results of triggering rules."""

    def __init__(self, schemas: SchemaCache, triggers: CachedTriggerIndex) -> None:
        self._schemas, self._triggers = schemas, triggers

    def context(self, file: SchemaFile | None) -> SchemaContext:
        context = self._schemas.context(file)
        return replace(context, build_triggers=self._triggers.with_schema)


@dataclass(frozen=True, slots=True)
class MetadataStream:
    """The configuration of the stream."""

    home: Path
    store: str
    most: int = DEFAULT_BATCH_SIZE
    budget: Budget = DEFAULT_BUDGET
    once: bool = False

    name = "tidings metadata"

    @property
    def checkpoint(self) -> Path:
        return self.home / "checkpoint" / "metadata"

    @property
    def status(self) -> Path:
        return self.home / "metadata.json"

    def rows(self, session: SparkSession) -> DataFrame:
        """Return the log as a streaming DataFrame."""
        session.dataSource.register(MetadataLogSource)
        lock = str(self.home / checkpoint.METADATA_LOCK)
        options = {
            "publications": str(self.most),
            "lock": lock,
            "store_url": self.store,
            ONCE: str(self.once),
        }
        return session.readStream.format(MetadataLogSource.name()).options(**options).load()

    def open(self) -> MetadataBatchProcessor:
        return MetadataBatchProcessor(self)

    def progress(self, fields: dict[str, Any]) -> MetadataProgress:
        return MetadataProgress(**fields)


class MetadataBatchProcessor:
    """Processor of batches of the log, which keeps the index between batches."""

    def __init__(self, stream: MetadataStream) -> None:
        self._stream = stream
        self._store: Store = open_store(stream.store)
        self._schemas = SchemaCache()
        self._triggers = LiveTriggerIndex(stream.home / "segments" / "metadata", self._store)
        self._removed: Collection[int] = ()
        self._progress = MetadataProgress()

    def close(self) -> None:
        self._store.close()

    def process(self, rows: DataFrame, batch: int) -> None:
        """Process one batch: update the index, parse in tasks, apply the results, and report."""
        started = perf_counter()
        results = self._stream.home / "batches" / f"metadata-{batch}"
        results.mkdir(parents=True, exist_ok=True)
        after, upto = self._range(batch)
        done, entries = [], 0
        while after < upto:
            file = self._store.metadata.schema()
            end = upto if file is not None else self._first_schema(rows, after, upto)
            reports, refused = self._read(rows, file, results, after, end)
            entries += sum(each.entries for each in reports)
            done += self._apply(file, reports, refused)
            after = end
        shutil.rmtree(results)
        self._triggers.tidy()
        self._progress = self._build_progress(batch, entries, done, started)
        write_atomically(self._stream.status, json.dumps(asdict(self._progress)), private=True)

    def _range(self, batch: int) -> tuple[int, int]:
        """Return the positions before and at the end of a batch."""
        start, upto = (
            checkpoint.read_planned_position(self._stream.checkpoint, each) for each in (batch - 1, batch)
        )
        assert upto is not None, "Spark stores it before it requests the batch"
        return start or 0, upto

    def _first_schema(self, rows: DataFrame, after: int, upto: int) -> int:
        """Return the end of a batch without a schema: up to the next schema in it."""
        schemas = rows.where(f"what = '{Operation.SCHEMA.value}' and position > {after}")
        position = schemas.agg({"position": "min"}).collect()[0][0]
        return upto if position is None else int(position)

    def _read(
        self, rows: DataFrame, file: SchemaFile | None, results: Path, after: int, upto: int
    ) -> tuple[list[MetadataTaskReport], Mapping[int, BudgetExceeded]]:
        """Parse entries in tasks, if there is a schema. Entries that no task can finish are isolated and not parsed."""
        job = None
        if file is not None:
            self._triggers.refresh(self._schemas.context(file).schema, self._removed)
            self._removed = ()
            index = self._triggers
            job = MetadataJob(file.media_type, file.body, index.folder, index.index.version, str(results))
            job = replace(job, budget=self._stream.budget)
        isolation = Isolation[MetadataTaskReport](
            partial(_parse_span, rows, job), partial(_warm_up, rows, job), results, self._stream.budget
        )
        return isolation.run(after, upto), isolation.verdicts.publications

    def _apply(
        self,
        file: SchemaFile | None,
        reports: Sequence[MetadataTaskReport],
        refused: Mapping[int, BudgetExceeded],
    ) -> list[RegistrationResult]:
        """Apply the results of tasks, in one transaction unless the log is behind the checkpoint."""
        upto = max((report.last for report in reports), default=0)
        if file is None:
            return self._apply_until(upto, self._schemas, {}, refused)
        results = list(BatchRows([report.file for report in reports], document_result_from_row))
        triggers = CachedTriggerIndex(
            self._schemas.context(file).schema, self._triggers.index, self._triggers.last, results
        )
        documents = {each.position: each.document for each in results}
        done = self._apply_until(upto, PreparedSchemas(self._schemas, triggers), documents, refused)
        self._removed = triggers.removed
        return done

    def _apply_until(
        self,
        upto: int,
        schemas: SchemaCache,
        documents: Mapping[int, Document],
        refused: Mapping[int, BudgetExceeded],
    ) -> list[RegistrationResult]:
        def apply_next(transaction: MetadataTransaction) -> RegistrationResult | None:
            """Apply pending entries; the transaction locks the position."""
            missing = min(upto - transaction.position(), self._stream.most)
            entries = transaction.pending(missing) if missing > 0 else []
            return apply_entries(transaction, schemas, entries, documents, refused) if entries else None

        results = []
        while result := self._store.metadata.transact(apply_next):
            results.append(result)
        return results

    def _build_progress(
        self, batch: int, entries: int, done: Sequence[RegistrationResult], started: float
    ) -> MetadataProgress:
        previous, position = self._progress, self._store.metadata.position()
        now = {
            "entries": entries,
            "entered": sum(len(each.outcome.entered) for each in done),
            "changed": sum(len(each.outcome.changed) for each in done),
            "left": sum(len(each.outcome.left) for each in done),
            "dead_letters": sum(each.refused for each in done),
        }
        return MetadataProgress(
            batch=batch,
            position=position,
            lag=max(0, self._store.metadata.log.head() - position),
            seconds=perf_counter() - started,
            rules=self._triggers.index.size,
            segments=self._triggers.index.segments,
            **now,
            **{f"total_{name}": getattr(previous, f"total_{name}") + count for name, count in now.items()},
        )


def _parse_span(
    rows: DataFrame, job: MetadataJob | None, span: Span, verdicts: Verdicts, folder: Path
) -> list[MetadataTaskReport]:
    """Parse a part of a batch in tasks, without rejected entries."""
    if job is not None:
        together = 1 if span.is_careful else ROWS
        job = replace(job, results=str(folder), refused=frozenset(verdicts.publications), together=together)
    selected = rows.where(f"position > {span.after} and position <= {span.upto}")
    rows = selected.mapInArrow(build_metadata_stage(job), "report string").collect()
    return [report for row in rows if (report := MetadataTaskReport(**json.loads(row.report))).entries]


def _warm_up(rows: DataFrame, job: MetadataJob | None) -> int:
    """Warm up a worker on each core, and return their number."""
    return len(rows.sparkSession.range(MANY).mapInArrow(build_warmup_stage(job), "done boolean").collect())
