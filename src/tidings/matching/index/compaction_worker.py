"""Merging beside the work: large merges in a thread, while the index is matched and changed; small ones at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from tidings.matching.compiler.plan import Compiled
from tidings.matching.index.compaction import Merge
from tidings.matching.index.index import Index

AT_ONCE = 20_000
"""Merging fewer subscriptions takes no longer than a batch of events: nobody need wait for a thread."""


class CompactionWorker:
    """Changes an index and keeps its segments few. All calls come from one thread."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._thread = ThreadPoolExecutor(1, "merging")
        self._running: tuple[Merge, Future[None]] | None = None

    def change(self, removed: Iterable[str], added: Compiled) -> None:
        """Remove some and add others in one step, and merge what is worth merging then."""
        self._index.change(removed, added, take_up=AT_ONCE)
        self.step()

    def step(self) -> None:
        """Adopt the merge that has become ready, do what is small, begin what is large."""
        if self._running and self._running[1].done():
            self._adopt()
        while merge := self._index.plan_merge(None if self._running is None else AT_ONCE):
            if merge.subscriptions > AT_ONCE:
                self._running = merge, self._thread.submit(merge.write)
            else:
                self._finished(merge, merge.write)

    def finish(self) -> None:
        """Wait for the merge that is under way, and adopt it."""
        if self._running:
            self._adopt()

    def _adopt(self) -> None:
        merge, written = self._running  # type: ignore[misc]
        self._running = None
        self._finished(merge, written.result)

    def _finished(self, merge: Merge, written: Callable[[], None]) -> None:
        """Adopt a merge when it is written. One that fails leaves its segments to a later one."""
        try:
            written()
        except BaseException:
            self._index.abandon(merge)
            raise
        self._index.adopt(merge)
