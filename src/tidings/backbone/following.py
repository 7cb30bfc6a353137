"""Following a log: what stands in it is applied here, in order, so that this provider becomes equal to the others.

    position here        1 2 3 4 5
    the log              1 2 3 4 5 6 7 8 9       6 to 9 are fetched and applied, a page at a time

A page is applied in one transaction, which moves the position. So whoever is killed in between goes on where it was,
and a page that comes twice changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidings.backbone.circles import refuse_circle
from tidings.backbone.log import Log
from tidings.backbone.peer import Unreachable
from tidings.errors import Gone, InputError
from tidings.metadata.log import Entry
from tidings.metadata.log_pages import Page
from tidings.provider import Provider
from tidings.store import Store

PAGE = 500
"""How many entries are fetched at a time."""


class Diverged(InputError):
    """The log is not the one that this provider has applied: it cannot be followed from here."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a look at the log came to: where it ended then, and how many entries were applied; or a snapshot was."""

    head: int
    applied: int
    restored: bool = False


class Follower:
    """A provider that follows a log."""

    def __init__(self, store: Store, provider: Provider, log: Log, page: int = PAGE) -> None:
        self._store, self._provider, self._log, self._page = store, provider, log, page
        self._agreed_with: str | None = None

    @property
    def position(self) -> int:
        """How far the log is applied here."""
        return self._provider.position

    def step(self, wait: float = 0) -> Step:
        """Apply the next page of the log; if there is nothing new, it is waited for."""
        try:
            page = self._next(wait)
        except Gone:
            return self._restore()
        if self._log.has_snapshots and self.position == 0 and page.head > self._page:
            return self._restore()  # which is less work than everything that led there
        return self._apply(page)

    def catch_up(self) -> int:
        """Apply everything that stands in the log now, and say how many entries those were."""
        done = self.step()
        head, count = done.head, done.applied
        while self.position < head:
            count += self.step().applied
        return count

    def _next(self, wait: float) -> Page:
        if self._agreed_with is None:
            self._agree()
        page = self._log.page(self.position, self._page, wait)
        if page.provider != self._agreed_with:
            self._agree()
        return page

    def _apply(self, page: Page) -> Step:
        if page.head < self.position:
            raise self._diverged(f"position {self.position}", f"up to {page.head}")
        before = self.position
        if page.entries:
            self._provider.apply(page.entries)
        if self.position == before < page.head:  # it would be asked for ever
            hint = "is it a provider of this version?"
            received = f"nothing after {before} of {page.head}"
            raise Unreachable("the log has a gap", where=self._log.name, received=received, hint=hint)
        return Step(page.head, len(page.entries))

    def _restore(self) -> Step:
        """Begin with a snapshot: the log does not reach back to here, or is much longer than what it came to."""
        before = self.position
        if before and self._store.backbone.leader() is None:
            raise self._diverged(f"position {before}", "a log that begins later")
        with self._log.snapshot() as lines:
            self._provider.restore(lines)
        self._note()
        return Step(self.position, 0, restored=True)

    def _agree(self) -> None:
        """Look whether the last entry that was applied here is the same there, and note that this log is followed.

        Equal positions mean equal metadata only if the logs are one. What leads to two: a provider that has
        registered something on its own, or one that was set up anew in the place of the other.
        """
        refuse_circle(self._provider.id, self._log)
        here = self.position
        own = self._provider.log.read(here - 1, 1) if self._provider.log.first() <= here else []
        page = self._log.page(max(0, here - 1), 1, 0) if own else self._log.page(here, 1, 0)
        if own and page.entries != (own[0],):
            there = _shown(page.entries[0]) if page.entries else f"up to {page.head}"
            raise self._diverged(_shown(own[0]), there)
        self._agreed_with = page.provider
        self._note()

    def _note(self) -> None:
        """From now on nothing is registered here by itself."""
        if self._store.backbone.leader() != self._log.name:
            self._store.backbone.follow(self._log.name)

    def _diverged(self, here: str, there: str) -> Diverged:
        what = "this provider has something else in its log than the one it should follow"
        hint = "follow with a new home, or lead with this one"
        return Diverged(what, where=self._log.name, received=f"{there} there, {here} here", hint=hint)


def _shown(entry: Entry) -> str:
    return f"{entry.position}: {entry.what.value} {entry.uri}".rstrip()
