"""A log in a database that several providers share: each of them puts in what is registered with it, and applies all.

The database gives out the positions, so nobody has to lead. It is a store of its own, of which only the log is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Event
from time import monotonic
from typing import Any

from tidings.backbone.log import Forwarded
from tidings.closing import Closing
from tidings.errors import SetupError
from tidings.metadata.log import Draft
from tidings.metadata.log_pages import Page
from tidings.provider import Provider
from tidings.store import open_store

LOOK_SECONDS = 0.2


class SharedLog(Closing):
    """The log in the store at an address, for one of the providers that share it."""

    has_snapshots = False

    def __init__(self, url: str, provider: Provider) -> None:
        self._store, self._provider = open_store(url), provider
        self.name = self._store.database.name
        self._ended = Event()

    def page(self, after: int, limit: int, wait: float) -> Page:
        """Entries after a position. Nobody is told by the database that there is something new: it is looked for."""
        until = monotonic() + wait
        while True:
            page = self._store.backbone.page(after, limit)
            left = until - monotonic()
            if page.entries or left <= 0 or self._ended.wait(min(left, LOOK_SECONDS)):
                return page

    @contextmanager
    def snapshot(self) -> Iterator[Iterator[Mapping[str, Any]]]:
        """There is none: nobody applies anything in the database of the log itself."""
        hint = "begin with the snapshot of another provider: tidings provider follow URL --once"
        raise SetupError("the log begins later than this provider ends", where=self.name, hint=hint)
        yield iter(())

    def forward(self, draft: Draft, hops: int = 0) -> Forwarded:
        """Put something into the log, after it was checked by what is applied here now.

        What was registered elsewhere may be removed before that is applied here: it stands in the log.
        """
        self._provider.check([draft])
        self._provider.refuse_absent([draft], self._store.metadata.log)
        [position] = self._store.metadata.log.append([draft])
        return Forwarded(200, {"uri": draft.uri, "position": position})

    def end(self) -> None:
        self._ended.set()

    def close(self) -> None:
        self._store.close()
