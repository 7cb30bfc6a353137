"""CEL (Google's Common Expression Language, in Rust by common-expression-language): an expression a subscription.

Expressions are compiled once. An event becomes a context once, and every expression is evaluated in it, the most
selective test first: the way of all rule libraries that do not index their rules.
"""

from __future__ import annotations

import cel
import numpy as np

from benchmarks.engine import Counts, Engine
from benchmarks.peers.expressions import MISSING, Event, dictionaries, expressions
from benchmarks.peers.intervals import MOST, intervals
from benchmarks.workloads import Events, Subscriptions


class Cel(Engine):
    name = "CEL expressions"

    def prepare(self, subscriptions: Subscriptions) -> None:
        self._asked = intervals(subscriptions, MOST)
        self._texts = list(expressions(self._asked))
        attributes = range(len(self._asked.attributes))
        self._nothing: Event = {f"f{at}": "" if self._asked.equal[at] else MISSING for at in attributes}

    def build(self) -> None:
        self._programs = [cel.compile(text) for text in self._texts]

    def give(self, events: Events) -> None:
        self._events = [{**self._nothing, **event} for event in dictionaries(self._asked, events)]

    def match(self) -> list[list[int]]:
        return [self._one(event) for event in self._events]

    def _one(self, event: Event) -> list[int]:
        context = cel.Context(variables=event)
        return [number for number, program in enumerate(self._programs) if program.execute(context)]

    def counts(self, answer: list[list[int]]) -> Counts:
        return np.array([len(found) for found in answer], np.int64)
