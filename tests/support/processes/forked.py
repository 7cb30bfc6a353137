"""Programs as processes that start at once: forked from a process that has imported all modules.

Importing the modules takes each process one to two seconds. Tests of starting, of Spark, or of settings that are read
on import start a new process instead (`subprocess`).
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
    """Return the context whose fork server all tests share."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["tests.support.processes.forked_from"])
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", os.pathsep.join((str(ROOT / "src"), str(ROOT))))
        forkserver.ensure_running()
    return context


class Forked(subprocess.Popen[str]):
    """A process whose command is a module or a Python file with arguments."""

    def _execute_child(self, args: Any, *more: Any) -> None:
        options = dict(zip(CHILD_ARGUMENTS, more, strict=True))
        folder = os.fspath(options["cwd"] or Path.cwd())
        environment = dict(os.environ if options["env"] is None else options["env"])
        streams = [Stream(options[name]) for name in STREAMS]
        self._process = others().Process(target=run, args=(args, streams, folder, environment), daemon=True)
        self._process.start()
        self.pid, self._child_created = self._process.pid, True
        self._close_pipe_fds(*(options[name] for name in PIPES))

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
CHILD_ARGUMENTS = (
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
"""Arguments with which `subprocess` starts a child process."""


class Stream:
    """The end of a pipe that a process receives, or no pipe."""

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
    """Run the program in this process, from its first line to the shutdown of the interpreter."""
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
