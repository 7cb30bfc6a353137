"""Programs as processes of their own that begin at once: forked from one that has imported all they would.

To import it anew takes each of them one to two seconds. What is about that beginning, about Spark, or about settings
that are read with the modules, is started as a program instead (`subprocess`).
"""

from __future__ import annotations

import atexit
import io
import os
import runpy
import signal
import subprocess
import sys
import threading
import traceback
from functools import cache
from multiprocessing import current_process, forkserver, get_context
from multiprocessing.context import BaseContext
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import ROOT


@cache
def others() -> BaseContext:
    """Of which processes are forked: of one and the same, whatever a test has them for."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["tests.support.processes.forked_from"])
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", os.pathsep.join((str(ROOT / "src"), str(ROOT))))
        forkserver.ensure_running()
    return context


class Forked(subprocess.Popen[str]):
    """A process like any other, whose command is the name of a module or a Python file, and its words."""

    def _execute_child(self, args: Any, *more: Any) -> None:
        given = dict(zip(GIVEN, more, strict=True))
        there = os.fspath(given["cwd"] or Path.cwd())
        environment = dict(os.environ if given["env"] is None else given["env"])
        streams = [Stream(given[name]) for name in STREAMS]
        self._process = others().Process(target=run, args=(args, streams, there, environment), daemon=True)
        self._process.start()
        self.pid, self._child_created = self._process.pid, True
        self._close_pipe_fds(*(given[name] for name in PIPES))

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if self.returncode is None:
            self.returncode = self._process.exitcode
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        self._process.join(timeout)
        if self._internal_poll() is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return self.returncode


PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
STREAMS = ("p2cread", "c2pwrite", "errwrite")
GIVEN = (
    *(
        "executable",
        "preexec_fn",
        "close_fds",
        "pass_fds",
        "cwd",
        "env",
        "startupinfo",
        "creationflags",
        "shell",
    ),
    *PIPES,
    *("restore_signals", "gid", "gids", "uid", "umask", "start_new_session", "process_group"),
)
"""What `subprocess` hands to whoever starts the process."""


class Stream:
    """The end of a pipe that a process gets, if it gets one."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (DupFd(self._number) if self._number >= 0 else None,)

    def become(self, number: int) -> None:
        if self._number >= 0:
            os.dup2(self._number, number)


def _received(number: Any) -> Stream:
    return Stream(-1 if number is None else number.detach())


def run(command: list[str], streams: list[Stream], folder: str, environment: dict[str, str]) -> None:
    """Be that process, from its first line to the last thing that an interpreter does."""
    for number, stream in enumerate(streams):
        stream.become(number)
    sys.stdin, sys.stdout = open(0), open(1, "w")  # noqa: SIM115
    sys.stderr = io.TextIOWrapper(open(2, "wb", 0), write_through=True, errors="backslashreplace")  # noqa: SIM115
    current_process()._config["daemon"] = False  # type: ignore[attr-defined]
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for each in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code: Any = 0
    try:
        begin(command)
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(code or 0)


def begin(command: list[str]) -> None:
    name, *_ = sys.argv = list(command)
    if name.endswith(".py"):
        runpy.run_path(name, run_name="__main__")
    else:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
