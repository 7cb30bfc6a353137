"""CLIPS (a Rete network in C, by clipspy): subscriptions as facts, a rule for each combination of equalities.

    (defrule match0
      (event (q0 ?q0) (a1 ?a1))
      (clause0 (owner ?owner) (q0 ?q0) (l1 ?l1&:(>= ?a1 ?l1)))
      => (found ?owner))

The network hashes its memories by what is compared by equality, so an event is joined with the clauses of its symbol
only. A rule for each subscription, the other way to write it, matches faster with some thousands of subscriptions, but
ten thousand rules take as long to build as half a million facts.
"""

from __future__ import annotations

from collections.abc import Iterator

import clips
import numpy as np

from benchmarks.engine import Counts, Engine, NotHere
from benchmarks.peers.intervals import MOST, intervals
from benchmarks.peers.relations import Counting, Wide, relations
from benchmarks.workloads import Events, Subscriptions


class Clips(Engine):
    name = "CLIPS"

    def prepare(self, subscriptions: Subscriptions) -> None:
        self._asked = intervals(subscriptions, MOST)
        form = relations(self._asked)
        if isinstance(form, Counting):
            raise NotHere("a rule for each shape, and the shapes are too many")
        self._wide = form
        self._facts = list(_facts(form))

    def build(self) -> None:
        self._environment, self._found = clips.Environment(), list[int]()
        self._environment.define_function(self._found.append, name="found")
        for construct in _constructs(self._wide):
            self._environment.build(construct)
        templates = [self._environment.find_template(f"clause{at}") for at in range(len(self._wide.shapes))]
        for shape, fact in self._facts:
            templates[shape].assert_fact(**fact)
        self._event = self._environment.find_template("event")

    def give(self, events: Events) -> None:
        rows = self._wide.events(self._asked.asked(events))["events"].drop_columns("id").to_pylist()
        self._events = [{at: value for at, value in row.items() if value is not None} for row in rows]

    def match(self) -> list[list[int]]:
        return [self._one(event) for event in self._events]

    def _one(self, event: dict[str, int]) -> list[int]:
        fact = self._event.assert_fact(**event)
        self._environment.run()
        fact.retract()
        owners = self._found.copy()
        self._found.clear()
        return owners

    def counts(self, answer: list[list[int]]) -> Counts:
        return np.array([len(set(owners)) for owners in answer], np.int64)


def _facts(wide: Wide) -> Iterator[tuple[int, dict[str, int]]]:
    """Each clause's shape and fact."""
    names = [_slots(wide, shape) for shape in range(len(wide.shapes))]
    columns = {name: column.tolist() for name, column in wide.columns.items()}
    for row, shape in enumerate(wide.shape.tolist()):
        yield shape, {name: columns[name][row] for name in names[shape]}


def _slots(wide: Wide, shape: int) -> list[str]:
    """What a clause of this shape has: its owner, what it compares by equality, all bounds."""
    equal = [f"q{at}" for at, here in zip(wide.equal, wide.shapes[shape], strict=True) if here]
    return ["owner", *equal, *(name for name in wide.columns if name[0] in "lu")]


def _constructs(wide: Wide) -> Iterator[str]:
    attributes = wide.equal + wide.ranged
    yield f"(deftemplate event {_declared(f'a{at}' for at in attributes)})"
    for shape in range(len(wide.shapes)):
        slots = _slots(wide, shape)
        asked = sorted({int(name[1:]) for name in slots[1:]})
        event = " ".join(f"(a{at} ?a{at}&~nil)" for at in asked)
        tests = " ".join(map(_test, slots[1:]))
        yield f"(deftemplate clause{shape} {_declared(slots)})"
        yield f"(defrule match{shape} (event {event}) (clause{shape} (owner ?owner) {tests}) => (found ?owner))"


def _declared(slots: Iterator[str] | list[str]) -> str:
    return " ".join(f"(slot {name})" for name in slots)


def _test(slot: str) -> str:
    value = f"?a{slot[1:]}"
    if slot[0] == "q":
        return f"({slot} {value})"
    return f"({slot} ?{slot}&:({'<=' if slot[0] == 'l' else '>='} ?{slot} {value}))"
