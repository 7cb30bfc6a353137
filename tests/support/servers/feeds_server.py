"""Feeds and their hub on loopback, served in a thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

from fastapi import FastAPI

from tests.feeds.hub.callbacks import HubLoop
from tests.support.stores.notified_store import NotifiedStore
from tidings.api import feeds
from tidings.api.middleware import HeadRequestMiddleware
from tidings.api.routes import join_routers
from tidings.api.server import create_server, listen
from tidings.feeds.hub.hub import Hub, HubPolicy


@contextmanager
def served(notified_store: NotifiedStore, rules: HubPolicy | None = None) -> Iterator[str]:
    """Serve the feeds of a store until the block ends, and return the address.

    Connections wait in the queue of the socket until the server accepts them, so no wait is needed here.
    """
    with listen("127.0.0.1", 0) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        hub = Hub(notified_store.see_at(url), rules)
        app = FastAPI(openapi_url=None)
        app.add_middleware(HeadRequestMiddleware)
        join_routers(app, feeds.router_for(hub.feeds), feeds.hub_router_for(hub))
        server = create_server(app)
        thread = Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            with HubLoop(hub):
                yield url
        finally:
            server.should_exit = True
            thread.join()
