"""What an engine is to the harness."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.rows import Role
from benchmarks.workloads import Events, Subscriptions

Counts = npt.NDArray[np.int64]


class Engine(ABC):
    """Something that matches; engines inherit from it. They are asked in this order: prepare, build, give, match."""

    name: str
    role: Role = "peer"
    matches: bool = True
    """False of those that only read (see `ReadsOnly`): what they find is compared with nothing."""

    overhead: float = 0.0
    """Wall-clock seconds of a call that are not matching (planning a query, say): the harness waits so much longer."""

    once: bool = False
    """True of one that takes seconds for an event: it is given the first only, and timed once."""

    patience: float = 0.0
    """Seconds that it may take longer than others before it is stopped."""

    @abstractmethod
    def prepare(self, subscriptions: Subscriptions) -> None:
        """Bring the subscriptions into the form the engine likes; not timed. May raise Unavailable."""

    @abstractmethod
    def build(self) -> None:
        """Take all prepared subscriptions: timed once."""

    @abstractmethod
    def give(self, events: Events) -> None:
        """Bring events into the form the engine likes, instead of those given before; not timed."""

    @abstractmethod
    def match(self) -> Any:
        """Match the events given last: the timed call. Whatever the engine naturally answers with."""

    @abstractmethod
    def counts(self, answer: Any) -> Counts:
        """How many subscriptions each event matched, from an answer."""

    def nbytes(self) -> int | None:
        """What the subscriptions take in memory, where that can be said."""
        return None

    def linear_paths(self) -> int | None:
        """How many different linear paths the subscriptions have, if they are XPaths."""
        return None

    def edges(self) -> int | None:
        """How many edges the events given last have, if they are graphs and reading them is what is measured."""
        return None

    def seconds(self) -> float | None:
        """CPU seconds of the last `build` or `match`, where another process did the work: they count then."""
        return None

    def add(self, more: Subscriptions, first: int) -> int | None:
        """Add some more to those it has; how many it took, or None where that means nothing."""
        return None

    def close(self) -> None:
        """Let go of processes and files. Called once after `prepare`, also when that or something later failed."""
        return None


class ReadsOnly(Engine):
    """Takes no subscriptions, and finds nothing: what matching is compared with."""

    matches = False

    def prepare(self, subscriptions: object) -> None:
        return None

    def build(self) -> None:
        return None

    def counts(self, answer: object) -> Counts:
        raise TypeError(f"{self.name} only reads: it has no counts")
