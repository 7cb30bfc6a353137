"""The stream beside a server: a worker that restarts it after a failure, with exponential backoff.

    with StreamWorker(tidings, settings, listener) as stream: ...      Spark starts while the server answers already
    stream.problem                                                     why it does not run now, or None

After `stream.restarts` failures in a row the worker gives up; a batch with publications ends the row. Failures of
dependencies do not count, because they are temporary: an unreachable store, a full disk, a machine too busy to start
Python workers in time. The cause is checked every second, and the stream restarts when it is resolved.
"""

from __future__ import annotations

import errno
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

from tidings.core.lifecycle import Worker
from tidings.errors import SetupError, SlowStart, StoreError, TidingsError
from tidings.spark.stream.stream_events import StreamEvent, StreamListener, StreamProgress, StreamStart

if TYPE_CHECKING:
    from tidings.operations.settings import Settings
    from tidings.service.tidings import Tidings


STOPPING_SECONDS = 20.0
"""Time limit for the end of Spark, beyond the batch in progress."""

CHECK_SECONDS = 1.0
"""Interval at which the cause of a temporary failure is checked."""
SHORT_PAUSE = 5.0
"""Seconds before a restart if the cause is resolved when it is first checked."""
ENOUGH_SPACE = 8 * 2**20
"""Bytes: a disk with less free space counts as full."""

FULL = (os.strerror(errno.ENOSPC), "disk is full")


class FailureCapture:
    """Captures any exception of a `with` block: a failure of the stream must not end the server."""

    problem: BaseException | None = None

    def __enter__(self) -> FailureCapture:
        return self

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> bool:
        self.problem = problem
        return True


