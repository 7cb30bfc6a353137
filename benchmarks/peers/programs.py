"""Peers that are programs of their own: subscriptions and events in files of integers, commands by `Child`.

Each array is a file of 64-bit integers, little end first; `Driver.java` says what they mean.
"""

from __future__ import annotations

import tempfile
from abc import abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.child import Child
from benchmarks.engine import Counts, Engine
from benchmarks.peers.intervals import Intervals, intervals
from benchmarks.peers.toolchain import go_program, java_classpath
from benchmarks.workloads import Events, Subscriptions
from tests.support.packages import Unavailable, find_tool


class Program(Engine):
    """`seconds` of matching are those of the matching thread; of building, those of the whole process."""

    def __init__(self) -> None:
        self._child: Child | None = None

    @abstractmethod
    def command(self, asked: Intervals) -> list[str | Path]:
        """What to start. Fetches and compiles what is not there yet, or raises Unavailable."""

    def prepare(self, subscriptions: Subscriptions) -> None:
        self._asked = intervals(subscriptions)
        command = self.command(self._asked)
        self._folder = tempfile.TemporaryDirectory(prefix="tidings-bench-")
        self._child = Child(command)
        self._write("text", self._asked.equal)
        for name in ("starts", "attribute", "low", "high", "owner"):
            self._write(name, getattr(self._asked, name))
        self._ask("subscriptions", self._folder.name)

    def build(self) -> None:
        self._answer = self._ask("build")
        self._nbytes = int(self._answer["bytes"]) or None  # a few subscriptions are lost in a heap's noise

    def give(self, events: Events) -> None:
        mine = self._asked.asked(events)
        for name in ("starts", "attribute", "value"):
            self._write(f"event-{name}", getattr(mine, name))
        self._ask("events", self._folder.name)

    def match(self) -> list[int]:
        self._answer = self._ask("match")
        counts: list[int] = self._answer["counts"]
        return counts

    def counts(self, answer: list[int]) -> Counts:
        return np.array(answer, np.int64)

    def seconds(self) -> float:
        return float(self._answer["seconds"])

    def nbytes(self) -> int | None:
        return self._nbytes

    def close(self) -> None:
        if self._child:
            self._child.close()
            self._folder.cleanup()

    def _ask(self, *words: str) -> dict[str, Any]:
        assert self._child, "prepare comes first"
        return self._child.ask(*words)

    def _write(self, name: str, column: npt.NDArray[Any]) -> None:
        column.astype("<i8").tofile(Path(self._folder.name) / name)


def java(artifact: str, main: str, *arguments: str) -> list[str | Path]:
    """The serial collector works outside the matching thread; an engine may take half of the memory."""
    options = ["-XX:+UseSerialGC", "-XX:MaxRAMPercentage=60"]
    return [find_tool("java"), *options, "-cp", java_classpath(artifact, main), main, *arguments]


class EventRuler(Program):
    """event-ruler, of AWS. Events are given as it takes them faster.

    As JSON where all is equality (its matcher for JSON is the better one then), as sorted lists of names and values
    where ranges are asked for. `withAdditionalNameStateReuse` takes a fifth of the memory and is slower: not set.
    """

    name = "event-ruler"

    def command(self, asked: Intervals) -> list[str | Path]:
        form = "json" if asked.equal.all() else "list"
        return java("software.amazon.event.ruler:event-ruler:2.1.0", "EventRuler", form)


class LuceneMonitor(Program):
    """Lucene Monitor. The version is the last one for Java 17.

    Its presearcher finds candidates by terms. One pass over them is best with one equality a clause, two with several;
    without any every query is a candidate, and many documents are matched at once.
    """

    name = "Lucene Monitor"

    def command(self, asked: Intervals) -> list[str | Path]:
        equalities = np.count_nonzero(asked.equal[asked.attribute]) / asked.clauses
        passes, batch = ("2" if equalities >= 2 else "1"), ("1" if equalities else "1000")
        return java("org.apache.lucene:lucene-monitor:9.11.1", "LuceneMonitor", passes, batch)


class Quamina(Program):
    """Quamina, in Go. It has no numeric ranges: where they are asked for, its driver checks what it finds for them."""

    name = "quamina"

    def command(self, asked: Intervals) -> list[str | Path]:
        equal = asked.equal[asked.attribute]
        if not np.logical_or.reduceat(equal, asked.starts[:-1]).all():
            raise Unavailable("quamina has no numeric ranges, and some clauses have nothing else")
        if not equal.all():
            self.name = "quamina, ranges by its driver"
        return [go_program("quamina")]
