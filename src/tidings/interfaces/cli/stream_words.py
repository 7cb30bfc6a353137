"""How a stream beside a server is doing, at a terminal: a line when it starts, which then stays current."""

from __future__ import annotations

import logging
import os

from rich.status import Status

from tidings.counts import plural
from tidings.interfaces.cli import output
from tidings.spark.news import News, Progress, Repaired, Started

_log = logging.getLogger("tidings.stream")


class StreamWords:
    """Hears the stream. Off a terminal the first line is all that is printed: the log has the batches."""

    def __init__(self, master: str | None) -> None:
        self._where = master or os.environ.get("SPARK_REMOTE") or "local[*]"
        console = output.console(stderr=True)
        self._status = Status("", console=console) if console.is_terminal else None

    def __call__(self, news: News) -> None:
        if isinstance(news, Started):
            output.line(("stream", "bold"), self._words(news))
        elif isinstance(news, Progress):
            self._now(self._words(news))
        elif isinstance(news, Repaired):
            _log.warning("mended the checkpoint: %s", news.what)

    def _words(self, news: Started | Progress) -> str:
        segments = plural(news.segments, "segment")
        return f"{self._where}, {segments}, position {news.position:,}, lag {news.lag:,}"

    def end(self) -> None:
        """Leave the terminal to what is said at the end."""
        if self._status:
            self._status.stop()
            self._status = None

    def _now(self, words: str) -> None:
        if self._status:
            self._status.update(words)
            self._status.start()
