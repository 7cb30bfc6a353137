"""A stream in a thread, for a program that wants to see it work while it does something else."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Self

from tidings.errors import TidingsError
from tidings.spark.news import News, Progress, Started

if TYPE_CHECKING:
    from tidings.service import Tidings

LOOK_SECONDS = 0.1


class Running:
    """Runs the stream from `with` to the end of it; `reached` waits for it."""

    def __init__(self, session: Any, tidings: Tidings) -> None:
        from tidings.spark import stream

        self._stop, self._news = threading.Event(), threading.Condition()
        self._started, self._position = False, 0
        self._thread = ThreadPoolExecutor(1)
        self._result = self._thread.submit(
            stream.run, session, tidings.home, tidings.store_url, stop=self._stop, listener=self._hear
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
                self._news.wait(LOOK_SECONDS)

    def _hear(self, news: News) -> None:
        with self._news:
            self._started |= isinstance(news, Started | Progress)
            if isinstance(news, Progress):
                self._position = max(self._position, news.position)
            self._news.notify_all()
