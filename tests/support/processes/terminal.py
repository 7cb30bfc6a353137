"""A terminal that stays open: commands one after the other in one process, whose Spark is there for the next one."""

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
    """What a call came to; `output` is both, as a person sees them."""

    exit_code: int
    stdout: str
    stderr: str
    output: str


class Terminal:
    """Not this process: Spark's session of the tests is here, and commands have settings of their own."""

    def __init__(self) -> None:
        self._process = ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=keep_spark)

    def call(self, folder: Path, *words: str) -> Called:
        """`tidings` with these words, typed in this folder."""
        return self._process.submit(called, folder, words).result()

    def close(self) -> None:
        self._process.shutdown()


def keep_spark() -> None:
    """A command ends its session, and the next one would start nine processes anew: here the session ends with the
    terminal. Commands that run as processes show the end.
    """
    SparkSession.stop = lambda _: None


def called(folder: Path, words: Sequence[str]) -> Called:
    os.chdir(folder)
    done = CliRunner().invoke(app, list(words), catch_exceptions=False)
    return Called(done.exit_code, done.stdout, done.stderr, done.output)
