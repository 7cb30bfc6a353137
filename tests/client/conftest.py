"""The whole service on a real server, and clients with tokens of their own."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread

import pytest

from tidings.api.app import create_app
from tidings.api.server import create_server, listen
from tidings.feeds.hub.hub import Hub
from tidings.operations.settings import ServicePart, Settings
from tidings.service.authorization import Access
from tidings.service.context import ServiceContext
from tidings.service.tidings import Tidings


class Service:
    """A served home, and tokens for it."""

    def __init__(self, tidings: Tidings, address: str) -> None:
        self.tidings, self.address = tidings, address

    def token(self, subscriber: str | None, *scopes: str) -> str:
        return Access(self.tidings.store).make("test", scopes, subscriber).secret


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with Tidings(tmp_path_factory.mktemp("home")) as tidings, listen("127.0.0.1", 0) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        settings = Settings(delivery={"private_callbacks": True})
        context = ServiceContext(
            tidings, Hub(tidings.feeds_at(address)), settings, parts=frozenset({ServicePart.API})
        )
        server = create_server(create_app(context))
        thread = Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield Service(tidings, address)
        finally:
            server.should_exit = True
            thread.join()
