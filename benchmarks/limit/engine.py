"""The limit: C programs written by hand for one workload each, as a measure of what one core of the machine can do.

They are compiled for this machine into a temporary folder, and unavailable without gcc.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.child import Child
from benchmarks.harness import Counts, Engine
from benchmarks.workloads import Events, Subscriptions
from tests.support.packages import Unavailable

SOURCES = Path(__file__).parent
FLAGS = ("-O3", "-march=native", "-Wno-psabi")

Cells = npt.NDArray[np.int32]


class LimitEngine(Engine):
    """A program of this folder in a separate process, with the protocol of `driver.h`."""

    name = "limit (C)"
    role = "limit"

    def __init__(self, program: str, flags: tuple[str, ...] = FLAGS) -> None:
        self._program, self._flags = program, flags
        self._child: Child | None = None

    def prepare(self, subscriptions: Subscriptions) -> None:
        program = compiled(self._program, self._flags)
        self._folder = tempfile.TemporaryDirectory(prefix="tidings-limit-")
        self._place = Path(self._folder.name)
        self._child = Child([program])
        self._write("subscriptions", FORMS[self._program](subscriptions))

    def build(self) -> None:
        self._answer = self._ask("load", self._place / "subscriptions")
        self._nbytes = int(self._answer["bytes"])

    def give(self, events: Events) -> None:
        self._count = len(events)
        self._write("events", events.value.reshape(len(events), -1).astype(np.int32))
        self._ask("give", self._place / "events")

    def match(self) -> None:
        self._answer = self._ask("match")

    def seconds(self) -> float:
        return float(self._answer["seconds"])

    def counts(self, answer: None) -> Counts:
        self._ask("counts", self._place / "counts")
        return np.fromfile(self._place / "counts", np.int32).astype(np.int64)

    def nbytes(self) -> int:
        return self._nbytes

    def close(self) -> None:
        if self._child:
            self._child.close()
            self._folder.cleanup()

    def _ask(self, *words: str | Path) -> dict[str, float]:
        assert self._child, "prepare comes first"
        return self._child.ask(*words)

    def _write(self, name: str, cells: Cells) -> None:
        with (self._place / name).open("wb") as file:
            file.write(np.array(cells.shape, np.int64).tobytes())
            cells.tofile(file)


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="tidings-limit-programs-")


@cache
def compiled(program: str, flags: tuple[str, ...] = FLAGS) -> Path:
    """Compile a program, once per run."""
    gcc = shutil.which("gcc")
    if gcc is None:
        raise Unavailable("no gcc")
    target = Path(tempfile.mkdtemp(prefix=program, dir=_folder().name)) / program
    subprocess.run([gcc, *flags, "-o", target, SOURCES / f"{program}.c"], check=True)
    return target


def _stock(subscriptions: Subscriptions) -> Cells:
    """Symbol, price, open, high, volume."""
    return subscriptions.low.reshape(len(subscriptions), -1).astype(np.int32)


def _equalities(subscriptions: Subscriptions) -> Cells:
    """Attribute, value, attribute, value, ..."""
    return _rows(subscriptions, subscriptions.attribute, subscriptions.low)


def _intervals(subscriptions: Subscriptions) -> Cells:
    """Attribute, low, high, attribute, low, high, ..."""
    return _rows(subscriptions, subscriptions.attribute, subscriptions.low, subscriptions.high)


def _rows(subscriptions: Subscriptions, *columns: npt.NDArray[np.integer]) -> Cells:
    return np.column_stack([each.astype(np.int32) for each in columns]).reshape(len(subscriptions), -1)


FORMS: dict[str, Callable[[Subscriptions], Cells]] = {
    "stock": _stock,
    "equalities": _equalities,
    "intervals": _intervals,
}
"""Subscriptions in the form of each program. Events are a table of all their values for each."""
