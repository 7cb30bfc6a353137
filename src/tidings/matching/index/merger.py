"""Merging beside the work: large merges in a thread, while the index is matched and changed; small ones at once."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from tidings.matching.index.index import Index
from tidings.matching.index.merging import Merge

AT_ONCE = 20_000
"""Merging fewer subscriptions takes no longer than a batch of events: nobody need wait for a thread."""


class Merger:
    """Keeps the segments of an index few. `step` is to be called after changes, in the thread that makes them."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._thread = ThreadPoolExecutor(1, "merging")
        self._running: tuple[Merge, Future[None]] | None = None

    def step(self) -> None:
        """Adopt the merge that has become ready, do what is small, begin what is large."""
        if self._running and self._running[1].done():
            self._adopt()
        while merge := self._index.plan_merge(None if self._running is None else AT_ONCE):
            if merge.subscriptions > AT_ONCE:
                self._running = merge, self._thread.submit(merge.write)
            else:
                merge.write()
                self._index.adopt(merge)

    def finish(self) -> None:
        """Wait for the merge that is under way, and adopt it."""
        if self._running:
            self._adopt()

    def _adopt(self) -> None:
        merge, written = self._running  # type: ignore[misc]
        self._running = None
        written.result()
        self._index.adopt(merge)
