"""Follower of a log: it applies entries in order, so that this provider becomes equal to the others.

    position here        1 2 3 4 5
    the log              1 2 3 4 5 6 7 8 9       6 to 9 are fetched and applied, a page at a time

A page is applied in one transaction, which also advances the position. So a killed follower continues where it was, and
applying a page twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from random import Random
from typing import Any
from urllib.parse import urlsplit

from tidings.core.lifecycle import Worker
from tidings.errors import Gone, InputError, TidingsError
from tidings.metadata.log import LogEntry, LogPage
from tidings.metadata.provider.provider import Provider
from tidings.metadata.replication.peer import Peer, ReplicationLog, Unreachable
from tidings.store.store import Store

# In a cycle of followers, no provider owns the log, and registrations would be forwarded forever:
#
#     here ──follows──▶ b ──follows──▶ c ──follows──▶ here
#
# The provider that closes the cycle detects it by following the chain of leaders. If one in the chain does not respond,
# the check ends: it may be down for now, and forwarded registrations count their hops anyway.


MAX_CHAIN_LENGTH = 10
"""Maximum number of providers of the chain that are queried."""
STATUS_TIMEOUT_SECONDS = 5.0
"""The timeout of each, except for the direct leader, which has the usual one."""
_HERE = frozenset(("localhost", "127.0.0.1", "::1"))


class ReplicationCycle(InputError):
    """Providers follow each other, or one follows itself."""


def check_acyclic_following(own: str, log: ReplicationLog) -> None:
    """Raise ReplicationCycle if the chain of leaders of a log ends at the provider with id `own`."""
    if not isinstance(log, Peer):
        return
    path, status = [log.name], log.status()
    while status.get("provider") != own:
        url = status.get("leader")
        if (
            not isinstance(url, str)
            or not url.startswith("http")
            or url in path
            or len(path) == MAX_CHAIN_LENGTH
        ):
            return
        path.append(url)
        status = _fetch_status(url)
    raise _circle(path)


def check_not_own_address(log: ReplicationLog, own: Collection[str]) -> None:
    """Raise ReplicationCycle if a log is served at one of the own addresses, which do not respond yet."""
    if isinstance(log, Peer) and _place(log.name) in map(_place, own):
        log.close()
        raise _circle([log.name])


def _fetch_status(url: str) -> dict[str, Any]:
    """Fetch the status of a provider; empty if it does not respond."""
    try:
        with Peer(url) as peer:
            return peer.status(STATUS_TIMEOUT_SECONDS)
    except TidingsError:
        return {}


def _place(url: str) -> tuple[str | None, int] | None:
    """Return the host and the port of an address; None if it is invalid, which is reported elsewhere."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return None
    return "localhost" if parts.hostname in _HERE else parts.hostname, port


def _circle(path: list[str]) -> ReplicationCycle:
    if len(path) == 1:
        hint = "follow another one, or run `tidings provider lead` if this one should own the log"
        return ReplicationCycle("a provider cannot follow itself", received=path[0], hint=hint)
    hint = "run `tidings provider lead` at the one that should own the log, and remove --follow there"
    return ReplicationCycle("providers follow each other in a cycle", received=" -> ".join(path), hint=hint)


PAGE_ENTRIES = 500
"""Entries per page."""


class LogsDiverged(InputError):
    """The log is not the one that this provider has applied, so it cannot be followed."""


@dataclass(frozen=True, slots=True)
class FollowStep:
    """The result of one step: the head of the log, and the number of applied entries, or a restored snapshot."""

    head: int
    applied: int
    restored: bool = False


