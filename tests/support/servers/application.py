"""The whole application of a home folder, served in a thread, with settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import httpx

from tidings.api.app import create_app
from tidings.api.server import create_server, listen
from tidings.feeds.hub.hub import Hub, HubPolicy
from tidings.operations.metrics import Metrics
from tidings.operations.settings import ServicePart, Settings
from tidings.parsers.parser_pool import ParserPool
from tidings.service.authorization import Access
from tidings.service.context import ALL_PARTS, ServiceContext
from tidings.service.pipeline_status import count_totals
from tidings.service.tidings import Tidings


@dataclass
class Served:
    """The address and the context of a served application, and the token of an administrator."""

    url: str
    context: ServiceContext
    token: str

    def get(self, path: str, **more: Any) -> httpx.Response:
        headers = {"authorization": f"Bearer {self.token}"} | more.pop("headers", {})
        return httpx.get(f"{self.url}{path}", headers=headers, timeout=60, **more)


@contextmanager
def served(
    home: Path,
    parts: frozenset[ServicePart] = ALL_PARTS,
    store: str | None = None,
    parsers: ParserPool | None = None,
    **settings: Any,
) -> Iterator[Served]:
    with listen("127.0.0.1", 0) as listening, Tidings(home, store) as tidings:
        url, given = f"http://127.0.0.1:{listening.getsockname()[1]}", Settings(**settings)
        hub = Hub(tidings.feeds_at(given.public_url or url), HubPolicy(inside=True))
        metrics = Metrics(lambda: count_totals(tidings.store))
        pool = parsers or ParserPool()
        context = ServiceContext(tidings, hub, given, None, parts, metrics=metrics, parsers=pool)
        server = create_server(create_app(context), context.settings)
        thread = Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        made = Access(tidings.store).make("test", ["administer"])
        try:
            yield Served(url, context, made.secret)
        finally:
            server.should_exit = True
            thread.join()
