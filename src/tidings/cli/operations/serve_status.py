"""Whoever has asked a service to end, and waits, is told for what.

^Cwaiting for 1 request (5 seconds) and the stream, which ends after its batch, for 20 seconds at most
Ctrl-C once more does not wait; what was published and told is in the store
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from threading import Timer
from typing import TYPE_CHECKING

from rich.status import Status

from tidings.cli import output
from tidings.core.text import plural
from tidings.spark.stream.progress import StreamEvent, StreamProgress, StreamRepair, StreamStart

if TYPE_CHECKING:
    from tidings.operations.health import PendingWork


QUIET_SECONDS = 1.0
"""What ends sooner needs no words."""


class ShutdownNotice:
    """Says, a while after `begin`, what is under way still; nothing if that is nothing, or it is over by then. `hush`
    ends what else is written to the terminal.
    """

    def __init__(
        self, under_way: PendingWork, drain: float, hush: Callable[[], object] = lambda: None
    ) -> None:
        self._under_way, self._drain, self._hush = under_way, drain, hush
        self._timer = Timer(QUIET_SECONDS, self.say)
        self._timer.daemon = True

    def begin(self) -> None:
        self._timer.start()

    def end(self) -> None:
        self._timer.cancel()
        self._hush()

    def say(self) -> None:
        """One line for what is waited for, and one for how not to wait."""
        if found := self._under_way.said():
            self._hush()
            output.print_note(f"waiting for {_join_words(found)}, for {self._drain:g} seconds at most")
            output.print_note("Ctrl-C once more does not wait; what was published and told is in the store")


def describe_requests(count: int, seconds: float) -> str | None:
    """Those that are being answered, which are waited for less long than all else."""
    return f"{plural(count, 'request')} ({seconds:g} seconds)" if count else None


def _join_words(found: list[str]) -> str:
    *first, last = found
    return f"{', '.join(first)} and {last}" if first else last


# How a stream beside a server is doing, at a terminal: a line when it starts, which then stays current.


_log = logging.getLogger("tidings.stream")


class StreamStatusLine:
    """Hears the stream. Off a terminal the first line is all that is printed: the log has the batches."""

    def __init__(self, master: str | None) -> None:
        self._where = master or os.environ.get("SPARK_REMOTE") or "local[*]"
        console = output.make_console(stderr=True)
        self._status = Status("", console=console) if console.is_terminal else None

    def __call__(self, news: StreamEvent) -> None:
        if isinstance(news, StreamStart):
            output.print_line(("stream", "bold"), self._words(news))
        elif isinstance(news, StreamProgress):
            self._now(self._words(news))
        elif isinstance(news, StreamRepair):
            _log.warning("mended the checkpoint: %s", news.what)

    def _words(self, news: StreamStart | StreamProgress) -> str:
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
