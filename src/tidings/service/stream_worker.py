"""The stream beside a server: a worker thread that restarts it after a failure, with exponential backoff.

    keeper = StreamKeeper(tidings, settings, hear)
    with keeper: ...                   Spark starts while the server answers already
    keeper.problem                     what keeps it from its work now, or None

After `stream.restarts` failures in a row it gives up; a batch with publications starts a new row. Failures of what the
stream depends on do not count, because they pass: a store that is away, a full disk, a machine too busy to start
Python workers in time. The cause is checked every second, and the stream restarts when it is gone.
"""

from __future__ import annotations

import errno
import logging
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Self

from tidings.errors import SetupError, SlowStart, StoreError, TidingsError
from tidings.spark.stream.progress import StreamEvent, StreamListener, StreamProgress, StreamStart

if TYPE_CHECKING:
    from tidings.operations.settings import Settings
    from tidings.service.tidings import Tidings


_log = logging.getLogger("tidings.stream")


STOPPING_SECONDS = 20.0
"""What Spark has for itself to end."""

CHECK_SECONDS = 1.0
"""How often the cause of a failure that passes is checked."""
SHORT_PAUSE = 5.0
"""Seconds before a restart if that cause was gone when the stream failed."""
ENOUGH_SPACE = 8 * 2**20
"""Bytes: a disk with less free space counts as full."""

FULL = (os.strerror(errno.ENOSPC), "disk is full")


class FailureCapture:
    """Keeps what goes wrong in a `with`, whatever it is: one failure of the stream is not the end of the server."""

    problem: BaseException | None = None

    def __enter__(self) -> FailureCapture:
        return self

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> bool:
        self.problem = problem
        return True


