"""A log in a database that several providers share: a store of its own, of which only the log is used."""

from __future__ import annotations

from collections.abc import Collection
from threading import Event
from time import monotonic

from tidings.backbone.log import Shared
from tidings.metadata.log import Draft, What
from tidings.metadata.log_pages import Page
from tidings.provider import Provider
from tidings.store import open_store

LOOK_SECONDS = 0.2


class SharedLog(Shared):
    """The log in the store at an address, for one of the providers that share it."""

    def __init__(self, url: str, provider: Provider) -> None:
        self._store = open_store(url)
        self._ended = Event()
        super().__init__(self._store.database.name, provider)

    def page(self, after: int, limit: int, wait: float) -> Page:
        """Entries after a position. Nobody is told by the database that there is something new: it is looked for."""
        until = monotonic() + wait
        while True:
            page = self._store.backbone.page(after, limit)
            left = until - monotonic()
            if page.entries or left <= 0 or self._ended.wait(min(left, LOOK_SECONDS)):
                return page

    def append(self, draft: Draft) -> int:
        [position] = self._store.metadata.log.append([draft])
        return position

    def last_of(self, uris: Collection[str], after: int) -> dict[str, What]:
        return self._store.metadata.log.last_of(uris, after)

    def end(self) -> None:
        self._ended.set()

    def close(self) -> None:
        self._store.close()
