"""Feeds and their hub on loopback, served for real in a thread of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

from fastapi import FastAPI

from tests.feeds.told import Told
from tidings.feeds.hub import Hub
from tidings.feeds.hub_loop import HubLoop
from tidings.feeds.hub_rules import Rules
from tidings.interfaces.http import feeds, hub
from tidings.interfaces.http.heads import Heads
from tidings.interfaces.http.joining import join
from tidings.interfaces.http.serving import listen, server_for


@contextmanager
def served(told: Told, rules: Rules | None = None) -> Iterator[str]:
    """Serves the feeds of a store from `with` to the end of it; gives the address.

    Connections wait in the socket's queue until the server takes them, so nobody has to wait for it here.
    """
    with listen("127.0.0.1", 0) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        telling = Hub(told.see_at(url), rules)
        app = FastAPI(openapi_url=None)
        app.add_middleware(Heads)
        join(app, feeds.router_for(telling.feeds), hub.router_for(telling))
        server = server_for(app)
        thread = Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            with HubLoop(telling):
                yield url
        finally:
            server.should_exit = True
            thread.join()
