"""Calls of the command line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Protocol

from tests.support.paths import ROOT
from tests.support.processes.forked import Forked

EXAMPLES = ROOT / "examples"


class Done(Protocol):
    """The result of a call."""

    exit_code: int
    stdout: str
    stderr: str
    output: str


class Tidings(Protocol):
    """A callable that runs `tidings` with arguments, as a shell would."""

    def __call__(self, *words: str, given: str | None = None) -> Done: ...


def start(*words: str, cwd: Path, **more: Any) -> subprocess.Popen[str]:
    """Start `tidings` in a forked process."""
    return Forked(["tidings", *words], **popen_options(cwd, more))


def start_anew(*words: str, cwd: Path, **more: Any) -> subprocess.Popen[str]:
    """Start `tidings` in a new process as a shell does, for commands with Spark."""
    return subprocess.Popen([sys.executable, "-m", "tidings", *words], **popen_options(cwd, more))


def popen_options(cwd: Path, streams: dict[str, Any]) -> dict[str, Any]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams
    return {"cwd": cwd, "env": os.environ | {"COLUMNS": "200"}, "text": True, **pipes}


def listens_at(serving: subprocess.Popen[str]) -> str:
    """Return the address of a started `tidings serve`, which its first line contains."""
    assert serving.stdout is not None
    line = serving.stdout.readline()
    addresses = re.findall(r"http://127\.0\.0\.1:\d+", line)
    assert addresses, line + (serving.stderr.read() if serving.stderr else "")
    return str(addresses[-1])
