"""Engines: the index, and the paper's algorithms in plain Python. `peers` has engines of other projects."""

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
"""Limit for one segment, which is built in memory: more tests are added in several segments."""


class IndexEngine(Engine):
    """`Index.match_parts` on decoded columns, as in a task: all matches at once may not fit into memory."""

    name = "index"
    role = "ours"
    _seconds: float | None

    def prepare(self, subscriptions: Subscriptions) -> None:
        count = 1 + len(subscriptions.low) // MOST_TESTS
        step = -(-len(subscriptions) // count)
        firsts = range(0, len(subscriptions), step)
        self._parts = [(first, subscriptions.part(slice(first, first + step))) for first in firsts]

    def build(self) -> None:
        """Compile and add part by part; compiled parts would not all fit into memory, and only adding is timed."""
        self.index, self._seconds = Index.create(), 0.0
        for first, part in self._parts:
            add = partial(self.index.add, part.compiled(first))
            self._seconds += timed(add)[0]
        del self._parts

    def seconds(self) -> float | None:
        return self._seconds

    def give(self, events: Events) -> None:
        self._atoms: Atoms = events.atoms

    def match(self) -> Counts:
        """Count the matches of each event, part by part."""
        self._seconds = None
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
        """Add all as one segment, as a running stream adds the changes since the last batch."""
        self.index.add(more.compiled(first))
        return len(more)


class TextEngine(IndexEngine):
    """The index, with subscriptions as texts: building it parses, compiles and indexes."""

    name = "index, from text"

    def prepare(self, subscriptions: Subscriptions) -> None:
        texts = enumerate(subscriptions.texts())
        self._subscriptions = [Subscription(f"s{row}", "somebody", "predicates", text) for row, text in texts]

    def build(self) -> None:
        self.index, self._seconds = Index.create(), None
        self.index.add(compile_many(self._subscriptions))
        del self._subscriptions


class PlainEngine(Engine):
    """An algorithm in plain Python, event by event."""

    def __init__(self, name: str, make: Callable[[], Algorithm], additions: int = 100) -> None:
        self.name, self._make, self._additions = name, make, additions

    def prepare(self, subscriptions: Subscriptions) -> None:
        self._plans = list(subscriptions.plans())

    def build(self) -> None:
        self._algorithm = self._make()
        for id, plan in self._plans:
            self._algorithm.add(id, plan)
        self._algorithm.match({})  # an algorithm may defer work until the first event

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
