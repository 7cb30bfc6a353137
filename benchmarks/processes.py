"""CPU time and memory of work that is spread over processes: Spark's JVM and its Python workers.

Spark ends workers that were idle for a minute, and no process waits for them, so the system's counters lose their CPU
time. Therefore processes are polled, and for a process that has ended, the last value counts.
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
POLL_SECONDS = 0.25
"""Polling interval: up to this much CPU time of an ended process may be missed. A poll costs about a millisecond."""
WORKER = b"pyspark.daemon"


class Cost(NamedTuple):
    """CPU seconds of all cores, and wall-clock seconds."""

    cpu: float
    wall: float


class Process(NamedTuple):
    """Identity of a process: its number may be reused, but not with the same start time."""

    number: int
    start: int


def measure_all_processes(call: Callable[[], T]) -> tuple[Cost, T]:
    """Return the cost of a call in this process and its descendants, and its result."""
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
    return Cost(cpu, time.perf_counter() - wall), answer


def _watch(last: dict[Process, int], done: Event) -> None:
    while not done.wait(POLL_SECONDS):
        last |= ticks()
    last |= ticks()


def measure_largest_worker(call: Callable[[], T]) -> tuple[int, T]:
    """Return the largest resident size of one of Spark's Python workers during a call, in bytes, and its result."""
    largest, done = [0], Event()
    watcher = Thread(target=_watch_workers, args=(largest, done), daemon=True)
    watcher.start()
    try:
        answer = call()
    finally:
        done.set()
        watcher.join()
    return largest[0], answer


def _watch_workers(largest: list[int], done: Event) -> None:
    page = os.sysconf("SC_PAGE_SIZE")
    while not done.wait(POLL_SECONDS / 5):
        for process in ticks():
            place = Path("/proc", str(process.number))
            try:
                if WORKER in (place / "cmdline").read_bytes():
                    largest[0] = max(largest[0], page * int((place / "statm").read_text().split()[1]))
            except (FileNotFoundError, ProcessLookupError):  # it has ended
                continue


def ticks(top: int | None = None) -> dict[Process, int]:
    """Return the CPU ticks so far of this process (or `top`) and its descendants, by process."""
    used, parents = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):  # it has ended
            continue
        number = int(path.parent.name)
        used[Process(number, int(fields[19]))] = int(fields[11]) + int(fields[12])
        parents[number] = int(fields[1])
    root = os.getpid() if top is None else top
    return {
        process: spent for process, spent in used.items() if _is_descendant(process.number, root, parents)
    }


def _is_descendant(number: int, top: int, parents: dict[int, int]) -> bool:
    while number != top:
        if number not in parents:
            return False
        number = parents[number]
    return True
