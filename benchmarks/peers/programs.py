"""Peers in separate programs: subscriptions and events in files of integers, commands by `Child`.

Each array is a file of little-endian 64-bit integers; `Driver.java` documents their meaning.
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
from benchmarks.peers.intervals import Intervals, to_intervals
from benchmarks.peers.toolchain import go_program, java_classpath
from benchmarks.workloads import Events, Subscriptions
from tests.support.packages import Unavailable, find_tool


class Program(Engine):
    """A peer program. `seconds` of matching cover the matching thread, those of building the whole process."""

    def __init__(self) -> None:
        self._child: Child | None = None

    @abstractmethod
    def command(self, intervals: Intervals) -> list[str | Path]:
        """Return the command to start. Download and compile what is missing, or raise Unavailable."""

    def prepare(self, subscriptions: Subscriptions) -> None:
        self._intervals = to_intervals(subscriptions)
        command = self.command(self._intervals)
        self._folder = tempfile.TemporaryDirectory(prefix="tidings-bench-")
        self._child = Child(command)
        self._write("text", self._intervals.equal)
        for name in ("starts", "attribute", "low", "high", "owner"):
            self._write(name, getattr(self._intervals, name))
        self._ask("subscriptions", self._folder.name)

    def build(self) -> None:
        self._answer = self._ask("build")
        self._nbytes = (
            int(self._answer["bytes"]) or None
        )  # few subscriptions are below the noise of heap measurements

    def give(self, events: Events) -> None:
        selected = self._intervals.select_attributes(events)
        for name in ("starts", "attribute", "value"):
            self._write(f"event-{name}", getattr(selected, name))
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
    """Return a Java command. The serial collector works outside the matching thread; the heap may use 60% of memory."""
    options = ["-XX:+UseSerialGC", "-XX:MaxRAMPercentage=60"]
    return [find_tool("java"), *options, "-cp", java_classpath(artifact, main), main, *arguments]


class EventRuler(Program):
    """event-ruler, of AWS. Events have the form that it matches faster.

    This is JSON if there are only equalities, and sorted lists of names and values if there are ranges.
    `withAdditionalNameStateReuse` is not set: it uses a fifth of the memory and is slower.
    """

    name = "event-ruler"

    def command(self, intervals: Intervals) -> list[str | Path]:
        form = "json" if intervals.equal.all() else "list"
        return java("software.amazon.event.ruler:event-ruler:2.1.0", "EventRuler", form)


class LuceneMonitor(Program):
    """Lucene Monitor. The version is the last one for Java 17.

    Its presearcher finds candidates by terms. One pass is best with one equality per clause, two with several.
    Without equalities every query is a candidate, and many documents are matched at once.
    """

    name = "Lucene Monitor"

    def command(self, intervals: Intervals) -> list[str | Path]:
        equalities = np.count_nonzero(intervals.equal[intervals.attribute]) / intervals.clauses
        passes, batch = ("2" if equalities >= 2 else "1"), ("1" if equalities else "1000")
        return java("org.apache.lucene:lucene-monitor:9.11.1", "LuceneMonitor", passes, batch)


class Quamina(Program):
    """Quamina, in Go. It has no numeric ranges: its driver checks them in the matches that quamina finds."""

    name = "quamina"

    def command(self, intervals: Intervals) -> list[str | Path]:
        equal = intervals.equal[intervals.attribute]
        if not np.logical_or.reduceat(equal, intervals.starts[:-1]).all():
            raise Unavailable("quamina has no numeric ranges, and some clauses have only ranges")
        if not equal.all():
            self.name = "quamina, ranges by its driver"
        return [go_program("quamina")]
