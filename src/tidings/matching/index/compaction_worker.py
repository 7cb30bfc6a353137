"""Background compaction: large merges run in a thread while the index is used, small ones at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from tidings.matching.compiler.plan import Compiled
from tidings.matching.index.compaction import Merge
from tidings.matching.index.index import Index

SMALL_MERGE = 20_000
"""Merging fewer subscriptions takes no longer than a batch of events, so it needs no thread."""


class CompactionWorker:
    """Changes an index and keeps the number of its segments small. Call it from one thread only."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._thread = ThreadPoolExecutor(1, "merging")
        self._running: tuple[Merge, Future[None]] | None = None

    def change(self, removed: Iterable[str], added: Compiled) -> None:
        """Remove and add subscriptions atomically, then merge segments where that is worth its cost."""
        self._index.change(removed, added, absorb=SMALL_MERGE)
        self.step()

    def step(self) -> None:
        """Adopt a finished merge, run small merges, start a large one."""
        if self._running and self._running[1].done():
            self._adopt()
        while merge := self._index.plan_merge(None if self._running is None else SMALL_MERGE):
            if merge.subscriptions > SMALL_MERGE:
                self._running = merge, self._thread.submit(merge.write)
            else:
                self._write_and_adopt(merge, merge.write)

    def finish(self) -> None:
        """Wait for the running merge and adopt it."""
        if self._running:
            self._adopt()

    def _adopt(self) -> None:
        merge, written = self._running  # type: ignore[misc]
        self._running = None
        self._write_and_adopt(merge, written.result)

    def _write_and_adopt(self, merge: Merge, write: Callable[[], None]) -> None:
        """Write and adopt a merge. If writing fails, a later merge may use its segments."""
        try:
            write()
        except BaseException:
            self._index.abandon(merge)
            raise
        self._index.adopt(merge)
