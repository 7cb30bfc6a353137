"""A provider on a real server, and clients of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.support.paths import ROOT
from tests.support.servers.http_server import served
from tidings.api.authentication import TrustPolicy
from tidings.api.metadata.provider_routes import build_provider_api
from tidings.store.store import Store

EXAMPLES = ROOT / "examples" / "metadata"
SCHEMA = EXAMPLES / "schema.ttl"
DOC = "http://example.org/doc.rdf"
HOST, SMALL = (EXAMPLES / name for name in ("host.rdf", "host-with-32MB.rdf"))
LARGE = "search CycleProvider c register c where c.serverInformation.memory > 64"
TURTLE, RDF_XML = {"Content-Type": "text/turtle"}, {"Content-Type": "application/rdf+xml"}


@contextmanager
def provided(store: Store, token: str | None = None, port: int = 0) -> Iterator[httpx.Client]:
    """Serve the provider of a store and return a client."""
    api = build_provider_api(store, TrustPolicy(token))
    with (
        served(api.router, port, at_end=[api.news.end]) as address,
        httpx.Client(base_url=address, trust_env=False, timeout=60) as client,
    ):
        yield client


def with_schema(client: httpx.Client) -> httpx.Client:
    assert client.put("/metadata/schema", content=SCHEMA.read_bytes(), headers=TURTLE).status_code == 200
    return client


def register(client: httpx.Client, uri: str = DOC, file: Path = HOST) -> httpx.Response:
    """Register an example document."""
    return client.put("/metadata/documents", params={"uri": uri}, content=file.read_bytes(), headers=RDF_XML)
