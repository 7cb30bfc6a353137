"""A log that is followed: another provider's, or one that several providers share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from tidings.metadata.log import Draft
from tidings.metadata.log_pages import Page


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
