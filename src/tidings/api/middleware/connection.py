"""HTTP/1.1 connections with a time limit for each request head (slowloris protection).

uvicorn closes a connection that is idle after a response. It waits forever for the first request, for the rest of a
head, and for the rest of a body after its response: one byte now and then would keep a connection and its file open.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS = 30.0
"""Time limit for a request head, from the start of the connection or the previous response."""


class Connection(H11Protocol):
    """A connection that times out while it waits for a request. Responses have no time limit."""

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
        """Close the connection if it is overdue, or set the timer; one timer serves all requests, as timers cost."""
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
