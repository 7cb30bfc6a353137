"""Writers of the data source: tasks publish their rows into the journal.

    row -> parse and validate, as any ingest -> id -> append to the journal, or dead letter

Every publication has an id that repeated work gives it again: the column `id`, the field `id_field` of an event, the id
of a CloudEvent, or a digest of its content. So a task that is retried or runs twice, a micro-batch that is repeated and
a job that is started again publish nothing twice, and the writers need no commit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from tidings.core import suggest
from tidings.errors import InputError
from tidings.events.schema.event_schema import EventSchema
from tidings.ingest.publisher import append_items, read_items
from tidings.ingest.submission import UNLIMITED, Submission, SubmissionItem
from tidings.kinds import find_kind, register, registered_addresses
from tidings.model import Publication, content_id
from tidings.spark.data_source.options import DEAD_LETTER, FAIL, Options, WriteOptions, open_task_store
from tidings.spark.data_source.publication_rows import PublicationRow, RowLayout
from tidings.spark.worker_gc import freeze_memory
from tidings.store.dead_letters import DeadLetter
from tidings.store.store import Store

SOURCE = "spark"
"""The source of dead letters."""

CHUNK_ROWS, CHUNK_BYTES = 5_000, 8 << 20
"""Publications that are appended in one transaction, which locks the journal."""


@dataclass
class PublishCounts(WriterCommitMessage):  # type: ignore[misc]
    """Publications of a task: new ones, those that the journal had already, and rejected ones."""

    new: int = 0
    repeated: int = 0
    rejected: int = 0


class OfferedItem(NamedTuple):
    """A publication with its id, or the problem of one; the row that it comes from, and its number in that row."""

    row: PublicationRow
    number: int
    name: str
    item: SubmissionItem


class RowPublisher:
    """Publishes the rows of a task."""

    def __init__(self, schema: StructType, options: WriteOptions) -> None:
        self._schema, self._options = schema, options
        self._kinds = registered_addresses()
        RowLayout.of(schema)  # raise before there are tasks

    def publish(self, batches: Iterable[pa.RecordBatch]) -> PublishCounts:
        """Publish Arrow batches, in chunks that become durable one after the other."""
        freeze_memory()
        register(*self._kinds)
        layout, store, counts = (
            RowLayout.of(self._schema),
            open_task_store(self._options.url),
            PublishCounts(),
        )
        rows = (row for batch in batches for row in layout.rows(batch))
        for chunk in _iter_chunks(rows):
            self._publish_chunk(store, chunk, counts)
        return counts

    def _publish_chunk(self, store: Store, rows: Sequence[PublicationRow], counts: PublishCounts) -> None:
        """Publish some rows; reject those that are invalid, or whose id belongs to another publication."""
        schema = store.schemas.load()
        with suggest.bounded_search():
            read = partial(
                _read_row, schema=None if schema.is_empty else schema, id_field=self._options.id_field
            )
            offered = [item for row in rows for item in read(row)]
        if self._options.on_error != DEAD_LETTER:
            _raise_first([(each, each.item) for each in offered])
        outcomes = append_items(store, [each.item for each in offered])
        pairs = [*zip(offered, outcomes, strict=True)]
        if self._options.on_error != DEAD_LETTER:
            _raise_first(pairs)
        letters = [_build_letter(each, out) for each, out in pairs if isinstance(out, InputError)]
        if letters:
            store.dead_letters.add(SOURCE, letters)
        results = [out for out in outcomes if not isinstance(out, InputError)]
        counts.new += sum(result.new for result in results)
        counts.repeated += sum(not result.new for result in results)
        counts.rejected += len(letters)


class BatchWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """Writer of a batch."""

    def __init__(self, publisher: RowPublisher) -> None:
        self._publisher = publisher

    def write(self, iterator: Iterator[pa.RecordBatch]) -> PublishCounts:
        return self._publisher.publish(iterator)


class StreamWriter(DataSourceStreamArrowWriter):  # type: ignore[misc]
    """Writer of micro-batches."""

    def __init__(self, publisher: RowPublisher) -> None:
        self._publisher = publisher

    def write(self, iterator: Iterator[pa.RecordBatch]) -> PublishCounts:
        return self._publisher.publish(iterator)


def _iter_chunks(rows: Iterable[PublicationRow]) -> Iterator[list[PublicationRow]]:
    chunk: list[PublicationRow] = []
    size = 0
    for row in rows:
        chunk.append(row)
        size += len(row.body or b"")
        if len(chunk) == CHUNK_ROWS or size >= CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _read_row(row: PublicationRow, schema: EventSchema | None, id_field: str | None) -> Iterator[OfferedItem]:
    """Parse and validate a row, which may hold several publications, and give each an id."""
    if row.body is None or row.problem is not None:
        items: Sequence[SubmissionItem] = [row.problem or InputError("the row has no body")]
    else:
        submission = Submission(
            row.body, row.media_type, row.id, None, audience=row.audience, limits=UNLIMITED
        )
        kind = find_kind(row.media_type)
        if row.id is None and kind is not None and kind.has_id_field:
            submission = replace(submission, id_field=id_field)
        items = read_items(submission, schema)
    for number, item in enumerate(items):
        if isinstance(item, Publication):
            item = replace(item, id=item.id or content_id(item.body, item.audience))
            yield OfferedItem(row, number, item.id, item)
        else:
            yield OfferedItem(row, number, row.id or content_id(row.body or b"", row.audience), item)


def _raise_first(outcomes: Iterable[tuple[OfferedItem, Any]]) -> None:
    """Raise the first problem, headed by the publication's id."""
    for offered, outcome in outcomes:
        if isinstance(outcome, InputError):
            raise outcome.with_place(f"publication {offered.name}: {outcome.what}", outcome.place)


def _build_letter(offered: OfferedItem, problem: InputError) -> DeadLetter:
    """Build a dead letter, with the body of the publication, or else that of its row."""
    row, item = offered.row, offered.item
    body = item.body if isinstance(item, Publication) else row.body
    content = [row.id or "", row.media_type, row.audience or "", str(offered.number)]
    key = hashlib.blake2b("\0".join(content).encode(), digest_size=16)
    key.update(body or b"")
    return DeadLetter(offered.name, problem.headline(), problem.facts(), body=body, key=key.hexdigest())


def build_writer(options: Options, schema: StructType, overwrite: bool) -> BatchWriter:
    """Build the writer of a batch, which fails at the first invalid row unless the option says otherwise."""
    _check_mode(overwrite, 'mode("append")')
    return BatchWriter(RowPublisher(schema, WriteOptions.of(options, FAIL)))


def build_stream_writer(options: Options, schema: StructType, overwrite: bool) -> StreamWriter:
    """Build the writer of micro-batches. Invalid rows become dead letters: they would stop the stream for good."""
    _check_mode(overwrite, 'outputMode("append")')
    return StreamWriter(RowPublisher(schema, WriteOptions.of(options, DEAD_LETTER)))


def _check_mode(overwrite: bool, accepted: str) -> None:
    if overwrite:
        raise InputError("a journal can only be appended to", accepted=accepted)
