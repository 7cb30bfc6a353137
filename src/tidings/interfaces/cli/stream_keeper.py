"""The stream beside a server: in a thread of its own; when it fails it is started again, later and later.

    keeper = StreamKeeper(tidings, settings, hear)
    with keeper: ...                   Spark starts while the server answers already
    keeper.problem                     what keeps it from its work now, or None

After `stream.restarts` failures in a row it gives up. Publications that were matched in between make it a new row. A
store that is away and a disk that is full do not count: they come back, and nobody would look for a stream then that
was given up.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING

from tidings.errors import SetupError, StoreError, TidingsError
from tidings.spark.news import Listener, News, Progress, Started

if TYPE_CHECKING:
    from tidings.operating.settings import Settings
    from tidings.service import Tidings

_log = logging.getLogger("tidings.stream")


STOPPING_SECONDS = 20.0
"""What Spark has for itself to end."""

FULL = os.strerror(errno.ENOSPC)


class Caught:
    """Keeps what goes wrong in a `with`, whatever it is: one failure of the stream is not the end of the server."""

    problem: BaseException | None = None

    def __enter__(self) -> Caught:
        return self

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> bool:
        self.problem = problem
        return True


class State(Enum):
    """How it stands with the stream."""

    STARTING = "Spark is starting"
    PREPARING = "Spark's workers are starting"
    RUNNING = "running"
    FAILED = "the stream failed and is started again soon"
    GIVEN_UP = "the stream failed again and again, and is not started any more"
    ENDED = "the stream has ended"


class StreamKeeper:
    """Runs the stream from `with` to the end of it; the batch under way ends first."""

    def __init__(
        self,
        tidings: Tidings,
        settings: Settings,
        hear: Listener,
        gave_up: Callable[[], object] = lambda: None,
    ) -> None:
        self.state, self.failure = State.STARTING, ""
        self._tidings, self._settings, self._hear, self._gave_up = tidings, settings, hear, gave_up
        self._stop = threading.Event()
        self._failures = self._own_failures = 0
        self._thread = threading.Thread(target=self._keep, name="stream-keeper", daemon=True)

    def __enter__(self) -> StreamKeeper:
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
            if self.state is State.STARTING
            else "the stream, which ends after its batch"
        )

    @property
    def is_given_up(self) -> bool:
        return self.state is State.GIVEN_UP

    @property
    def problem(self) -> str | None:
        if self.state is State.RUNNING:
            return None
        return f"{self.state.value}: {self.failure}" if self.failure else self.state.value

    def _keep(self) -> None:
        while not self._stop.is_set():
            with Caught() as caught:
                self._run()
            if caught.problem is None or self._stop.is_set():
                break
            self._failed(caught.problem)
            if self._own_failures > self._settings.stream.restarts:
                self.state = State.GIVEN_UP
                _log.error("the stream is given up after %d failures in a row", self._own_failures)
                self._gave_up()
                return
            self._stop.wait(self._pause())
        self.state = State.ENDED

    def _run(self) -> None:
        from tidings.interfaces.cli.options import open_spark
        from tidings.spark import stream
        from tidings.spark.budget import Budget
        from tidings.spark.session import close_session

        settings = self._settings
        self.state = State.STARTING
        session = open_spark(settings.spark.master, self._tidings.home / "spark.log", settings.spark.conf)
        self.state = State.PREPARING
        try:
            stream.run(
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

    def _heard(self, news: News) -> None:
        if isinstance(news, Started):
            self.state, self.failure = State.RUNNING, ""
        elif isinstance(news, Progress) and news.events:
            self._failures = self._own_failures = 0
        self._hear(news)

    def _failed(self, failure: BaseException) -> None:
        passes = _passes(failure)
        self._failures += 1
        self._own_failures += not passes
        self.failure, self.state = str(failure).partition("\n")[0], State.FAILED
        whole = None if passes or isinstance(failure, TidingsError) else failure
        _log.error("the stream failed: %s", self.failure, exc_info=whole)

    def _pause(self) -> float:
        return min(self._settings.stream.longest_pause, 2.0 ** min(self._failures - 1, 20))


def _passes(failure: BaseException) -> bool:
    """Whether it is not the stream that fails, but what it stands on. Spark tells of a full disk in its own words."""
    return isinstance(failure, StoreError) or FULL in str(failure)


def refuse_second_stream(tidings: Tidings) -> None:
    """Say at once, and not when Spark has started, that another process runs the stream of this home."""
    from tidings.spark.checkpoint import runner

    pid = runner(tidings.home)
    if pid is not None:
        raise SetupError(
            "another process runs the stream of this home folder",
            where=str(tidings.home),
            received=f"process {pid}" if pid else None,
            hint="stop it first, or leave the stream to it: tidings serve --only api --only delivery",
        )
