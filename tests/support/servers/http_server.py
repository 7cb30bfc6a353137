"""The HTTP endpoints on a real server in a thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Thread

from fastapi import APIRouter, FastAPI

from tidings.api.authentication import Authenticator
from tidings.api.rate_limiter import RateLimiter
from tidings.api.server import create_server, listen


@contextmanager
def served(
    router: APIRouter,
    port: int = 0,
    at_end: Sequence[Callable[[], object]] = (),
    asking: Authenticator | None = None,
    rates: RateLimiter | None = None,
) -> Iterator[str]:
    """Serve a router until the block ends, then call `at_end`; return the address."""
    app = FastAPI()
    app.state.authenticator, app.state.rates = asking, rates
    app.state.at_end = at_end
    app.include_router(router)
    with listen("127.0.0.1", port) as listening:
        server = create_server(app)
        thread = Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
