"""CPU time of work that is spread over processes: Spark's JVM and its Python workers.

Spark ends workers that had nothing to do for a minute, and nobody waits for them: what they spent is then in no count
of the system's. So processes are looked at again and again, and of one that has ended counts what was seen last.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple, TypeVar

T = TypeVar("T")
TICKS = os.sysconf("SC_CLK_TCK")
LOOK_SECONDS = 0.25
"""So much of the time of a process that ends may be missed. A look costs about a millisecond."""


class Spent(NamedTuple):
    """Seconds of all cores, and by the clock on the wall."""

    cpu: float
    wall: float


class Process(NamedTuple):
    """A number may be given again, a number and a start never."""

    number: int
    start: int


def spent_by_all(call: Callable[[], T]) -> tuple[Spent, T]:
    """What a call costs in this process and in all below it, and its answer."""
    before = ticks()
    last, done = dict(before), Event()
    watcher = Thread(target=_watch, args=(last, done), daemon=True)
    wall = time.perf_counter()
    watcher.start()
    try:
        answer = call()
    finally:
        done.set()
        watcher.join()
    cpu = sum(spent - before.get(process, 0) for process, spent in last.items()) / TICKS
    return Spent(cpu, time.perf_counter() - wall), answer


def _watch(last: dict[Process, int], done: Event) -> None:
    while not done.wait(LOOK_SECONDS):
        last |= ticks()
    last |= ticks()


def ticks(top: int | None = None) -> dict[Process, int]:
    """What this process (or another one) and those below it have spent so far, each by itself."""
    found, parents = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
            continue
        number = int(path.parent.name)
        found[Process(number, int(fields[19]))] = int(fields[11]) + int(fields[12])
        parents[number] = int(fields[1])
    above = os.getpid() if top is None else top
    return {process: spent for process, spent in found.items() if _is_below(process.number, above, parents)}


def _is_below(number: int, top: int, parents: dict[int, int]) -> bool:
    while number != top:
        if number not in parents:
            return False
        number = parents[number]
    return True
