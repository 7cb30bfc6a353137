"""Providers on real servers, each with its own store, that restart at the same address."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.support.paths import ROOT
from tests.support.servers.http_server import served
from tests.support.servers.ports import free_port
from tidings.api.authentication import TrustPolicy
from tidings.api.metadata.provider_routes import build_provider_api
from tidings.metadata.provider.provider import Provider
from tidings.metadata.replication.log_follower import FollowWorker
from tidings.metadata.replication.routing import open_log
from tidings.store.database import sqlite_url
from tidings.store.store import Store, open_store

EXAMPLES = ROOT / "examples" / "metadata"
SCHEMA = (EXAMPLES / "schema.ttl").read_bytes()
RDF_XML, TURTLE = {"Content-Type": "application/rdf+xml"}, {"Content-Type": "text/turtle"}
PAGE = 3
"""Entries on a page, so that there are several."""


def host(memory: int) -> bytes:
    """Return a document about a server with the given memory."""
    return (EXAMPLES / "host.rdf").read_bytes().replace(b'memory="92"', f'memory="{memory}"'.encode())


def uri(number: int) -> str:
    return f"http://example.org/{number}.rdf"


@dataclass
class Node:
    """A provider: its folder and its address."""

    folder: Path
    port: int = field(default_factory=free_port)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def store_url(self) -> str:
        return sqlite_url(self.folder / "store.db")

    @contextmanager
    def store(self) -> Iterator[Store]:
        self.folder.mkdir(exist_ok=True)
        with open_store(self.store_url) as store:
            yield store

    @contextmanager
    def run(
        self, follow: str | None = None, log: str | None = None, token: str | None = None
    ) -> Iterator[RunningProvider]:
        """Serve the provider, and follow another one if it should, or did before."""
        with self.store() as store, ExitStack() as stack:
            provider = Provider(store)
            opened_log = open_log(store, provider, follow, log)
            worker = (
                stack.enter_context(FollowWorker(store, provider, opened_log, PAGE)) if opened_log else None
            )
            api = build_provider_api(store, TrustPolicy(token), worker)
            address = stack.enter_context(served(api.router, self.port, at_end=[api.news.end]))
            client: AbstractContextManager[httpx.Client] = httpx.Client(
                base_url=address, trust_env=False, timeout=60
            )
            yield RunningProvider(stack.enter_context(client))


@dataclass
class RunningProvider:
    """A running provider."""

    client: httpx.Client

    def put(self, number: int, memory: int) -> httpx.Response:
        return self.client.put(
            "/metadata/documents", params={"uri": uri(number)}, content=host(memory), headers=RDF_XML
        )

    def delete(self, number: int) -> httpx.Response:
        return self.client.delete("/metadata/documents", params={"uri": uri(number)})

    def load_schema(self) -> httpx.Response:
        return self.client.put("/metadata/schema", content=SCHEMA, headers=TURTLE)

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = self.client.get("/metadata/status").json()
        return status

    def documents(self) -> list[str]:
        return [each["uri"] for each in self.client.get("/metadata/documents").json()]

    def wait_for(self, position: int) -> None:
        """Wait until the provider has applied the log up to a position.

        After a snapshot, its log begins later.
        """
        parameters = {"after": position - 1, "wait": 30}
        while (answer := self.client.get("/metadata/log", params=parameters)).status_code != 410:
            if answer.json()["entries"]:
                return


def replicated_state(store: Store) -> dict[str, Any]:
    """Return all that must be the same at equal positions."""
    file = store.metadata.schema()
    return {
        "position": store.metadata.position(),
        "schema": file and (file.media_type, file.body),
        "resources": [store.metadata.resources(each) for each, _ in store.metadata.documents()],
        "dead letters": [(each.position, each.reason) for each in store.dead_letters.read()],
    }
