"""Time and memory budget for the steps of a task.

A step is the decoding or the matching of a few publications, or the explanation of one match. A system timer kills a
worker whose step takes too long: that also works inside compiled code, which does not return to Python. Two small files
beside the results tell the driver (`isolation`) why a worker died:

    step-<key>.mark     the current step
    step-<key>.trace    the Python stack at the deadline; empty if the worker died of something else
"""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Self
from uuid import uuid4

from tidings.matching.kernels.compiled import observe_compilation

MARK, TRACE = "mark", "trace"
_LAYOUT = struct.Struct("<qqqH")


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of one step: seconds, and megabytes beyond the memory in use when the task begins."""

    seconds: float = 30.0
    megabytes: int = 2_048


DEFAULT_BUDGET = Budget()


class StepPhase(IntEnum):
    """The kind of work in a step."""

    NOTHING = 0
    DECODE = 1
    MATCH = 2
    EXPLAIN = 3


@dataclass(frozen=True, slots=True)
class StepMark:
    """The step that was running when a task ended, with the positions of its publications.

    `subscription` is set if the step explained one match; `timed_out` if the task ended at the deadline.
    """

    phase: StepPhase
    first: int
    last: int
    subscription: str = ""
    timed_out: bool = False

    @property
    def is_one(self) -> bool:
        return self.first == self.last


class BudgetWatch:
    """Enforces the budget on the steps of a task, and records the current step."""

    def __init__(self, budget: Budget, folder: Path) -> None:
        self._budget, self._name = budget, folder / f"step-{uuid4().hex}"
        self._open = ExitStack()

    def __enter__(self) -> Self:
        trace = self._open.enter_context(self._name.with_suffix(f".{TRACE}").open("w"))
        mark = self._open.enter_context(self._name.with_suffix(f".{MARK}").open("wb"))
        self._mark = mark.fileno()
        faulthandler.register(signal.SIGALRM, file=trace, all_threads=False, chain=True)
        self._open.callback(faulthandler.unregister, signal.SIGALRM)
        self._open.callback(self._set_timer, 0.0)
        self._open.enter_context(observe_compilation(lambda: self._set_timer(0.0), self._restart))
        self._open.enter_context(_memory_limit(self._budget.megabytes))
        return self

    def __exit__(self, *failure: object) -> None:
        """Stop watching; after a failure the mark stays and names the failed step."""
        if failure[0] is None:
            self.rest()
        self._open.close()

    def step(self, phase: StepPhase, first: int, last: int, subscription: str = "") -> None:
        """Begin a step; it ends when the next one begins."""
        name = subscription.encode()
        os.pwrite(self._mark, _LAYOUT.pack(phase, first, last, len(name)) + name, 0)
        self._restart()

    def rest(self) -> None:
        """End the step. Work between steps, such as reading from the store, has no deadline."""
        self._set_timer(0.0)
        os.pwrite(self._mark, _LAYOUT.pack(StepPhase.NOTHING, 0, 0, 0), 0)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Stop the deadline of the step within a `with` block; afterwards it has all its time again."""
        self._set_timer(0.0)
        yield
        self._restart()

    def _restart(self) -> None:
        self._set_timer(self._budget.seconds)

    @staticmethod
    def _set_timer(seconds: float) -> None:
        signal.setitimer(signal.ITIMER_REAL, seconds)


def read_marks(folder: Path) -> Iterator[StepMark]:
    """Yield the steps that were running when the tasks with results in a folder ended."""
    for path in sorted(folder.glob(f"step-*.{MARK}")):
        data = path.read_bytes()
        if len(data) >= _LAYOUT.size:
            phase, first, last, length = _LAYOUT.unpack_from(data)
            name = data[_LAYOUT.size :][:length].decode()
            if phase:
                timed_out = path.with_suffix(f".{TRACE}").stat().st_size > 0
                yield StepMark(StepPhase(phase), first, last, name, timed_out)


def _memory_limit(megabytes: int) -> ExitStack:
    """Limit how much more memory the process may allocate; mapped files do not count.

    Without /proc, as on macOS, there is no limit.
    """
    before, limited = resource.getrlimit(resource.RLIMIT_DATA), ExitStack()
    used = _read_allocated_bytes()
    if used is not None:
        soft = used + (megabytes << 20)
        hard = before[1]
        resource.setrlimit(resource.RLIMIT_DATA, (soft if hard < 0 else min(soft, hard), hard))
        limited.callback(resource.setrlimit, resource.RLIMIT_DATA, before)
    return limited


def _read_allocated_bytes() -> int | None:
    """Return the bytes that count towards the limit, or None without /proc."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmData:"))
    return int(line.split()[1]) << 10
