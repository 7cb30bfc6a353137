"""Ingest of a source: publishes its rows into the journal of the store, whose stream notifies subscribers.

Each publication has an id that a repeated micro-batch gives it again, so nothing is published twice. Rows that cannot
be published become dead letters.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from time import perf_counter
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from tidings.core.atomic_files import write_atomically
from tidings.spark.data_source.options import DEAD_LETTER, ID_FIELD, ON_ERROR
from tidings.spark.data_source.publication_rows import AUDIENCE, BODIES, ID, MEDIA_TYPE
from tidings.spark.data_source.source import FORMAT, TidingsSource
from tidings.spark.dataframe.match import PublicationColumns
from tidings.spark.stream.stream_events import TableProgress
from tidings.spark.stream.table_stream.processor import add_batch, explain_failures

if TYPE_CHECKING:
    from tidings.spark.stream.table_stream.definition import TableStream


class IngestProcessor:
    """Processor of the micro-batches of a stream into the journal."""

    def __init__(self, stream: TableStream) -> None:
        self._stream = stream
        self._progress = TableProgress()
        self._is_registered = False

    def close(self) -> None:
        """Do nothing: tasks write to the store."""

    def process(self, rows: DataFrame, batch: int) -> None:
        """Publish a micro-batch and report the progress."""
        began = perf_counter()
        read = Observation("publications")
        with explain_failures():
            self._publish(rows.observe(read, F.count(F.lit(1)).alias("rows")))
        now = TableProgress(batch=batch, publications=int(read.get["rows"]), seconds=perf_counter() - began)
        self._progress = add_batch(self._progress, now)
        write_atomically(self._stream.status, json.dumps(asdict(self._progress)), private=True)

    def _publish(self, rows: DataFrame) -> None:
        publications = select_publications(rows, self._stream)
        if not self._is_registered:  # Spark finds the format by itself, but not on every server
            rows.sparkSession.dataSource.register(TidingsSource)
            self._is_registered = True
        writer = publications.write.format(FORMAT).option(ON_ERROR, DEAD_LETTER)
        writer.option(ID_FIELD, self._stream.id).mode("append").save(self._stream.store)


def select_publications(rows: DataFrame, stream: TableStream) -> DataFrame:
    """Give columns the names by which the format `tidings` knows them."""
    columns = PublicationColumns.of(rows, stream.value, stream.value_format)
    named = rows.withColumn(ID, _column(stream.id).cast("string")) if stream.id in rows.columns else rows
    if columns.value is None and not set(BODIES) & set(named.columns):
        return named
    wanted = [name for name in (ID, AUDIENCE) if name in named.columns]
    body = _column(columns.value) if columns.value else F.to_json(F.struct("*"))
    return named.select(*wanted, body.alias(BODIES[0]), F.lit(columns.media_type).alias(MEDIA_TYPE))


def _column(name: str) -> F.Column:
    return F.col("`" + name.replace("`", "``") + "`")
