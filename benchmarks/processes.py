"""CPU time of work that is spread over processes: Spark's JVM and its Python workers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

T = TypeVar("T")
TICKS = os.sysconf("SC_CLK_TCK")


class Spent(NamedTuple):
    """Seconds of all cores, and by the clock on the wall."""

    cpu: float
    wall: float


def spent_by_all(call: Callable[[], T]) -> tuple[Spent, T]:
    """What a call costs in this process and in all below it, and its answer."""
    cpu, wall = cpu_seconds(), time.perf_counter()
    answer = call()
    return Spent(cpu_seconds() - cpu, time.perf_counter() - wall), answer


def cpu_seconds() -> float:
    """CPU seconds so far of this process and all below it, those that have ended included."""
    ticks, parents = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile: its parent has its ticks
            continue
        number = int(path.parent.name)
        ticks[number], parents[number] = sum(map(int, fields[11:15])), int(fields[1])
    return sum(ticks[number] for number in ticks if _is_below(number, parents)) / TICKS


def _is_below(number: int, parents: dict[int, int]) -> bool:
    while number != os.getpid():
        if number not in parents:
            return False
        number = parents[number]
    return True
