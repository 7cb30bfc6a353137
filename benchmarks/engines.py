"""The engines that are measured: our index, the paper's algorithms in plain Python, and a database join."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.harness import Counts, Engine, NotHere
from benchmarks.workloads import SIGNS, Attribute, Events, Integers, Subscriptions
from tidings.atoms import Atoms, Event
from tidings.compiler.pipeline import compile_many
from tidings.compiler.plan import Relation
from tidings.matching.algorithms.protocol import Algorithm
from tidings.matching.index import Index, Matches
from tidings.model import Subscription


class IndexEngine(Engine):
    """`Index.match` on decoded columns, one call for all events."""

    name = "index"
    role = "ours"

    def prepare(self, subscriptions: Subscriptions) -> None:
        self._compiled = subscriptions.compiled()

    def build(self) -> None:
        self.index = Index.create()
        self.index.add(self._compiled)
        del self._compiled

    def give(self, events: Events) -> None:
        self._atoms: Atoms = events.atoms

    def match(self) -> Matches:
        return self.index.match(self._atoms)

    def counts(self, answer: Matches) -> Counts:
        return np.bincount(answer.publication, minlength=self._atoms.count)

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
        self.index = Index.create()
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


class DuckDB(Engine):
    """Subscriptions and events as tables, matching as a join: what a good database does, on one core."""

    name = "DuckDB join"

    def prepare(self, subscriptions: Subscriptions) -> None:
        self._connection = duckdb.connect()
        self._connection.execute("set threads = 1")
        tests = subscriptions.columns()
        if tests is None:
            raise NotHere("the join is written for subscriptions of one shape")
        conditions = [_condition(test.attribute.name, test.relation) for test in tests]
        self._where = " and ".join(conditions)
        columns = [_column(test.attribute, test.low) for test in tests]
        names = ["id", *(test.attribute.name for test in tests)]
        self._subscriptions = pa.table([np.arange(len(subscriptions)), *columns], names=names)

    def build(self) -> None:
        before = self._memory()
        self._load("subscriptions", self._subscriptions)
        self._nbytes = self._memory() - before

    def give(self, events: Events) -> None:
        self._count = len(events)
        columns = {a.name: _column(a, events.column(at)[1]) for at, a in enumerate(events.attributes)}
        self._load("events", pa.table({"id": np.arange(len(events)), **columns}))

    def match(self) -> pa.Table:
        return self._connection.sql(
            "select e.id as publication, s.id as subscription "
            f"from events e join subscriptions s on {self._where}"
        ).to_arrow_table()

    def counts(self, answer: pa.Table) -> Counts:
        return np.bincount(answer.column("publication").to_numpy(), minlength=self._count)

    def nbytes(self) -> int:
        return self._nbytes

    def _memory(self) -> int:
        found = self._connection.execute("select sum(memory_usage_bytes) from duckdb_memory()").fetchall()
        return int(found[0][0])

    def _load(self, name: str, data: pa.Table) -> None:
        self._connection.register("incoming", data)
        self._connection.execute(f"create or replace table {name} as select * from incoming")
        self._connection.unregister("incoming")


def _condition(name: str, relation: Relation) -> str:
    if relation not in SIGNS:
        raise NotHere(f"the join is not written for {relation.name}")
    return f'e."{name}" {SIGNS[relation]} s."{name}"'


def _column(attribute: Attribute, codes: Integers) -> pa.Array:
    return pa.array(attribute.names).take(pa.array(codes)) if attribute.names else pa.array(codes)
