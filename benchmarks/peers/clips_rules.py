"""CLIPS (a Rete network in C, by clipspy): subscriptions as facts, a rule for each combination of equalities.

    (defrule match0
      (event (a0 ?a0) (a1 ?a1))
      (clause0 (owner ?owner) (q0 ?a0) (l1 ?l1&:(<= ?l1 ?a1)))
      => (found ?owner))

The network hashes its memories by equality tests, so an event is joined only with the clauses of its symbol. A rule for
each subscription is the alternative: it matches faster with some thousands of subscriptions, but ten thousand rules
take as long to build as half a million facts.

Facts are asserted by functions in CLIPS, and events are retracted by a rule. A fact that is passed to Python is never
freed (clipspy 1.0.6), and matching then gets slower with every event.
"""

from __future__ import annotations

from collections.abc import Iterator

import clips
import numpy as np

from benchmarks.engine import Counts, Engine
from benchmarks.peers.intervals import MOST, to_intervals
from benchmarks.peers.relations import Counting, Wide, to_relations
from benchmarks.workloads import Events, Subscriptions
from tests.support.packages import Unavailable

NIL = clips.Symbol("nil")


class Clips(Engine):
    name = "CLIPS"

    def prepare(self, subscriptions: Subscriptions) -> None:
        self._intervals = to_intervals(subscriptions, MOST)
        form = to_relations(self._intervals)
        if isinstance(form, Counting):
            raise Unavailable("too many shapes: each needs a rule")
        self._wide = form
        self._facts = list(_facts(form))

    def build(self) -> None:
        self._environment, self._found = clips.Environment(), list[int]()
        self._environment.define_function(self._found.append, name="found")
        for construct in _constructs(self._wide):
            self._environment.build(construct)
        for function, values in self._facts:
            self._environment.call(function, *values)
        del self._facts

    def give(self, events: Events) -> None:
        rows = (
            self._wide.events(self._intervals.select_attributes(events))["events"]
            .drop_columns("id")
            .to_pylist()
        )
        self._events = [[NIL if value is None else value for value in row.values()] for row in rows]

    def match(self) -> list[list[int]]:
        return [self._match_event(event) for event in self._events]

    def _match_event(self, event: list[int | clips.Symbol]) -> list[int]:
        self._environment.call("publish", *event)
        self._environment.run()
        owners = self._found.copy()
        self._found.clear()
        return owners

    def counts(self, answer: list[list[int]]) -> Counts:
        return np.array([len(set(owners)) for owners in answer], np.int64)


def _facts(wide: Wide) -> Iterator[tuple[str, list[int]]]:
    """Yield for each clause the function that asserts it, and its values."""
    slots = [_slots(wide, shape) for shape in range(len(wide.shapes))]
    columns = {name: column.tolist() for name, column in wide.columns.items()}
    for row, shape in enumerate(wide.shape.tolist()):
        yield f"subscribe{shape}", [columns[name][row] for name in slots[shape]]


def _slots(wide: Wide, shape: int) -> list[str]:
    """Return the slots of clauses of a shape: the owner, equality tests, all bounds."""
    equal = [f"q{at}" for at, here in zip(wide.equal, wide.shapes[shape], strict=True) if here]
    return ["owner", *equal, *(name for name in wide.columns if name[0] in "lu")]


def _constructs(wide: Wide) -> Iterator[str]:
    yield from _template("event", "publish", [f"a{at}" for at in sorted(wide.equal + wide.ranged)])
    yield "(defrule matched (declare (salience -1)) ?event <- (event) => (retract ?event))"
    for shape in range(len(wide.shapes)):
        slots = _slots(wide, shape)
        event = " ".join(f"(a{at} ?a{at}&~nil)" for at in sorted({int(name[1:]) for name in slots[1:]}))
        clause = " ".join(["(owner ?owner)", *map(_test, slots[1:])])
        yield from _template(f"clause{shape}", f"subscribe{shape}", slots)
        yield f"(defrule match{shape} (event {event}) (clause{shape} {clause}) => (found ?owner))"


def _template(name: str, function: str, slots: list[str]) -> Iterator[str]:
    """Yield a template of facts, and a function that asserts such a fact."""
    declared = " ".join(f"(slot {slot})" for slot in slots)
    variables = " ".join(f"?{slot}" for slot in slots)
    filled = " ".join(f"({slot} ?{slot})" for slot in slots)
    yield f"(deftemplate {name} {declared})"
    yield f"(deffunction {function} ({variables}) (assert ({name} {filled})) TRUE)"


def _test(slot: str) -> str:
    value = f"?a{slot[1:]}"
    if slot[0] == "q":
        return f"({slot} {value})"
    return f"({slot} ?{slot}&:({'<=' if slot[0] == 'l' else '>='} ?{slot} {value}))"
