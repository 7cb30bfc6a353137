"""A terminal that stays open: commands one after the other in one process, whose JVM is there for the next one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from typer.testing import CliRunner

from tidings.interfaces.cli.main import app


class Terminal:
    """Not this process: Spark's session of the tests is here, and a command ends the one it finds."""

    def __init__(self) -> None:
        self._process = ProcessPoolExecutor(1, mp_context=get_context("spawn"))

    def output(self, folder: Path, words: Sequence[str]) -> str:
        """What `tidings` prints with these words, typed in this folder."""
        return self._process.submit(printed, folder, words).result()

    def close(self) -> None:
        self._process.shutdown()


def printed(folder: Path, words: Sequence[str]) -> str:
    os.chdir(folder)
    return CliRunner().invoke(app, list(words), catch_exceptions=False).output
