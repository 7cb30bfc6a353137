"""CEL (Google's Common Expression Language, in Rust by common-expression-language): one expression per subscription.

Expressions are compiled once. An event becomes a context once, and every expression is evaluated in it, the most
selective test first, as in all rule libraries that do not index their rules.
"""

from __future__ import annotations

import cel
import numpy as np

from benchmarks.engine import Counts, Engine
from benchmarks.peers.expressions import MISSING, Event, dictionaries, expressions
from benchmarks.peers.intervals import MOST, to_intervals
from benchmarks.workloads import Events, Subscriptions


class Cel(Engine):
    name = "CEL expressions"

    def prepare(self, subscriptions: Subscriptions) -> None:
        self._intervals = to_intervals(subscriptions, MOST)
        self._texts = list(expressions(self._intervals))
        attributes = range(len(self._intervals.attributes))
        self._nothing: Event = {f"f{at}": "" if self._intervals.equal[at] else MISSING for at in attributes}

    def build(self) -> None:
        self._programs = [cel.compile(text) for text in self._texts]

    def give(self, events: Events) -> None:
        self._events = [{**self._nothing, **event} for event in dictionaries(self._intervals, events)]

    def match(self) -> list[list[int]]:
        return [self._match_event(event) for event in self._events]

    def _match_event(self, event: Event) -> list[int]:
        context = cel.Context(variables=event)
        return [number for number, program in enumerate(self._programs) if program.execute(context)]

    def counts(self, answer: list[list[int]]) -> Counts:
        return np.array([len(found) for found in answer], np.int64)
