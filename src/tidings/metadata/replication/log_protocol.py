"""Protocols of a replicated log: another provider's, or one that several providers share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from tidings.core.closeable import Closeable
from tidings.errors import SetupError
from tidings.metadata.log import LogDraft, LogPage, Operation
from tidings.metadata.provider.provider import Provider


class ReplicationLog(Protocol):
    """A log that a provider can follow; with `has_snapshots`, it can start from a snapshot."""

    name: str
    has_snapshots: bool

    def page(self, after: int, limit: int, wait: float) -> LogPage:
        """Return the entries after a position; wait if there are none. Raise `Gone` if they were trimmed."""

    def snapshot(self) -> AbstractContextManager[Iterator[Mapping[str, Any]]]:
        """Stream a snapshot, line by line."""

    def end(self) -> None:
        """Cancel waiting calls."""

    def close(self) -> None:
        """Release connections."""


@dataclass(frozen=True, slots=True)
class ForwardedResponse:
    """The response to a forwarded registration: an HTTP status and its JSON body."""

    status: int
    answer: dict[str, Any]

    @property
    def position(self) -> int | None:
        """The position of the entry in the log; None if it was rejected."""
        position = self.answer.get("position")
        return position if self.status == 200 and isinstance(position, int) else None


class LogKeeper(Protocol):
    """The owner of a log, which assigns positions."""

    name: str

    def forward(self, draft: LogDraft, hops: int) -> ForwardedResponse:
        """Append a valid draft to the log; `hops` is how often it was forwarded before."""


class SharedReplicationLog(Closeable):
    """A log that several providers share: each appends its registrations and applies all entries.

    The database or broker assigns positions, so there is no leader.
    """

    has_snapshots = False

    def __init__(self, name: str, provider: Provider) -> None:
        self.name, self._provider = name, provider

    @abstractmethod
    def page(self, after: int, limit: int, wait: float) -> LogPage:
        """See `ReplicationLog`."""

    @abstractmethod
    def append(self, draft: LogDraft) -> int:
        """Append a draft durably, and return its position."""

    @abstractmethod
    def last_of(self, uris: Collection[str], after: int) -> dict[str, Operation]:
        """Return the operation of the last entry after a position for each of these documents that has one."""

    @abstractmethod
    def end(self) -> None:
        """See `ReplicationLog`."""

    @contextmanager
    def snapshot(self) -> Iterator[Iterator[Mapping[str, Any]]]:
        """Raise SetupError: the database or broker has entries only, and no metadata."""
        hint = "start with the snapshot of another provider: tidings provider follow URL --once"
        raise SetupError("the log was trimmed after this provider's position", where=self.name, hint=hint)
        yield iter(())

    def forward(self, draft: LogDraft, hops: int = 0) -> ForwardedResponse:
        """Validate a draft against the state here and append it to the log.

        A document that was registered elsewhere can be removed before that is applied here: the log has its entry.
        """
        self._provider.check([draft])
        self._provider.check_removals([draft], self)
        return ForwardedResponse(200, {"uri": draft.uri, "position": self.append(draft)})
