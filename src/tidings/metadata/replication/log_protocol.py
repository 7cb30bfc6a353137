"""A log that is followed: another provider's, or one that several providers share."""

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
    """What a follower needs of a log; `has_snapshots` if there is something to begin with."""

    name: str
    has_snapshots: bool

    def page(self, after: int, limit: int, wait: float) -> LogPage:
        """The entries after a position; if there are none, they are waited for. `Gone` if they were trimmed."""

    def snapshot(self) -> AbstractContextManager[Iterator[Mapping[str, Any]]]:
        """Everything at once, line by line."""

    def end(self) -> None:
        """Let nobody wait any more."""

    def close(self) -> None:
        """Let go of what is held."""


@dataclass(frozen=True, slots=True)
class ForwardedResponse:
    """What whoever keeps the log answered: a status of HTTP, and what goes with it."""

    status: int
    answer: dict[str, Any]

    @property
    def position(self) -> int | None:
        """Where the entry stands in the log; nothing if it was refused."""
        found = self.answer.get("position")
        return found if self.status == 200 and isinstance(found, int) else None


class LogKeeper(Protocol):
    """Whoever keeps a log."""

    name: str

    def forward(self, draft: LogDraft, hops: int) -> ForwardedResponse:
        """Have something put into the log, if nothing is wrong with it; `hops` is how often it was handed on before."""


class SharedReplicationLog(Closeable):
    """A log that several providers share, for one of them: each puts in what is registered with it, and applies all.

    Whatever keeps the log gives out the positions, so nobody has to lead.
    """

    has_snapshots = False

    def __init__(self, name: str, provider: Provider) -> None:
        self.name, self._provider = name, provider

    @abstractmethod
    def page(self, after: int, limit: int, wait: float) -> LogPage:
        """As of `Log`."""

    @abstractmethod
    def append(self, draft: LogDraft) -> int:
        """Put something at the end of the log, and say at which position that is; durable then."""

    @abstractmethod
    def last_of(self, uris: Collection[str], after: int) -> dict[str, Operation]:
        """What the last entry after a position does with each of these documents, if there is one."""

    @abstractmethod
    def end(self) -> None:
        """As of `Log`."""

    @contextmanager
    def snapshot(self) -> Iterator[Iterator[Mapping[str, Any]]]:
        """There is none: nobody applies anything where the log is."""
        hint = "begin with the snapshot of another provider: tidings provider follow URL --once"
        raise SetupError("the log begins later than this provider ends", where=self.name, hint=hint)
        yield iter(())

    def forward(self, draft: LogDraft, hops: int = 0) -> ForwardedResponse:
        """Put something into the log, after it was checked by what is applied here now.

        What was registered elsewhere may be removed before that is applied here: it stands in the log.
        """
        self._provider.check([draft])
        self._provider.check_removals([draft], self)
        return ForwardedResponse(200, {"uri": draft.uri, "position": self.append(draft)})
