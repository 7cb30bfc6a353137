"""Output of `serve`: its address, the state of the stream, and the work that delays its end.

^Cwaiting for 1 request (5 seconds) and the stream, which ends after its batch, for 20 seconds at most
Ctrl-C again does not wait; what was published is in the store
"""

from __future__ import annotations

import logging
import os
import sys
from threading import Timer
from typing import TYPE_CHECKING

from rich.status import Status

from tidings.cli import output
from tidings.core.text import plural
from tidings.operations.settings import Settings
from tidings.service.authorization import ADMINISTRATOR_FILE
from tidings.spark.stream.stream_events import StreamEvent, StreamProgress, StreamRepair, StreamStart

if TYPE_CHECKING:
    from tidings.service.authorization import NewToken
    from tidings.service.context import PendingWork

QUIET_SECONDS = 1.0
"""A shutdown that ends sooner needs no explanation."""

_log = logging.getLogger("tidings.stream")


class ServeOutput:
    """Prints the events of a service."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stream = StreamStatusLine(settings.spark.master)
        self._timer: Timer | None = None

    def show_following(self, log: str) -> None:
        output.print_note(f"following {log}")

    def show_address(self, address: str, public_url: str | None, token: NewToken | None) -> None:
        """Print the address and, after the first start, where the administrator's token is.

        The token itself is only printed on a terminal: the standard output of services ends in logs.
        """
        if public_url is None:
            output.print_line(("probes", "bold"), f"{address}/readyz", "Ctrl-C ends it")
            return
        local = [] if public_url == address else [f"at {address}"]
        output.print_line(("console", "bold"), public_url, *local, *self._describe_token(token))

    def _describe_token(self, token: NewToken | None) -> list[str]:
        if token is None:
            return ["Ctrl-C ends it"]
        shown = [f"administrator token: {token.secret}"] if _is_interactive() else []
        return [*shown, f"administrator token in {self._settings.home / ADMINISTRATOR_FILE}"]

    def show_stream(self, event: StreamEvent) -> None:
        self._stream.update(event)

    def begin_shutdown(self, pending: PendingWork) -> None:
        """Print later which work the service still waits for, if any."""
        self._timer = Timer(QUIET_SECONDS, self.show_pending, (pending,))
        self._timer.daemon = True
        self._timer.start()

    def end_shutdown(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._stream.close()

    def show_pending(self, pending: PendingWork) -> None:
        """Print the work that the service waits for, and how to skip it."""
        if descriptions := pending.describe():
            self._stream.close()
            limit = f"for {self._settings.drain:g} seconds at most"
            output.print_note(f"waiting for {_join_words(descriptions)}, {limit}")
            output.print_note("Ctrl-C again does not wait; what was published is in the store")


def _is_interactive() -> bool:
    """Return whether a person uses a terminal. A container may have a terminal for its output alone."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def _join_words(words: list[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


class StreamStatusLine:
    """A line about the stream that stays current on a terminal. Elsewhere only the first one is printed."""

    def __init__(self, master: str | None) -> None:
        self._master = master or os.environ.get("SPARK_REMOTE") or "local[*]"
        console = output.make_console(stderr=True)
        self._status = Status("", console=console) if console.is_terminal else None

    def update(self, event: StreamEvent) -> None:
        if isinstance(event, StreamStart):
            output.print_line(("stream", "bold"), self._describe(event))
        elif isinstance(event, StreamProgress) and self._status:
            self._status.update(self._describe(event))
            self._status.start()
        elif isinstance(event, StreamRepair):
            _log.warning("repaired the checkpoint: %s", event.what)

    def close(self) -> None:
        """Remove the line from the terminal."""
        if self._status:
            self._status.stop()
            self._status = None

    def _describe(self, event: StreamStart | StreamProgress) -> str:
        segments = plural(event.segments, "segment")
        return f"{self._master}, {segments}, position {event.position:,}, lag {event.lag:,}"
