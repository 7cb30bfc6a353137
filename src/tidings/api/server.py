"""HTTP server: uvicorn with time limits for request heads and slow readers, until it is stopped."""

from __future__ import annotations

import asyncio
import math
import os
import resource as process_limits
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from tidings.api.middleware import RequestGuard, SecurityHeaders
from tidings.errors import SetupError
from tidings.operations.settings import Settings

REQUEST_SECONDS = 30.0
"""Time limit for a request head, from the start of the connection or the previous response.

uvicorn's own limit of 5 seconds between requests is the time after which many clients stop using an idle connection:
they would send a request at the moment at which the server closes it.
"""

LINGER_SECONDS = 2.0
"""Time between a response to a body that was not read to its end, and the end of the connection.

The client may still be sending. Closing at once could reset the connection before the client has read the response.
"""

GRACE = 5
"""Seconds that requests have to finish during a shutdown."""

SEND_TIMEOUT_SECONDS = 60.0
"""Seconds for which a client may leave all written data unacknowledged."""

MAX_OPEN_FILES = 65_536
MAX_MESSAGE_BYTES = 65_536
"""Largest message of a WebSocket client: acknowledgements and tokens are short."""


class Connection(H11Protocol):
    """An HTTP/1.1 connection with a time limit for each request head (slowloris protection).

    uvicorn closes a connection that is idle after a response. It waits forever for the first request, for the rest of a
    head, and for the rest of a body after its response: one byte now and then would keep a connection and its file
    open. Responses have no time limit.
    """

    _waits_since = 0.0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._waits_since = self.loop.time()
        self._check_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timer()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._cancel_timer()
        super().handle_websocket_upgrade(event)

    def on_response_complete(self) -> None:
        self._waits_since = self.loop.time()
        is_unread = self.conn.their_state is h11.SEND_BODY
        self.timeout_keep_alive = LINGER_SECONDS if is_unread else REQUEST_SECONDS  # type: ignore[assignment]
        super().on_response_complete()

    def _check_deadline(self) -> None:
        """Close the connection if it is overdue, or set the timer; one timer serves all requests, as timers cost."""
        is_waiting = self.cycle is None or self.cycle.response_complete
        now = self.loop.time()
        due = (self._waits_since if is_waiting else now) + REQUEST_SECONDS
        if due > now:
            self._timer = self.loop.call_at(due, self._check_deadline)
        else:
            self.transport.close()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Server(uvicorn.Server):
    """A server that leaves signals to the caller, who sets `should_exit`.

    On shutdown it calls each function in `at_end`: requests that wait for something are answered then.
    """

    at_end: Sequence[Callable[[], object]] = ()

    @property
    def requests_in_progress(self) -> int:
        """Number of requests in progress."""
        return len(self.server_state.tasks)

    @property
    def grace_seconds(self) -> int:
        """Seconds that requests have to finish during a shutdown."""
        return self.config.timeout_graceful_shutdown or 0

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for end in self.at_end:
            end()
        await super().shutdown(sockets)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 chooses a free one.

    Nagle's algorithm is off: the body of a response would wait until the client has acknowledged its head, which takes
    up to 40 ms. asyncio turns it off only for sockets that it creates itself.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=1024)
        _set_send_timeout(listener)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # accepted sockets inherit it
        return listener
    except (OSError, UnicodeError) as error:
        hint = "it may be served already: choose another port with --port, or another address with --host"
        number = error.errno or 0 if isinstance(error, OSError) else 0
        received = os.strerror(number) if number > 0 else str(error)  # Python's text repeats the address
        raise SetupError(
            "cannot listen at this address", where=f"{host}:{port}", received=received, hint=hint
        ) from error


def _set_send_timeout(listener: socket.socket) -> None:
    """Close connections of clients that read nothing.

    Closing a connection waits until the client has acknowledged everything that was written. Without the timeout a
    client that never does would keep the connection, and its memory, forever.
    """
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(SEND_TIMEOUT_SECONDS * 1_000))


def allow_many_files() -> int:
    """Raise the soft limit of open files as far as allowed, and return it.

    Each client is an open file, and shells allow only 1,024.
    """
    soft, hard = process_limits.getrlimit(process_limits.RLIMIT_NOFILE)
    limit = MAX_OPEN_FILES if hard == process_limits.RLIM_INFINITY else min(hard, MAX_OPEN_FILES)
    if soft != process_limits.RLIM_INFINITY and soft < limit:
        process_limits.setrlimit(process_limits.RLIMIT_NOFILE, (limit, hard))
        return limit
    return soft


def create_server(app: FastAPI, settings: Settings | None = None) -> Server:
    """Return a server for an application. It logs no requests: addresses of feeds are secrets.

    Requests are parsed by h11, even if httptools is installed, which uvicorn would prefer: httptools buffers the head
    of a request however long it gets, before the caller has sent a token. `Connection` limits the time of heads as
    well.
    """
    settings = settings or Settings()
    server = Server(
        uvicorn.Config(
            SecurityHeaders(RequestGuard(app)),
            http=Connection,
            access_log=False,
            log_config=None,
            log_level="warning",
            server_header=False,
            forwarded_allow_ips=settings.trusted_proxies,
            timeout_keep_alive=math.ceil(REQUEST_SECONDS),  # until the first response; see `Connection`
            timeout_graceful_shutdown=min(GRACE, math.ceil(settings.drain)),
            lifespan="on",
            ws_max_size=MAX_MESSAGE_BYTES,
        )
    )
    server.at_end = getattr(app.state, "at_end", ())
    return server
