"""Before the first batch of a stream each worker does once what its tasks will do; and it is kept while there is none.

A Python worker of Spark that has just started imports for seconds, opens the index and loads the kernels. Whoever
published first would wait for that, behind a service that says that it is ready. Spark ends workers that had nothing to
do for a minute: whoever published after a quiet minute would wait for it again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterable, Iterator
from time import monotonic
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tidings.atoms import AtomShape
from tidings.kinds import Part, kinds
from tidings.spark.sources.journal import build_record_batches, open_shared_store
from tidings.spark.stream.failures import is_data_failure, is_slow_start
from tidings.spark.stream.match_task import MatchJob, decode_samples, match_samples

MANY = 1_000
"""Rows for all cores: without a number Spark makes a partition for each."""

QUIET_SECONDS = 30.0
"""After so long without a batch workers hear of us. Spark's minute is no setting."""

_log = logging.getLogger("tidings.stream")


def warm_up_workers(
    session: SparkSession, job: MatchJob, shapes: Iterable[AtomShape], store: str | None = None
) -> int:
    """Have a worker on each core match a sample of each shape without output; return how many did.

    Workers that read from a store open it. Leave out shapes without subscriptions: in a new installation their kernels
    are not compiled yet.
    """
    samples = _samples({AtomShape.FLAT, *shapes})
    return len(session.range(MANY).mapInArrow(_rehearsal(job, samples, store), "done boolean").collect())


def check_workers(session: SparkSession, job: MatchJob, store: str | None = None) -> int:
    """Have a worker on each core open what tasks open and decode samples without output; return how many did.

    Samples are not matched: a subscription that fails all publications is data, and what this asks is whether the
    workers can work at all.
    """
    run = _rehearsal(job, _samples([*AtomShape]), store, decode_samples)
    return len(session.range(MANY).mapInArrow(run, "done boolean").collect())


def _samples(shapes: Container[AtomShape]) -> list[Part]:
    """Return a publication of each kind whose atoms have one of the shapes."""
    return [kind.sample for kind in kinds() if kind.sample is not None and kind.shape in shapes]


def _rehearsal(
    job: MatchJob,
    samples: list[Part],
    store: str | None,
    do: Callable[[MatchJob, Any], None] = match_samples,
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def run(batches: Iterable[Any]) -> Iterator[Any]:
        if store is not None:
            open_shared_store(store)
        for batch in build_record_batches(
            (0, "", "", media_type, body, None) for media_type, body in samples
        ):
            do(job, batch)
        yield from _nothing(batches)

    return run


def _nothing(batches: Iterable[Any]) -> Iterator[Any]:
    for _ in batches:
        pass
    yield pa.RecordBatch.from_pydict({"done": [True]})


class WorkerKeepAlive:
    """Spark's workers, which stay as long as `keep` is called now and then."""

    def __init__(self, session: SparkSession, clock: Callable[[], float] = monotonic) -> None:
        self._session, self._clock = session, clock
        self._batch, self._heard = -1, clock()

    def keep(self, batch: int, is_busy: Callable[[], bool] = lambda: False) -> int:
        """Give them something to do, if neither a batch nor we did so lately; how many tasks there were.

        `batch` is the last one that was done. Behind one under way we would wait, and so would others for us. A worker
        that dies or is too slow to start meanwhile is replaced by the next job.
        """
        if batch != self._batch:
            self._batch, self._heard = batch, self._clock()
        if self._clock() - self._heard < QUIET_SECONDS or is_busy():
            return 0
        try:
            tasks = len(self._session.range(MANY).mapInArrow(_nothing, "done boolean").collect())
        except (PySparkException, Py4JJavaError) as problem:
            if not (is_slow_start(problem) or is_data_failure(problem)):
                raise
            _log.warning(
                "a Python process of Spark ended or did not start in time while there was nothing to do"
            )
            tasks = 0
        self._heard = self._clock()
        return tasks