class SparkStartup:
    """A session that is opened in a thread. The JVM starts while this process does something else.

    The thread is a daemon: a service that cannot start does not wait for Spark. The JVM ends with the process.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._caught, self._session = FailureCapture(), None
        self._thread = threading.Thread(target=self._open, name="spark-start", daemon=True)
        self._thread.start()

    def result(self) -> Any:
        """The session, when it is open; what went wrong is raised."""
        self._thread.join()
        if self._caught.problem is not None:
            raise self._caught.problem
        return self._session

    def _open(self) -> None:
        from tidings.spark.session import open_session_at

        spark = self._settings.spark
        with self._caught:
            self._session = open_session_at(spark.master, self._settings.home / "spark.log", spark.conf)


class StreamState(Enum):
    """How it stands with the stream."""

    STARTING = "Spark is starting"
    PREPARING = "Spark's workers are starting"
    RUNNING = "running"
    FAILED = "the stream failed and is started again soon"
    GIVEN_UP = "the stream failed again and again, and is not started any more"
    ENDED = "the stream has ended"


class StreamWorker:
    """Runs the stream from `with` to the end of it; the batch under way ends first."""

    def __init__(
        self,
        tidings: Tidings,
        settings: Settings,
        hear: StreamListener,
        gave_up: Callable[[], object] = lambda: None,
        spark: SparkStartup | None = None,
    ) -> None:
        self.state, self.failure = StreamState.STARTING, ""
        self._spark = spark
        self._tidings, self._settings, self._hear, self._gave_up = tidings, settings, hear, gave_up
        self._stop = threading.Event()
        self._failures = self._own_failures = 0
        self._thread = threading.Thread(target=self._keep, name="stream-keeper", daemon=True)

    def __enter__(self) -> StreamWorker:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """A batch has its time to end. One that takes longer is cut: the next stream repeats it."""
        self.end()
        self._thread.join(self._settings.drain + STOPPING_SECONDS)
        if self._thread.is_alive():
            _log.warning("the stream is ended in the middle of a batch, which the next one repeats")

    def end(self) -> None:
        """Ask it to end between two batches, and do not wait for it."""
        self._stop.set()

    @property
    def under_way(self) -> str | None:
        """What whoever ends it waits for."""
        if not self._thread.is_alive() or self.is_given_up:
            return None
        return (
            "Spark, which is starting"
            if self.state is StreamState.STARTING
            else "the stream, which ends after its batch"
        )

    @property
    def is_starting(self) -> bool:
        return self.state in (StreamState.STARTING, StreamState.PREPARING)

    @property
    def is_given_up(self) -> bool:
        return self.state is StreamState.GIVEN_UP

    @property
    def problem(self) -> str | None:
        if self.state is StreamState.RUNNING:
            return None
        return f"{self.state.value}: {self.failure}" if self.failure else self.state.value

    def _keep(self) -> None:
        while not self._stop.is_set():
            with FailureCapture() as caught:
                self._run()
            if caught.problem is None or self._stop.is_set():
                break
            self._failed(caught.problem)
            if self._own_failures > self._settings.stream.restarts:
                self.state = StreamState.GIVEN_UP
                _log.error("the stream is given up after %d failures in a row", self._own_failures)
                self._gave_up()
                return
            self._wait(caught.problem)
        self.state = StreamState.ENDED

    def _run(self) -> None:
        from tidings.spark.session import close_session
        from tidings.spark.stream import runner as stream
        from tidings.spark.stream.budget import Budget

        settings = self._settings
        self.state = StreamState.STARTING
        begun, self._spark = self._spark or SparkStartup(settings), None
        session = begun.result()
        self.state = StreamState.PREPARING
        try:
            stream.run_stream(
                session,
                self._tidings.home,
                self._tidings.store_url,
                most_publications=settings.stream.publications,
                metadata_batch=settings.metadata_batch,
                drain=settings.drain,
                budget=Budget(settings.stream.step_seconds, settings.stream.step_memory),
                suspend_after=settings.stream.suspend_after,
                stop=self._stop,
                listener=self._heard,
            )
        finally:
            close_session(session)

    def _heard(self, news: StreamEvent) -> None:
        if isinstance(news, StreamStart):
            self.state, self.failure = StreamState.RUNNING, ""
        elif isinstance(news, StreamProgress) and news.events:
            self._failures = self._own_failures = 0
        self._hear(news)

    def _failed(self, failure: BaseException) -> None:
        passes = _passes(failure)
        self._failures += 1
        self._own_failures += not passes
        self.failure, self.state = str(failure).partition("\n")[0], StreamState.FAILED
        whole = None if passes or isinstance(failure, TidingsError) else failure
        _log.error("the stream failed: %s", self.failure, exc_info=whole)

    def _pause(self) -> float:
        return min(self._settings.stream.longest_pause, 2.0 ** min(self._failures - 1, 20))

    def _wait(self, failure: BaseException) -> None:
        """Wait before the next start: for the pause, or until the cause of a failure that passes is gone."""
        pause, can_look = self._pause(), _has_cause(failure)
        if can_look and not self._is_there(failure):
            pause, can_look = min(pause, SHORT_PAUSE), False
        deadline = monotonic() + pause
        while (left := deadline - monotonic()) > 0 and not self._stop.wait(min(left, CHECK_SECONDS)):
            if can_look and not self._is_there(failure):
                return

    def _is_there(self, failure: BaseException) -> bool:
        """Whether the cause of a failure is still there: the disk is full, or the store away."""
        try:
            if _says(failure, FULL):
                folders = (self._tidings.home, Path(tempfile.gettempdir()))
                return any(shutil.disk_usage(folder).free < ENOUGH_SPACE for folder in folders)
            self._tidings.store.journal.head()
        except (TidingsError, OSError):
            return True
        return False


def _passes(failure: BaseException) -> bool:
    """Whether something that the stream depends on has failed. Spark reports some of it in its own words."""
    return _has_cause(failure) or isinstance(failure, SlowStart)


def _has_cause(failure: BaseException) -> bool:
    """Whether the cause is one that can be checked."""
    return isinstance(failure, StoreError) or _says(failure, FULL)


def _says(failure: BaseException, words: Sequence[str]) -> bool:
    return any(each in str(failure) for each in words)


def refuse_second_stream(home: Path) -> None:
    """Refuse, before Spark starts, to run the stream of a home that another process runs."""
    from tidings.spark.checkpoint import find_runner

    pid = find_runner(home)
    if pid is not None:
        raise SetupError(
            "another process runs the stream of this home folder",
            where=str(home),
            received=f"process {pid}" if pid else None,
            hint="stop it first, or leave the stream to it: tidings serve --only api --only delivery",
        )


# A stream in a thread, for a program that wants to see it work while it does something else.


POLL_SECONDS = 0.1


class BackgroundStream:
    """Runs the stream from `with` to the end of it; `reached` waits for it."""

    def __init__(self, session: Any, tidings: Tidings) -> None:
        from tidings.spark.stream import runner

        self._stop, self._news = threading.Event(), threading.Condition()
        self._started, self._position = False, 0
        self._thread = ThreadPoolExecutor(1)
        self._result = self._thread.submit(
            runner.run_stream, session, tidings.home, tidings.store_url, stop=self._stop, listener=self._hear
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.shutdown()

    def reached(self, position: int) -> None:
        """Wait until the stream runs and is done with everything up to a position; if it has ended, say why."""
        with self._news:
            while not self._started or self._position < position:
                if self._result.done():
                    self._result.result()
                    raise TidingsError(
                        "the stream ended before its time", hint="was it stopped from elsewhere?"
                    )
                self._news.wait(POLL_SECONDS)

    def _hear(self, news: StreamEvent) -> None:
        with self._news:
            self._started |= isinstance(news, StreamStart | StreamProgress)
            if isinstance(news, StreamProgress):
                self._position = max(self._position, news.position)
            self._news.notify_all()
