"""A terminal that stays open: commands run one after the other in one process and share its Spark session."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession
from typer.testing import CliRunner

from tidings.cli.main import app


class Called(NamedTuple):
    """The result of a call; `output` has both streams as a terminal shows them."""

    exit_code: int
    stdout: str
    stderr: str
    output: str


class Terminal:
    """A separate process, because this one has the Spark session of the tests, and commands use other settings."""

    def __init__(self) -> None:
        self._process = ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=keep_spark)

    def call(self, folder: Path, *words: str) -> Called:
        """Run `tidings` with arguments in a folder."""
        return self._process.submit(run_command, folder, words).result()

    def close(self) -> None:
        self._process.shutdown()


def keep_spark() -> None:
    """Keep the session until the terminal closes: otherwise the next command would start nine processes again.
    Commands that run as processes test the end of the session.
    """
    SparkSession.stop = lambda _: None


def run_command(folder: Path, words: Sequence[str]) -> Called:
    os.chdir(folder)
    result = CliRunner().invoke(app, list(words), catch_exceptions=False)
    return Called(result.exit_code, result.stdout, result.stderr, result.output)
