"""The command line as tests call it."""

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
    """What a call came to."""

    exit_code: int
    stdout: str
    stderr: str
    output: str


class Tidings(Protocol):
    """Calls `tidings` with words, as a shell would."""

    def __call__(self, *words: str, given: str | None = None) -> Done: ...


def start(*words: str, cwd: Path, **more: Any) -> subprocess.Popen[str]:
    """`tidings` as a process of its own."""
    return Forked(["tidings", *words], **how(cwd, more))


def start_anew(*words: str, cwd: Path, **more: Any) -> subprocess.Popen[str]:
    """`tidings` as a shell starts it, for commands with Spark."""
    return subprocess.Popen([sys.executable, "-m", "tidings", *words], **how(cwd, more))


def how(cwd: Path, streams: dict[str, Any]) -> dict[str, Any]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams
    return {"cwd": cwd, "env": os.environ | {"COLUMNS": "200"}, "text": True, **pipes}


def listens_at(serving: subprocess.Popen[str]) -> str:
    """Where a `tidings serve` that was started listens, as its first line says."""
    assert serving.stdout is not None
    said = serving.stdout.readline()
    found = re.findall(r"http://127\.0\.0\.1:\d+", said)
    assert found, said + (serving.stderr.read() if serving.stderr else "")
    return str(found[-1])
