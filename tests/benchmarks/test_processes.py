"""CPU time of processes below this one."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.processes import cpu_seconds, spent_by_all

BUSY = "import time\nwhile time.process_time() < {}: pass\nprint('done', flush=True)\ninput()"


def test_processes_that_run_and_that_have_ended_count() -> None:
    def work() -> None:
        with subprocess.Popen(
            [sys.executable, "-c", BUSY.format(0.3)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as child:
            assert child.stdin and child.stdout and child.stdout.readline()
            running.append(cpu_seconds() - before)
            child.stdin.write(b"\n")

    running: list[float] = []
    before = cpu_seconds()
    spent, _ = spent_by_all(work)
    assert running[0] >= 0.25 and spent.cpu >= 0.25 and spent.wall >= 0.25
