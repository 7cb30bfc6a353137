"""The API on a real server, and clients with tokens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import httpx
from fastapi import FastAPI

from tidings.api import app as api
from tidings.api.authentication import Authenticator
from tidings.api.limits import Limits
from tidings.api.server import create_server, listen
from tidings.service.authorization import Access
from tidings.service.tidings import Tidings


class Service:
    """The API of a home, and clients with tokens."""

    def __init__(self, tidings: Tidings, address: str) -> None:
        self.tidings, self.address = tidings, address
        self._access, self._clients = Access(tidings.store), dict[str, httpx.Client]()

    def caller(self, name: str, *scopes: str) -> httpx.Client:
        """Return a client with a token for these scopes, by default to subscribe."""
        if name not in self._clients:
            made = self._access.make(name, scopes or ["subscribe"], None if scopes else name)
            headers = {"Authorization": f"Bearer {made.secret}"}
            self._clients[name] = httpx.Client(
                base_url=self.address, headers=headers, trust_env=False, timeout=60
            )
        return self._clients[name]

    @property
    def shop(self) -> httpx.Client:
        return self.caller("shop", "publish")

    @property
    def root(self) -> httpx.Client:
        return self.caller("root", "administer")

    def close(self) -> None:
        for client in self._clients.values():
            client.close()


@contextmanager
def served_api(tidings: Tidings, limits: Limits | None = None) -> Iterator[Service]:
    """Serve the API of a home until the block ends."""
    app = FastAPI()
    app.state.authenticator = Authenticator(Access(tidings.store))
    api.add_v1_routes(app, tidings, limits)
    with listen("127.0.0.1", 0) as listening:
        server = create_server(app)
        thread = Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        service = Service(tidings, f"http://127.0.0.1:{listening.getsockname()[1]}")
        try:
            yield service
        finally:
            service.close()
            server.should_exit = True
            thread.join()
