"""One application for all tests of this folder: it takes a second to fill, and no test may change its data."""

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
        routed = list(walk(create_app(at.context).routes))
        routes = [
            Route(method, path, names_of(route), getattr(route, "takes", None), is_json(route))
            for path, route in routed
            for method in methods_of(route)
        ]
        sockets = [path for path, route in routed if not methods_of(route)]
        yield Place(
            at, routes, sockets, ids, **clients, anonymous=httpx.Client(base_url=at.url), secrets=secrets
        )
        for client in clients.values():
            client.close()
