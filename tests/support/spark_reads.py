"""How many rows Spark's tasks read from files, as its metrics say.

The metrics of stages, not those of SQL plans: plans behind a checkpoint are in no SQL execution.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession


@dataclass
class FileReads:
    """Rows and bytes that were read from files."""

    rows: int = 0
    nbytes: int = 0


@contextmanager
def count_file_reads(session: SparkSession) -> Iterator[FileReads]:
    """Count what all stages read from files within the block."""
    before, reads = _read_metrics(session), FileReads()
    yield reads
    after = _read_metrics(session)
    reads.rows, reads.nbytes = after.rows - before.rows, after.nbytes - before.nbytes


def _read_metrics(session: SparkSession) -> FileReads:
    context = session.sparkContext
    context._jsc.sc().listenerBus().waitUntilEmpty()
    quantiles = context._gateway.new_array(context._jvm.double, 0)
    stages = context._jsc.sc().statusStore().stageList(None, False, False, quantiles, None)
    listed = [stages.apply(place) for place in range(stages.size())]
    return FileReads(
        sum(stage.inputRecords() for stage in listed), sum(stage.inputBytes() for stage in listed)
    )
