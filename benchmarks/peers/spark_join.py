"""Spark SQL: subscriptions are broadcast and joined with the events, in one task at a time.

It runs in a separate process (`spark_driver`), so that a query that takes too long can be killed. The seconds are those
of the tasks' threads: starting the session, planning and building the broadcast table are not counted.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.child import Child
from benchmarks.engine import Counts, Engine
from benchmarks.peers.intervals import to_intervals
from benchmarks.peers.relations import Counting, Tables, Wide, to_relations
from benchmarks.workloads import Events, Subscriptions
from tests.support.packages import Unavailable

DRIVER = (sys.executable, "-m", "benchmarks.peers.spark_driver")
PROJECT = Path(__file__).parents[2]


class Spark(Engine):
    name = "Spark SQL broadcast join"
    overhead = 15.0

    def __init__(self) -> None:
        self._child: Child | None = None
        self._folder: Path | None = None

    def prepare(self, subscriptions: Subscriptions) -> None:
        if shutil.which("java") is None:
            raise Unavailable("no java on the PATH")
        self._intervals = to_intervals(subscriptions)
        self._relations = _wide(to_relations(self._intervals))
        self._folder = Path(tempfile.mkdtemp(prefix="tidings-bench-"))
        self._child = Child(DRIVER, PROJECT)
        self._warm_up(subscriptions)
        self._files = self._write_tables(self._relations.tables)

    def _warm_up(self, subscriptions: Subscriptions) -> None:
        """Run the query over one clause and no event: the first query of a session loads classes for seconds."""
        nothing = np.zeros(0, np.int64)
        events = Events(subscriptions.attributes, np.zeros(1, np.int64), nothing.astype(np.int32), nothing)
        tables = {
            **self._relations.tables,
            **self._relations.events(self._intervals.select_attributes(events)),
        }
        for name, path in self._write_tables({name: table[:1] for name, table in tables.items()}).items():
            self._ask("table", name, path)
        self._ask("match", self._relations.query)

    def build(self) -> None:
        answers = [self._ask("table", name, path) for name, path in self._files.items()]
        self._seconds = sum(float(each["seconds"]) for each in answers)

    def give(self, events: Events) -> None:
        self._count = len(events)
        for name, path in self._write_tables(
            self._relations.events(self._intervals.select_attributes(events))
        ).items():
            self._ask("table", name, path)

    def match(self) -> None:
        self._seconds = float(self._ask("match", self._relations.query)["seconds"])

    def counts(self, answer: None) -> Counts:
        result = self._ask("count", self._relations.query)
        counts = np.zeros(self._count, np.int64)
        counts[result["event"]] = result["count"]
        return counts

    def seconds(self) -> float:
        return self._seconds

    def close(self) -> None:
        if self._child:
            self._child.close()
        if self._folder:
            shutil.rmtree(self._folder)

    def _ask(self, *words: str | Path) -> dict[str, Any]:
        assert self._child
        return self._child.ask(*words)

    def _write_tables(self, tables: Tables) -> dict[str, Path]:
        assert self._folder
        paths = {name: self._folder / f"{name}.parquet" for name in tables}
        for name, table in tables.items():
            pq.write_table(table, paths[name])
        return paths


def _wide(form: Wide | Counting) -> Wide:
    if isinstance(form, Counting):
        raise Unavailable(
            "too many shapes for a broadcast join; joining and counting tests is left to DuckDB and Polars"
        )
    return form
