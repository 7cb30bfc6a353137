"""The engines that are measured: our index, the paper's algorithms in plain Python, and a database join."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.harness import Counts
from benchmarks.workloads import SIGNS, Subscriptions, Workload
from tidings.atoms import Atoms, Event
from tidings.compiler.pipeline import compile_many
from tidings.compiler.plan import Relation
from tidings.matching.algorithms.protocol import Algorithm
from tidings.matching.index import Index, Matches
from tidings.model import Subscription


class IndexEngine:
    """`Index.match` on decoded columns, one call for all events."""

    name = "index"
    peer = False

    def prepare(self, workload: Workload, count: int) -> None:
        self._compiled = workload.subscriptions.compiled()
        self._atoms: Atoms = workload.events.first(count).atoms

    def build(self) -> None:
        self.index = Index.create()
        self.index.add(self._compiled)

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

    def prepare(self, workload: Workload, count: int) -> None:
        texts = enumerate(workload.subscriptions.texts())
        self._subscriptions = [Subscription(f"s{row}", "somebody", "predicates", text) for row, text in texts]
        self._atoms = workload.events.first(count).atoms

    def build(self) -> None:
        self.index = Index.create()
        self.index.add(compile_many(self._subscriptions))


class PlainEngine:
    """One of the algorithms in plain Python, event by event."""

    peer = True

    def __init__(self, name: str, make: Callable[[], Algorithm], additions: int = 100) -> None:
        self.name, self._make, self._additions = name, make, additions

    def prepare(self, workload: Workload, count: int) -> None:
        self._plans = list(workload.subscriptions.plans())
        self._events: list[Event] = workload.events.first(count).readable()

    def build(self) -> None:
        self._algorithm = self._make()
        for id, plan in self._plans:
            self._algorithm.add(id, plan)
        self._algorithm.match({})  # an algorithm may put its work off until the first event

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


class DuckDB:
    """Subscriptions and events as tables, matching as a join: what a good database does, on one core."""

    name = "DuckDB join"
    peer = True

    def prepare(self, workload: Workload, count: int) -> None:
        self._connection, self._count = duckdb.connect(), count
        self._connection.execute("set threads = 1")
        self._subscriptions = self._relations(workload.subscriptions)
        events = workload.events.first(count)
        columns = {a.name: _column(a.names, events.value[:, at]) for at, a in enumerate(events.attributes)}
        self._load("events", pa.table({"id": np.arange(count), **columns}))

    def build(self) -> None:
        before = self._memory()
        self._load("subscriptions", self._subscriptions)
        self._nbytes = self._memory() - before

    def _relations(self, subscriptions: Subscriptions) -> pa.Table:
        if (subscriptions.relation != subscriptions.relation[0]).any():
            raise ValueError("the join is written for subscriptions of one shape")
        used = np.flatnonzero(subscriptions.relation[0]).tolist()
        names = [subscriptions.attributes[at].name for at in used]
        signs = [SIGNS[Relation(int(subscriptions.relation[0, at]))] for at in used]
        pairs = zip(names, signs, strict=True)
        self._where = " and ".join(f'e."{name}" {sign} s."{name}"' for name, sign in pairs)
        columns = [_column(subscriptions.attributes[at].names, subscriptions.bound[:, at]) for at in used]
        return pa.table([np.arange(len(subscriptions)), *columns], names=["id", *names])

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

    def add(self, more: Subscriptions, first: int) -> None:
        return None

    def _load(self, name: str, data: pa.Table) -> None:
        self._connection.register("incoming", data)
        self._connection.execute(f"create or replace table {name} as select * from incoming")
        self._connection.unregister("incoming")


def _column(names: tuple[str, ...], codes: Any) -> pa.Array:
    return pa.array(names).take(pa.array(codes)) if names else pa.array(codes)