class SparkStartup:
    """A Spark session that is opened in a thread: the JVM starts while this process does other work.

    The thread is a daemon, so a service that cannot start does not wait for Spark. The JVM ends with the process.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._capture, self._session = FailureCapture(), None
        self._thread = threading.Thread(target=self._open, name="spark-start", daemon=True)
        self._thread.start()

    def result(self) -> Any:
        """Wait until the session is open, and return it; raise why it could not be opened."""
        self._thread.join()
        if self._capture.problem is not None:
            raise self._capture.problem
        return self._session

    def _open(self) -> None:
        from tidings.spark.session import open_session_at

        spark = self._settings.spark
        with self._capture:
            self._session = open_session_at(spark.master, self._settings.home / "spark.log", spark.conf)


class StreamState(Enum):
    """States of the stream; the values are shown as its problem."""

    STARTING = "Spark is starting"
    PREPARING = "Spark's workers are starting"
    RUNNING = "running"
    FAILED = "the stream failed and restarts soon"
    GIVEN_UP = "the stream failed too often and is not restarted"
    ENDED = "the stream has ended"


class StreamWorker(Worker):
    """A worker that runs the stream; at the end it finishes the batch in progress."""

    def __init__(
        self,
        tidings: Tidings,
        settings: Settings,
        listener: StreamListener,
        on_give_up: Callable[[], object] = lambda: None,
        spark: SparkStartup | None = None,
    ) -> None:
        super().__init__("stream", SHORT_PAUSE)
        self.join_seconds = settings.drain + STOPPING_SECONDS
        self.state, self.failure = StreamState.STARTING, ""
        self.spark_ui: str | None = None
        self._spark = spark
        self._tidings, self._settings, self._listener = tidings, settings, listener
        self._on_give_up = on_give_up
        self._failures = self._own_failures = 0

    @property
    def pending(self) -> str | None:
        """The work that a shutdown waits for."""
        if not self.is_alive or self.is_given_up:
            return None
        is_starting = self.state is StreamState.STARTING
        return "Spark, which is starting" if is_starting else "the stream, which ends after its batch"

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

    def run_once(self) -> None:
        """Run the stream until it ends; after a failure, wait before the next start, or give up."""
        with FailureCapture() as capture:
            self._run_stream()
        failure = capture.problem
        if failure is None or self.stopping.is_set():
            self.state = StreamState.ENDED
            self.stopping.set()
            return
        self._record_failure(failure)
        if self._own_failures > self._settings.stream.restarts:
            self.state = StreamState.GIVEN_UP
            self._log.error("the stream is given up after %d failures in a row", self._own_failures)
            self._on_give_up()
            self.stopping.set()
            return
        self._wait(failure)
        if self.stopping.is_set():
            self.state = StreamState.ENDED

    def close(self) -> None:
        if self.is_alive:
            self._log.warning("the stream is stopped during a batch, which the next one repeats")

    def _run_stream(self) -> None:
        from tidings.spark.session import close_session
        from tidings.spark.stream import runner
        from tidings.spark.stream.budget import Budget

        settings = self._settings
        self.state = StreamState.STARTING
        startup, self._spark = self._spark or SparkStartup(settings), None
        session = startup.result()
        self.state = StreamState.PREPARING
        try:
            runner.run_stream(
                session,
                self._tidings.home,
                self._tidings.store_url,
                most_publications=settings.stream.batch_size,
                metadata_batch=settings.metadata_batch,
                drain=settings.drain,
                budget=Budget(settings.stream.step_seconds, settings.stream.step_memory),
                suspend_after=settings.stream.suspend_after,
                stop=self.stopping,
                listener=self._handle_event,
            )
        finally:
            self.spark_ui = None
            close_session(session)

    def _handle_event(self, event: StreamEvent) -> None:
        if isinstance(event, StreamStart):
            self.state, self.failure, self.spark_ui = StreamState.RUNNING, "", event.spark_ui
        elif isinstance(event, StreamProgress) and event.events:
            self._failures = self._own_failures = 0
        self._listener(event)

    def _record_failure(self, failure: BaseException) -> None:
        is_temporary = _is_temporary(failure)
        self._failures += 1
        self._own_failures += not is_temporary
        self.failure, self.state = str(failure).partition("\n")[0], StreamState.FAILED
        traceback = None if is_temporary or isinstance(failure, TidingsError) else failure
        self._log.error("the stream failed: %s", self.failure, exc_info=traceback)

    def _backoff_seconds(self) -> float:
        """Return the pause before a restart: none after the first failure, then 1, 2, 4 seconds and so on."""
        if self._failures == 1:
            return 0.0
        return min(self._settings.stream.max_backoff, 2.0 ** min(self._failures - 2, 20))

    def _wait(self, failure: BaseException) -> None:
        """Wait before the next start: for the pause, or until the cause of a temporary failure is resolved."""
        pause, can_check = self._backoff_seconds(), _has_cause(failure)
        if can_check and not self._persists(failure):
            pause, can_check = min(pause, SHORT_PAUSE), False
        deadline = monotonic() + pause
        while (left := deadline - monotonic()) > 0 and not self.stopping.wait(min(left, CHECK_SECONDS)):
            if can_check and not self._persists(failure):
                return

    def _persists(self, failure: BaseException) -> bool:
        """Return whether the cause of a failure persists: the disk is full, or the store unreachable."""
        try:
            if _mentions(failure, FULL):
                folders = (self._tidings.home, Path(tempfile.gettempdir()))
                return any(shutil.disk_usage(folder).free < ENOUGH_SPACE for folder in folders)
            self._tidings.store.journal.head()
        except (TidingsError, OSError):
            return True
        return False


def _is_temporary(failure: BaseException) -> bool:
    """Return whether a dependency of the stream has failed. Spark wraps some of these failures in its own."""
    return _has_cause(failure) or isinstance(failure, SlowStart)


def _has_cause(failure: BaseException) -> bool:
    """Return whether the cause of a failure can be checked."""
    return isinstance(failure, StoreError) or _mentions(failure, FULL)


def _mentions(failure: BaseException, phrases: Sequence[str]) -> bool:
    return any(phrase in str(failure) for phrase in phrases)


def refuse_second_stream(home: Path) -> None:
    """Raise, before Spark starts, if another process runs the stream of this home folder."""
    from tidings.spark.checkpoint import find_runner

    pid = find_runner(home)
    if pid is not None:
        raise SetupError(
            "another process runs the stream of this home folder",
            where=str(home),
            received=f"process {pid}" if pid else None,
            hint="stop it first, or leave the stream to it: tidings serve --only api --only delivery",
        )


POLL_SECONDS = 0.1


class BackgroundStream:
    """A stream in a thread, for a program that watches it, as the demo does.

    It runs from the start of a `with` block to its end.
    """

    def __init__(self, session: Any, tidings: Tidings) -> None:
        from tidings.spark.stream import runner

        self._stop, self._changed = threading.Event(), threading.Condition()
        self._started, self._position = False, 0
        self._thread = ThreadPoolExecutor(1)
        self._result = self._thread.submit(
            runner.run_stream,
            session,
            tidings.home,
            tidings.store_url,
            stop=self._stop,
            listener=self._handle_event,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.shutdown()

    def wait_for(self, position: int) -> None:
        """Wait until the stream has matched everything up to a position; raise if it has ended."""
        with self._changed:
            while not self._started or self._position < position:
                if self._result.done():
                    self._result.result()
                    raise TidingsError("the stream ended early", hint="another program may have stopped it")
                self._changed.wait(POLL_SECONDS)

    def _handle_event(self, event: StreamEvent) -> None:
        with self._changed:
            self._started |= isinstance(event, StreamStart | StreamProgress)
            if isinstance(event, StreamProgress):
                self._position = max(self._position, event.position)
            self._changed.notify_all()
