"""CPU time of descendant processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from benchmarks.processes import TICKS, measure_all_processes, ticks

BUSY = "import time\nwhile time.process_time() < {}: pass\n"
RUNS = BUSY.format(0.8) + "print('done', flush=True)\ninput()"
LEAVES = (  # as Spark's daemon does with its workers
    "import os, signal, sys\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
    "if os.fork() == 0:\n    exec(sys.argv[1])\n    os._exit(0)\n"
    "try:\n    os.wait()\nexcept ChildProcessError:\n    print('done', flush=True)\ninput()"
)


def waits_for(*command: str) -> Callable[[], float]:
    """Return a function that starts Python, waits for its first output, and returns the CPU time of all processes."""

    def call() -> float:
        with subprocess.Popen(
            [sys.executable, "-c", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as child:
            assert child.stdin and child.stdout and child.stdout.readline()
            spent = sum(ticks().values()) / TICKS
            child.stdin.write(b"\n")
        return spent

    return call


def test_ticks_include_running_process() -> None:
    before = sum(ticks().values()) / TICKS
    assert waits_for(RUNS)() - before >= 0.5


@pytest.mark.parametrize("command", [(RUNS,), (LEAVES, BUSY.format(0.8))])
def test_spent_by_all_includes_ended_process(command: tuple[str, ...]) -> None:
    spent, _ = measure_all_processes(waits_for(*command))
    assert spent.cpu >= 0.5
    assert spent.wall >= 0.5
