"""Before the first batch of a stream: each worker does once what its tasks will do.

A Python worker of Spark that has just started imports for seconds, opens the index and loads the kernels. Whoever
published first would wait for that, behind a service that says that it is ready.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from tidings.atoms import Of
from tidings.spark.source import in_batches
from tidings.spark.stages import Job, rehearse

MANY = 1_000
"""Rows for all cores: without a number Spark makes a partition for each."""

SAMPLES = {
    Of.EVENT: ("application/json", b"{}"),
    Of.DOCUMENT: ("application/xml", b"<nothing/>"),
    Of.GRAPH: ("text/turtle", b""),
}


def warm(session: SparkSession, job: Job, sorts: Iterable[Of]) -> int:
    """Have a worker on each core match a publication of each sort, which nobody hears of; how many did.

    Sorts that nobody has subscribed to are better left out: in a new installation their kernels are still to be
    compiled.
    """
    samples = [SAMPLES[sort] for sort in sorted({Of.EVENT, *sorts})]
    return len(session.range(MANY).mapInArrow(_rehearsal(job, samples), "done boolean").collect())


def _rehearsal(job: Job, samples: list[tuple[str, bytes]]) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def run(batches: Iterable[Any]) -> Iterator[Any]:
        for _ in batches:
            pass
        for batch in in_batches((0, "", "", media_type, body, None) for media_type, body in samples):
            rehearse(job, batch)
        yield pa.RecordBatch.from_pydict({"done": [True]})

    return run
