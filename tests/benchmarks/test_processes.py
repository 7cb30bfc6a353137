"""CPU time of processes below this one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from benchmarks.processes import TICKS, spent_by_all, ticks

BUSY = "import time\nwhile time.process_time() < {}: pass\n"
RUNS = BUSY.format(0.8) + "print('done', flush=True)\ninput()"
LEAVES = (  # as Spark's daemon does with its workers
    "import os, signal, sys\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
    "if os.fork() == 0:\n    exec(sys.argv[1])\n    os._exit(0)\n"
    "try:\n    os.wait()\nexcept ChildProcessError:\n    print('done', flush=True)\ninput()"
)


def waits_for(*command: str) -> Callable[[], float]:
    """Starts Python; when that has said something, what all processes have spent; then it is ended."""

    def call() -> float:
        with subprocess.Popen(
            [sys.executable, "-c", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as child:
            assert child.stdin and child.stdout and child.stdout.readline()
            seen = sum(ticks().values()) / TICKS
            child.stdin.write(b"\n")
        return seen

    return call


def test_a_process_that_runs_counts() -> None:
    before = sum(ticks().values()) / TICKS
    assert waits_for(RUNS)() - before >= 0.5


@pytest.mark.parametrize("command", [(RUNS,), (LEAVES, BUSY.format(0.8))])
def test_a_process_that_has_ended_counts(command: tuple[str, ...]) -> None:
    spent, _ = spent_by_all(waits_for(*command))
    assert spent.cpu >= 0.5
    assert spent.wall >= 0.5