class LogFollower:
    """A provider that follows a log."""

    def __init__(
        self, store: Store, provider: Provider, log: ReplicationLog, page: int = PAGE_ENTRIES
    ) -> None:
        self._store, self._provider, self._log, self._page = store, provider, log, page
        self._agreed_with: str | None = None

    @property
    def position(self) -> int:
        """The last position of the log that is applied here."""
        return self._provider.position

    def step(self, wait: float = 0) -> FollowStep:
        """Apply the next page of the log; wait for one if there is nothing new."""
        try:
            page = self._next(wait)
        except Gone:
            return self._restore()
        if self._log.has_snapshots and self.position == 0 and page.head > self._page:
            return self._restore()  # a snapshot is less work than replaying a long log
        return self._apply(page)

    def catch_up(self) -> int:
        """Apply all entries up to the current head, and return their number."""
        done = self.step()
        head, count = done.head, done.applied
        while self.position < head:
            count += self.step().applied
        return count

    def _next(self, wait: float) -> LogPage:
        if self._agreed_with is None:
            self._agree()
        page = self._log.page(self.position, self._page, wait)
        if page.provider != self._agreed_with:
            self._agree()
        return page

    def _apply(self, page: LogPage) -> FollowStep:
        if page.head < self.position:
            raise self._diverged_error(f"position {self.position}", f"up to {page.head}")
        position_before = self.position
        if page.entries:
            self._provider.apply(page.entries)
        if self.position == position_before < page.head:  # without this check it would loop forever
            hint = "is it a provider of the same version?"
            received = f"nothing after {position_before} of {page.head}"
            raise Unreachable("the log has a gap", where=self._log.name, received=received, hint=hint)
        return FollowStep(page.head, len(page.entries))

    def _restore(self) -> FollowStep:
        """Restore a snapshot: the log was trimmed, or is much longer than a page."""
        position_before = self.position
        if position_before and self._store.replication.leader() is None:
            raise self._diverged_error(f"position {position_before}", "a log that begins later")
        with self._log.snapshot() as lines:
            self._provider.restore(lines)
        self._record_leader()
        return FollowStep(self.position, 0, restored=True)

    def _agree(self) -> None:
        """Check that the last entry applied here is the same there, and record that this log is followed.

        Equal positions mean equal metadata only in the same log. Logs diverge if a provider registers documents on its
        own, or if a new provider takes the place of another.
        """
        check_acyclic_following(self._provider.id, self._log)
        here = self.position
        own = self._provider.log.read(here - 1, 1) if self._provider.log.first() <= here else []
        page = self._log.page(max(0, here - 1), 1, 0) if own else self._log.page(here, 1, 0)
        if own and page.entries != (own[0],):
            there = _show_entry(page.entries[0]) if page.entries else f"up to {page.head}"
            raise self._diverged_error(_show_entry(own[0]), there)
        self._agreed_with = page.provider
        self._record_leader()

    def _record_leader(self) -> None:
        """Record the followed log, so that direct registrations are refused."""
        if self._store.replication.leader() != self._log.name:
            self._store.replication.follow(self._log.name)

    def _diverged_error(self, here: str, there: str) -> LogsDiverged:
        message = "the log of this provider differs from the one to follow"
        hint = "follow with a new home, or lead with this one"
        return LogsDiverged(message, where=self._log.name, received=f"{there} there, {here} here", hint=hint)


def _show_entry(entry: LogEntry) -> str:
    return f"{entry.position}: {entry.what.value} {entry.uri}".rstrip()


WAIT_SECONDS = 20.0
"""The timeout of long polling."""
INITIAL_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS = 0.2, 10.0


def backoff_seconds(failures: int, random: Random) -> float:
    """Return the delay after consecutive failures: exponential, with jitter so that followers do not retry together."""
    return min(MAX_BACKOFF_SECONDS, INITIAL_BACKOFF_SECONDS * 2.0 ** min(failures - 1, 20)) * random.uniform(
        0.5, 1.5
    )


class FollowWorker(Worker):
    """A worker that follows a log, with exponential backoff after failures."""

    def __init__(
        self,
        store: Store,
        provider: Provider,
        log: ReplicationLog,
        page: int = PAGE_ENTRIES,
        random: Random | None = None,
    ) -> None:
        super().__init__("replication", INITIAL_BACKOFF_SECONDS)
        self.log, self.provider = log, provider
        self.head: int | None = None
        """The end of the log when it was last read."""
        self._follower, self._random = LogFollower(store, provider, log, page), random or Random()

    def run_once(self) -> None:
        step = self._follower.step(WAIT_SECONDS)
        self.head = step.head
        if not step.applied:  # without long polling at the server, a delay prevents a tight loop
            self.stopping.wait(INITIAL_BACKOFF_SECONDS)

    def interrupt(self) -> None:
        """Cancel the long poll; a page that is being applied is applied."""
        self.log.end()

    def close(self) -> None:
        self.log.close()

    def retry_seconds(self, failures: int) -> float:
        return backoff_seconds(failures, self._random)
