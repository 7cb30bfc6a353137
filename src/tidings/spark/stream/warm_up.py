"""Warm-up and keep-alive of Spark's Python workers.

A new Python worker imports modules for seconds, opens the index and loads the kernels. Without a warm-up the first
publication would wait for that although the service reports that it is ready. Spark stops workers that were idle for a
minute: without the keep-alive the first publication after a quiet minute would wait again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tidings.atoms import AtomShape
from tidings.kinds import Part, kinds
from tidings.matching.index.index import Index
from tidings.spark.sources.position_reader import build_record_batches, open_shared_store
from tidings.spark.stream.failures import is_data_failure, is_slow_start
from tidings.spark.stream.match_task import MatchJob, decode_samples, match_samples

MANY = 1_000
"""Enough rows for all cores: without a number of partitions Spark makes one for each core."""

JOIN_SECONDS = 5.0
"""Seconds that the end of a stream waits for a warm-up; one that takes longer ends with the session."""

QUIET_SECONDS = 30.0
"""Seconds without a batch after which workers get a task. Spark's minute cannot be configured."""

_log = logging.getLogger("tidings.stream")


def warm_up_workers(
    session: SparkSession, job: MatchJob, shapes: Iterable[AtomShape], store: str | None = None
) -> int:
    """Match a sample of each shape on every core, without output; return the number of tasks.

    Workers that read from a store or write to it open it. Leave out shapes without subscriptions: in a new installation
    their kernels are not compiled yet.
    """
    samples = _samples({AtomShape.FLAT, *shapes})
    return len(session.range(MANY).mapInArrow(_build_warm_up(job, samples, store), "done boolean").collect())


@contextmanager
def warm_up_beside(session: SparkSession, index: Index | None, store: str | None) -> Iterator[None]:
    """Warm up Spark's workers in a thread while the block starts the query, which keeps only one core busy.

    The first batch warms them up as well: with the complete job, and if there is no index yet. It takes no time if this
    one has succeeded.
    """
    if index is None:
        yield
        return
    job = MatchJob(str(index.folder.absolute()), index.version, None, "id", "", is_journal=store is not None)

    def warm_up() -> None:
        try:
            warm_up_workers(session, job, index.shapes, store)
        except Exception as problem:  # noqa: BLE001 - the first batch warms up again, and reports what is wrong
            _log.info("the workers are not warm yet: %s", str(problem).partition("\n")[0])

    thread = Thread(target=warm_up, name="warm-up", daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join(JOIN_SECONDS)


def check_workers(session: SparkSession, job: MatchJob, store: str | None = None) -> int:
    """Open the files of a task and decode samples on every core; return the number of tasks.

    Samples are not matched: a subscription that fails all publications counts as data, and this checks whether the
    workers can work at all.
    """
    run = _build_warm_up(job, _samples([*AtomShape]), store, decode_samples)
    return len(session.range(MANY).mapInArrow(run, "done boolean").collect())


def _samples(shapes: Container[AtomShape]) -> list[Part]:
    """Return a publication of each kind whose atoms have one of the shapes."""
    return [kind.sample for kind in kinds() if kind.sample is not None and kind.shape in shapes]


def _build_warm_up(
    job: MatchJob,
    samples: list[Part],
    store: str | None,
    do: Callable[[MatchJob, Any], None] = match_samples,
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def run(batches: Iterable[Any]) -> Iterator[Any]:
        if store is not None:
            open_shared_store(store)
        job.target.open(Path())
        for batch in build_record_batches(
            (0, "", "", media_type, body, None) for media_type, body in samples
        ):
            do(job, batch)
        yield from _drain(batches)

    return run


def _drain(batches: Iterable[Any]) -> Iterator[Any]:
    for _ in batches:
        pass
    yield pa.RecordBatch.from_pydict({"done": [True]})


class WorkerKeepAlive:
    """Keeps Spark's workers alive as long as `keep` is called regularly."""

    def __init__(self, session: SparkSession, clock: Callable[[], float] = monotonic) -> None:
        self._session, self._clock = session, clock
        self._batch, self._last_use = -1, clock()

    def keep(self, batch: int, is_busy: Callable[[], bool] = lambda: False) -> int:
        """Run an empty task on each worker if they were idle for long; return the number of tasks.

        `batch` is the last completed batch. While one is running, this job would wait for it and delay the next one. A
        worker that dies or starts too slowly meanwhile is replaced by the next job.
        """
        if batch != self._batch:
            self._batch, self._last_use = batch, self._clock()
        if self._clock() - self._last_use < QUIET_SECONDS or is_busy():
            return 0
        try:
            tasks = len(self._session.range(MANY).mapInArrow(_drain, "done boolean").collect())
        except (PySparkException, Py4JJavaError) as problem:
            if not (is_slow_start(problem) or is_data_failure(problem)):
                raise
            _log.warning(
                "a Python process of Spark exited or did not start in time while the stream was idle"
            )
            tasks = 0
        self._last_use = self._clock()
        return tasks
