"""The application on loopback, served for real in a thread of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from tests.feeds.told import Told
from tidings.feeds.hub import Hub
from tidings.feeds.hub_rules import Rules
from tidings.interfaces.http.app import app_for
from tidings.interfaces.http.context import Context
from tidings.interfaces.http.serving import listen, server_for
from tidings.service import Tidings


@contextmanager
def served(told: Told, home: Path, rules: Rules | None = None) -> Iterator[str]:
    """Serves the feeds of a store from `with` to the end of it; gives the address.

    Connections wait in the socket's queue until the server takes them, so nobody has to wait for it here.
    """
    with listen("127.0.0.1", 0) as listening, Tidings(home) as tidings:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        server = server_for(app_for(Context(tidings, Hub(told.see_at(url), rules))))
        thread = Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield url
        finally:
            server.should_exit = True
            thread.join()
