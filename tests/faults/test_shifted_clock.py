"""A clock that is set back by a day between two runs: nothing is lost or repeated."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tidings.service.tidings import Tidings

SOURCE = ROOT / "tests/support/processes/shifted_clock.c"
DAY = 24 * 60 * 60


@pytest.fixture(scope="module")
def shifted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process whose clock is a day behind."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("no C compiler, or no Linux, to shift the clock of a process with")
    library = tmp_path_factory.mktemp("clock") / "shifted_clock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True)
    return os.environ | {"LD_PRELOAD": str(library), "SHIFTED_CLOCK": str(-DAY)}


def run_tidings(folder: Path, *words: str, env: dict[str, str] | None = None) -> str:
    process = subprocess.run(
        [sys.executable, "-m", "tidings", *words], cwd=folder, env=env, capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_publish_with_clock_set_back_continues_positions(tmp_path: Path, shifted: dict[str, str]) -> None:
    assert run_tidings(tmp_path, "publish", '{"price": 1}', "--id", "p-1") == "p-1  position 1\n"
    assert run_tidings(tmp_path, "publish", '{"price": 2}', "--id", "p-2", env=shifted) == "p-2  position 2\n"
    with Tidings(tmp_path / ".tidings") as tidings:
        last = tidings.store.journal.time_of(2)
    assert last is not None and last < datetime.now(UTC) - timedelta(hours=23), "the clock was set back"


@pytest.mark.long  # two starts of Spark
@pytest.mark.spark
def test_run_with_clock_set_back_matches_later_publications(tmp_path: Path, shifted: dict[str, str]) -> None:
    run_tidings(tmp_path, "subscribe", "--as", "ana", "price < 10", "--id", "cheap")
    run_tidings(tmp_path, "publish", '{"price": 1}', "--id", "p-1")
    assert run_tidings(tmp_path, "run", "--once", "--master", "local[1]").endswith(
        "1 publication, 1 notification\n"
    )
    run_tidings(tmp_path, "publish", '{"price": 2}', "--id", "p-2")
    again = run_tidings(tmp_path, "run", "--once", "--master", "local[1]", env=shifted)
    assert again.endswith("1 publication, 1 notification\n")
    with Tidings(tmp_path / ".tidings") as tidings:
        notifications = [(one.sequence, one.publication) for one in tidings.notifications("ana")]
    assert notifications == [(1, "p-1"), (2, "p-2")]
