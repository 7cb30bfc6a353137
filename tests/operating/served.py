"""The whole application of a home folder, served for real in a thread, with settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import httpx

from tidings.feeds.hub import Hub
from tidings.feeds.hub_rules import Rules
from tidings.interfaces.http.app import app_for
from tidings.interfaces.http.context import EVERYTHING, Context
from tidings.interfaces.http.serving import listen, server_for
from tidings.operating.metrics import Metrics
from tidings.operating.settings import Part, Settings
from tidings.publications.parser_pool import ParserPool
from tidings.service import Tidings
from tidings.service.access import Access
from tidings.service.pipeline import counted


@dataclass
class Served:
    """Where it is, what it works with, and an administrator who asks."""

    url: str
    context: Context
    token: str

    def get(self, path: str, **more: Any) -> httpx.Response:
        headers = {"authorization": f"Bearer {self.token}"} | more.pop("headers", {})
        return httpx.get(f"{self.url}{path}", headers=headers, timeout=60, **more)


@contextmanager
def served(
    home: Path,
    parts: frozenset[Part] = EVERYTHING,
    store: str | None = None,
    parsers: ParserPool | None = None,
    **settings: Any,
) -> Iterator[Served]:
    with listen("127.0.0.1", 0) as listening, Tidings(home, store) as tidings:
        url, given = f"http://127.0.0.1:{listening.getsockname()[1]}", Settings(**settings)
        hub = Hub(tidings.feeds_at(given.public_url or url), Rules(inside=True))
        metrics = Metrics(lambda: counted(tidings.store))
        pool = parsers or ParserPool()
        context = Context(tidings, hub, given, None, parts, metrics=metrics, parsers=pool)
        server = server_for(app_for(context), context.settings)
        thread = Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        made = Access(tidings.store).make("test", ["administer"])
        try:
            yield Served(url, context, made.secret)
        finally:
            server.should_exit = True
            thread.join()
