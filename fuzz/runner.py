"""Runs targets in separate processes and collects their findings."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from random import Random

from fuzz import execution
from fuzz.execution import Executor, Recorder, confine, save, warm_up
from fuzz.guided import explore
from fuzz.mutation import inputs
from fuzz.target import Target

MAX_CRASHES = 5
"""Crashed processes after which a target is stopped, as each may be the same failure."""

_MEANING = {
    signal.SIGPROF: "more than {cpu:g} s of CPU time for one input",
    signal.SIGALRM: "one input blocked for more than {wall} s",
    signal.SIGABRT: "the process aborted",
    signal.SIGSEGV: "the process crashed",
    signal.SIGKILL: "the process was killed, possibly for lack of memory",
}


@dataclass(slots=True)
class Report:
    """Result of a target: CPU seconds, executions, and the files of failing inputs."""

    target: str
    engine: str
    cpu: float = 0.0
    executions: int = 0
    findings: list[Path] = field(default_factory=list)


def run_mutations(target: Target, folder: Path, seed: int, seconds: float, most: int | None) -> Report:
    """Run blind mutations in forks of this process: `most` inputs, or as many as fit into the CPU seconds."""

    def start(attempt: int, left: float) -> int:
        return _fork(lambda: _mutate(target, folder, seed + attempt, left, most))

    return _run(target.name, "mutation", folder, start, seconds)


def run_guided(target: Target, folder: Path, seed: int, seconds: float) -> Report:
    """Run Atheris in forks of this process, which has instrumented its imports."""

    def start(attempt: int, left: float) -> int:
        return _fork(lambda: explore(target, folder, seed + attempt, left), folder / "log")

    return _run(target.name, "guided", folder, start, seconds)


def _run(name: str, engine: str, folder: Path, start: Callable[[int, float], int], seconds: float) -> Report:
    folder.mkdir(parents=True, exist_ok=True)
    report = Report(name, engine)
    before = {*folder.glob("*.input")}
    recorder = Recorder(folder / "last")
    first = recorder.executions
    for attempt in count():
        _, status, used = os.wait4(start(attempt, seconds - report.cpu), 0)
        report.cpu += used.ru_utime + used.ru_stime
        if status == 0:
            break
        save(folder, recorder.last, _describe_crash(status, folder))
        if attempt + 1 == MAX_CRASHES or report.cpu >= seconds:
            break
    report.executions = recorder.executions - first
    recorder.close()
    report.findings = sorted({*folder.glob("*.input")} - before)
    return report


def _describe_crash(status: int, folder: Path) -> str:
    stacks = folder / "stacks"
    trace = stacks.read_text(errors="replace") if stacks.exists() else ""
    if not os.WIFSIGNALED(status):
        log = folder / "log"
        return f"exit status {os.waitstatus_to_exitcode(status)}\n\n{trace}{log.read_text()[-4_000:] if log.exists() else ''}"
    signum = signal.Signals(os.WTERMSIG(status))
    meaning = _MEANING.get(signum, "the process died").format(
        cpu=execution.CPU_SECONDS, wall=execution.WALL_SECONDS
    )
    return f"{signum.name}: {meaning}\n\n{trace}"


def _fork(work: Callable[[], None], log: Path | None = None) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        if log is not None:
            to = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(to, 1)
            os.dup2(to, 2)
        work()
        status = 0
    finally:
        sys.stderr.flush()
        os._exit(status)


def _mutate(target: Target, folder: Path, seed: int, seconds: float, most: int | None) -> None:
    warm_up(target)
    confine(folder / "stacks")
    execute = Executor(target, folder, None if most else seconds)
    least = 1 + len(target.seeds)
    for data in islice(inputs(target.seeds, Random(seed)), None if most is None else least + most):
        execute(data)
