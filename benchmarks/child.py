"""Engines in separate processes: a program reads one command per line and answers each with a line of JSON.

    child = Child(["./quamina-driver"])
    child.ask("load", "/tmp/subscriptions.jsonl")    # {"seconds": 1.2, "bytes": 1000000}
    child.ask("match")                               # {"seconds": 0.4}
    child.close()

The words of a command are separated by tabs, so that a program needs no parser. `seconds` in an answer is the CPU time
of the command, measured by the program itself; `error` describes a failure.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class ChildError(Exception):
    """The program reported an error, or ended instead of answering."""


class Child:
    """A running program. It shares the standard error of this process."""

    def __init__(self, command: Sequence[str | Path], folder: Path | None = None) -> None:
        self._name = str(command[0])
        self._process = subprocess.Popen(
            list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder
        )

    def ask(self, *words: str | Path | int) -> dict[str, Any]:
        """Send a command and return the answer."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write("\t".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise ChildError(
                f"{self._name} ended with code {self._process.wait()} instead of answering {words[0]!r}"
            )
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ChildError(f"{self._name}, {words[0]}: {answer['error']}")
        return answer

    def close(self) -> None:
        """Kill the program, whatever it is doing."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
