"""HTTP/1.1 connections that are closed when no request comes over them in time.

uvicorn closes a connection that is silent after an answer. It waits for ever for the first request, for the rest of a
head, and for the rest of a body after its answer. One byte now and then would do to keep a connection, and its file.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS = 30.0
"""How long the head of a request may take, from the start of the connection or the answer before."""


class Connection(H11Protocol):
    """A connection on which requests are read in time. Answers take as long as they need."""

    _waits_since = 0.0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._waits_since = self.loop.time()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_looking()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._stop_looking()
        super().handle_websocket_upgrade(event)

    def on_response_complete(self) -> None:
        self._waits_since = self.loop.time()
        super().on_response_complete()

    def _look(self) -> None:
        """Close the connection if it is time, or set the timer: one for all requests, because timers cost."""
        is_waiting = self.cycle is None or self.cycle.response_complete
        now = self.loop.time()
        due = (self._waits_since if is_waiting else now) + REQUEST_SECONDS
        if due > now:
            self._timer = self.loop.call_at(due, self._look)
        else:
            self.transport.close()

    def _stop_looking(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
