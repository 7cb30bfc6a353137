"""A log that is followed: another provider's, or one that several providers share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from tidings.closing import Closing
from tidings.errors import SetupError
from tidings.metadata.log import Draft, What
from tidings.metadata.log_pages import Page
from tidings.provider import Provider


class Log(Protocol):
    """What a follower needs of a log; `has_snapshots` if there is something to begin with."""

    name: str
    has_snapshots: bool

    def page(self, after: int, limit: int, wait: float) -> Page:
        """The entries after a position; if there are none, they are waited for. `Gone` if they were trimmed."""

    def snapshot(self) -> AbstractContextManager[Iterator[Mapping[str, Any]]]:
        """Everything at once, line by line."""

    def end(self) -> None:
        """Let nobody wait any more."""

    def close(self) -> None:
        """Let go of what is held."""


@dataclass(frozen=True, slots=True)
class Forwarded:
    """What whoever keeps the log answered: a status of HTTP, and what goes with it."""

    status: int
    answer: dict[str, Any]

    @property
    def position(self) -> int | None:
        """Where the entry stands in the log; nothing if it was refused."""
        found = self.answer.get("position")
        return found if self.status == 200 and isinstance(found, int) else None


class Keeper(Protocol):
    """Whoever keeps a log."""

    name: str

    def forward(self, draft: Draft, hops: int) -> Forwarded:
        """Have something put into the log, if nothing is wrong with it; `hops` is how often it was handed on before."""


class Shared(Closing):
    """A log that several providers share, for one of them: each puts in what is registered with it, and applies all.

    Whatever keeps the log gives out the positions, so nobody has to lead.
    """

    has_snapshots = False

    def __init__(self, name: str, provider: Provider) -> None:
        self.name, self._provider = name, provider

    @abstractmethod
    def page(self, after: int, limit: int, wait: float) -> Page:
        """As of `Log`."""

    @abstractmethod
    def append(self, draft: Draft) -> int:
        """Put something at the end of the log, and say at which position that is; durable then."""

    @abstractmethod
    def last_of(self, uris: Collection[str], after: int) -> dict[str, What]:
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

    def forward(self, draft: Draft, hops: int = 0) -> Forwarded:
        """Put something into the log, after it was checked by what is applied here now.

        What was registered elsewhere may be removed before that is applied here: it stands in the log.
        """
        self._provider.check([draft])
        self._provider.refuse_absent([draft], self)
        return Forwarded(200, {"uri": draft.uri, "position": self.append(draft)})
