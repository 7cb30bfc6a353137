"""DuckDB: matching as a join, on one core. The hash table over the subscriptions is built in every run."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.engine import Counts, Engine
from benchmarks.peers.intervals import to_intervals
from benchmarks.peers.relations import to_relations
from benchmarks.workloads import Events, Subscriptions


class DuckDB(Engine):
    name = "DuckDB join"

    def prepare(self, subscriptions: Subscriptions) -> None:
        self._connection = duckdb.connect()
        self._connection.execute("set threads = 1")
        self._intervals = to_intervals(subscriptions)
        self._relations = to_relations(self._intervals)

    def build(self) -> None:
        before = self._memory()
        for name, data in self._relations.tables.items():
            self._load(name, data)
        self._nbytes = self._memory() - before

    def give(self, events: Events) -> None:
        self._count = len(events)
        for name, data in self._relations.events(self._intervals.select_attributes(events)).items():
            self._load(name, data)

    def match(self) -> pa.Table:
        return self._connection.sql(self._relations.query).to_arrow_table()

    def counts(self, answer: pa.Table) -> Counts:
        return np.bincount(answer.column("event").to_numpy(), minlength=self._count)

    def nbytes(self) -> int:
        return self._nbytes

    def _memory(self) -> int:
        rows = self._connection.execute("select sum(memory_usage_bytes) from duckdb_memory()").fetchall()
        return int(rows[0][0])

    def _load(self, name: str, data: pa.Table) -> None:
        self._connection.register("incoming", data)
        self._connection.execute(f"create or replace table {name} as select * from incoming")
        self._connection.unregister("incoming")

    def close(self) -> None:
        self._connection.close()
