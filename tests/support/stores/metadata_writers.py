"""Concurrent changes of a provider by other processes."""

from __future__ import annotations

from itertools import count
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier

from tests.support.stores.server_documents import body, registered
from tidings.metadata.provider.provider import DocumentSource, Provider
from tidings.store.store import open_store

SIZE = 100


def registers(url: str, name: str, start: Barrier, times: int) -> None:
    """Register documents, append others to the log, and apply all entries of the log."""
    with open_store(url) as store:
        provider = Provider(store, batch=3)
        start.wait()
        for number in range(times):
            provider.append([registered("host.rdf", f"http://example.org/{name}/later/{number}")])
            if number % 3 == 0:
                provider.catch_up()
            provider.register(f"http://example.org/{name}/{number}", body("host.rdf"), "application/rdf+xml")


def registers_until_killed(url: str, progress: Connection) -> None:
    """Register many documents at a time, and report the position after each batch."""
    with open_store(url) as store:
        provider = Provider(store)
        for number in count(len(provider.documents()) // SIZE):
            uris = (f"http://example.org/{number}/{i}" for i in range(SIZE))
            documents = (DocumentSource(uri, body("host.rdf"), "application/rdf+xml") for uri in uris)
            progress.send(provider.register_many(documents).position)
