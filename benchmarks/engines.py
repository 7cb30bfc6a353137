"""The engines that are measured: our index, and the paper's algorithms in plain Python. `peers` has others'."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.harness import Counts, Engine, timed
from benchmarks.workloads import Events, Subscriptions
from research.events.algorithm import Algorithm
from tidings.atoms import Atoms, Event
from tidings.matching.compiler.compilation import compile_many
from tidings.matching.index.index import Index
from tidings.model import Subscription

MOST_TESTS = 60_000_000
"""A segment is made in memory: subscriptions with more tests than this are added in several goes."""


class IndexEngine(Engine):
    """`Index.match_parts` on decoded columns, as a task does it: all matches at once might not fit into memory."""

    name = "index"
    role = "ours"
    _told: float | None

    def prepare(self, subscriptions: Subscriptions) -> None:
        goes = 1 + len(subscriptions.low) // MOST_TESTS
        step = -(-len(subscriptions) // goes)
        firsts = range(0, len(subscriptions), step)
        self._parts = [(first, subscriptions.part(slice(first, first + step))) for first in firsts]

    def build(self) -> None:
        """Compiling columns is not the index's work, but holding all of them compiled would take too much room."""
        self.index, self._told = Index.create(), 0.0
        for first, part in self._parts:
            add = partial(self.index.add, part.compiled(first))
            self._told += timed(add)[0]
        del self._parts

    def seconds(self) -> float | None:
        return self._told

    def give(self, events: Events) -> None:
        self._atoms: Atoms = events.atoms

    def match(self) -> Counts:
        """The matches of each event, counted while they are there."""
        self._told = None
        counts = np.zeros(self._atoms.count, np.int64)
        for first, matches in self.index.match_parts(self._atoms):
            found = np.bincount(matches.publication)
            counts[first : first + len(found)] = found
        return counts

    def counts(self, answer: Counts) -> Counts:
        return answer

    def nbytes(self) -> int:
        return self.index.nbytes

    def add(self, more: Subscriptions, first: int) -> int:
        """All in one go: a segment of its own, as a running stream takes what came since the last batch."""
        self.index.add(more.compiled(first))
        return len(more)


class TextEngine(IndexEngine):
    """The same, with the subscriptions given as texts: building it is parsing, compiling and indexing."""

    name = "index, from text"

    def prepare(self, subscriptions: Subscriptions) -> None:
        texts = enumerate(subscriptions.texts())
        self._subscriptions = [Subscription(f"s{row}", "somebody", "predicates", text) for row, text in texts]

    def build(self) -> None:
        self.index, self._told = Index.create(), None
        self.index.add(compile_many(self._subscriptions))
        del self._subscriptions


class PlainEngine(Engine):
    """One of the algorithms in plain Python, event by event."""

    def __init__(self, name: str, make: Callable[[], Algorithm], additions: int = 100) -> None:
        self.name, self._make, self._additions = name, make, additions

    def prepare(self, subscriptions: Subscriptions) -> None:
        self._plans = list(subscriptions.plans())

    def build(self) -> None:
        self._algorithm = self._make()
        for id, plan in self._plans:
            self._algorithm.add(id, plan)
        self._algorithm.match({})  # an algorithm may put its work off until the first event

    def give(self, events: Events) -> None:
        self._events: list[Event] = events.readable()

    def match(self) -> list[set[str]]:
        return [self._algorithm.match(event) for event in self._events]

    def counts(self, answer: list[set[str]]) -> Counts:
        return np.array([len(found) for found in answer], np.int64)

    def nbytes(self) -> int:
        return self._algorithm.size()

    def add(self, more: Subscriptions, first: int) -> int:
        few = more.part(slice(self._additions))
        for id, plan in few.plans():
            self._algorithm.add(f"more {id}", plan)
        self._algorithm.match({})
        return len(few)
