"""One application for all tests here: to fill it takes a second, and no test may change what is in it."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.api.routes.place import SECRET, Place, bearing, fill
from tests.api.routes.route_walk import Route, is_json, methods_of, names_of, walk
from tests.support.servers.application import served
from tidings.api.app import create_app
from tidings.service.authorization import Access


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    home = tmp_path_factory.mktemp("home")
    with served(home, rpc_token="not-of-the-store") as at:
        ids = fill(at)
        make = Access(at.context.tidings.store).make
        secrets = {
            "ana": make("phone", ["subscribe"], "ana").secret,
            "bo": make(f"{SECRET} token", ["subscribe"], "bo").secret,
            "shop": make("shop", ["publish"]).secret,
            "root": at.token,
        }
        clients = {
            name: httpx.Client(base_url=at.url, headers=bearing(each)) for name, each in secrets.items()
        }
        found = list(walk(create_app(at.context).routes))
        routes = [
            Route(method, path, names_of(route), getattr(route, "takes", None), is_json(route))
            for path, route in found
            for method in methods_of(route)
        ]
        sockets = [path for path, route in found if not methods_of(route)]
        yield Place(
            at, routes, sockets, ids, **clients, nobody=httpx.Client(base_url=at.url), secrets=secrets
        )
        for client in clients.values():
            client.close()
