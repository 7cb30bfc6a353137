"""Interface between the harness and the engines that it measures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.rows import Role
from benchmarks.workloads import Events, Subscriptions

Counts = npt.NDArray[np.int64]


class Engine(ABC):
    """Base class of engines. The harness calls prepare, build, give and match, in this order."""

    name: str
    role: Role = "peer"
    matches: bool = True
    """False for engines that only read (see `ReadsOnly`): they have no matches to compare."""

    overhead: float = 0.0
    """Wall-clock seconds of a call that are not matching (planning a query, say): the harness waits so much longer."""

    once: bool = False
    """True for engines that take seconds per event: they match the first event only, and are timed once."""

    patience: float = 0.0
    """Seconds of extra time, compared with other engines, before it is stopped."""

    @abstractmethod
    def prepare(self, subscriptions: Subscriptions) -> None:
        """Convert the subscriptions into the engine's own form; not timed. May raise Unavailable."""

    @abstractmethod
    def build(self) -> None:
        """Load all prepared subscriptions: timed once."""

    @abstractmethod
    def give(self, events: Events) -> None:
        """Convert events into the engine's own form, replacing the previous ones; not timed."""

    @abstractmethod
    def match(self) -> Any:
        """Match the current events: the timed call. Returns the engine's own form of result."""

    @abstractmethod
    def counts(self, answer: Any) -> Counts:
        """Count the subscriptions that each event matched, from a result of `match`."""

    def nbytes(self) -> int | None:
        """Return the memory of the subscriptions; None if unknown."""
        return None

    def linear_paths(self) -> int | None:
        """Return the number of different linear paths of the subscriptions, if they are XPaths."""
        return None

    def edges(self) -> int | None:
        """Return the number of edges of the current events, if they are graphs and reading them is measured."""
        return None

    def seconds(self) -> float | None:
        """Return the CPU seconds of the last `build` or `match`, if another process did the work."""
        return None

    def add(self, more: Subscriptions, first: int) -> int | None:
        """Add subscriptions; return how many were added, or None if the engine does not support it."""
        return None

    def close(self) -> None:
        """Release processes and files. Called once after `prepare`, also if that or a later step failed."""
        return None


class ReadsOnly(Engine):
    """Base class of engines that only read events, as a baseline for matching."""

    matches = False

    def prepare(self, subscriptions: object) -> None:
        return None

    def build(self) -> None:
        return None

    def counts(self, answer: object) -> Counts:
        raise TypeError(f"{self.name} only reads: it has no counts")
