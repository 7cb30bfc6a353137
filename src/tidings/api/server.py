"""Serving the application with uvicorn until somebody asks it to end."""

from __future__ import annotations

import math
import os
import resource as process_limits
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from tidings.api.middleware.connection import Connection
from tidings.api.middleware.request_guard import RequestGuard
from tidings.api.middleware.security_headers import SecurityHeaders
from tidings.errors import SetupError
from tidings.operations.settings import Settings

GRACE = 5
"""Seconds that requests under way have to end."""

SEND_TIMEOUT_SECONDS = 60.0
"""Seconds for which a client may take nothing of what is written to it."""

MAX_OPEN_FILES = 65_536
MAX_MESSAGE_BYTES = 65_536
"""Bytes of a message from a WebSocket's client: acknowledgements and tokens are short."""


class Server(uvicorn.Server):
    """Leaves signals to the caller, who sets `should_exit`. When it ends, `at_end` is called: requests that wait for
    something are answered then.
    """

    at_end: Sequence[Callable[[], object]] = ()

    @property
    def under_way(self) -> int:
        """How many requests are being answered."""
        return len(self.server_state.tasks)

    @property
    def patience(self) -> int:
        """Seconds that they have when it ends."""
        return self.config.timeout_graceful_shutdown or 0

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for end in self.at_end:
            end()
        await super().shutdown(sockets)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes one that is free.

    What is written goes out at once. Else the body of an answer would wait until the client has confirmed its head, and
    clients take their time with that: 40 ms. asyncio takes care of it only for sockets that it makes itself.
    """
    try:
        kind = socket.AF_INET6 if ":" in host else socket.AF_INET
        found = _set_send_timeout(socket.create_server((host, port), family=kind, backlog=1024))
        found.setsockopt(
            socket.IPPROTO_TCP, socket.TCP_NODELAY, 1
        )  # those that are accepted have it from this one
        return found
    except (OSError, UnicodeError) as error:
        hint = "is it served already? choose another port with --port, or another address with --host"
        number = error.errno or 0 if isinstance(error, OSError) else 0
        received = (
            os.strerror(number) if number > 0 else str(error)
        )  # Python's words say the address once more
        raise SetupError(
            "cannot listen here", where=f"{host}:{port}", received=received, hint=hint
        ) from error


def _set_send_timeout(listening: socket.socket) -> socket.socket:
    """Connections of a client that takes nothing any more end. To close one waits until what was written has been
    taken: without this a client that never does would keep it, and its memory, for ever.
    """
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(SEND_TIMEOUT_SECONDS * 1_000))
    return listening


def allow_many_files() -> int:
    """Raise the soft limit of open files to what this process may have: each client is one, and shells give 1,024. How
    many there are now.
    """
    soft, hard = process_limits.getrlimit(process_limits.RLIMIT_NOFILE)
    wanted = MAX_OPEN_FILES if hard == process_limits.RLIM_INFINITY else min(hard, MAX_OPEN_FILES)
    if soft != process_limits.RLIM_INFINITY and soft < wanted:
        process_limits.setrlimit(process_limits.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return soft


def create_server(app: FastAPI, settings: Settings | None = None) -> Server:
    """Requests are not logged: addresses of feeds are secrets.

    They are read by h11, whatever else is installed: what uvicorn would rather take, httptools, holds the head of a
    request however long it gets, before anybody has shown a token. `Connection` limits the time of heads as well.
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
            forwarded_allow_ips=settings.forwarded_from,
            timeout_graceful_shutdown=min(GRACE, math.ceil(settings.drain)),
            lifespan="on",
            ws_max_size=MAX_MESSAGE_BYTES,
        )
    )
    server.at_end = getattr(app.state, "at_end", ())
    return server
