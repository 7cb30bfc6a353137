"""Drivers of their own: tasks that are retried, a driver that is killed, and Spark Connect."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest

from tests.support.paths import ROOT
from tests.support.processes.data_source_program import ROWS
from tidings.store.store import Store

pytestmark = [pytest.mark.spark, pytest.mark.long]
PROGRAM = ROOT / "tests/support/processes/data_source_program.py"


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        start_new_session=True,
    )


def run(*arguments: str) -> str:
    process = start(*arguments)
    out, errors = process.communicate(timeout=280)
    assert process.returncode == 0, errors[-4_000:]
    return out


def test_write_with_tasks_that_are_retried_publishes_each_row_once(
    store: Store, url: str, tmp_path: Path
) -> None:
    run("local[2,2]", url, str(tmp_path), "retry")
    ids = [each.id for each in store.journal.read(0)]
    assert len(ids) == len(set(ids)) == ROWS


def test_write_repeated_after_the_driver_was_killed_publishes_each_row_once(
    store: Store, url: str, tmp_path: Path
) -> None:
    process, pause = start("local[2]", url, str(tmp_path), "write"), Event()
    while store.journal.head() == 0:
        assert process.poll() is None
        pause.wait(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert 0 < store.journal.head() < ROWS
    run("local[2]", url, str(tmp_path), "write")
    assert {each.id for each in store.journal.read(0)} == {f"n{number}" for number in range(ROWS)}
    assert store.journal.head() == ROWS


def test_connect_reads_and_writes_batches_and_streams(store: Store, url: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "lines.txt").write_text('{"n": 3}\n{broken\n')
    told = json.loads(run("connect", url, str(tmp_path), "both").splitlines()[-1])
    published = sorted(each.id for each in store.journal.read(0))
    assert told["batch"] == ["a", "b"]
    assert told["stream"] == published and len(published) == 3
    assert [letter.body for letter in store.dead_letters.read()] == [b"{broken"]
