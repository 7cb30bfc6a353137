"""Each supported version of Spark, with the connectors that fit it. Another version than the installed one has an
environment of its own (`tests/support/spark_versions.py`)."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.packages import Unavailable
from tests.support.paths import ROOT
from tests.support.servers.kafka_broker import find_java
from tests.support.spark_versions import VERSIONS, find_jars, find_python, installed

pytestmark = [pytest.mark.long, pytest.mark.timeout(3_600), pytest.mark.xdist_group("connectors")]

SAMPLE = (
    "tests/spark/dataframe",
    "tests/spark/sources/test_admission_control.py",
    "tests/spark/stream/test_runner.py",
    "tests/spark/batch/test_table_job.py",
    "tests/metadata/spark/test_metadata_stream.py",
    "tests/relational/test_job.py",
)
"""Tests of what differs between versions: sources, Arrow functions, table functions, options of sessions."""

OTHERS = [series for series in VERSIONS if series != installed().series]


@pytest.fixture
def python(series: str) -> Path:
    """An interpreter with this version of Spark."""
    try:
        return find_python(series)
    except Unavailable as missing:
        pytest.skip(f"no pyspark {series} here: {missing}")


def run_tests(python: Path, *places: str) -> int:
    """Run tests in a process; return how many have passed."""
    command = [python, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "--timeout", "900", *places]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-4_000:]
    return int(re.findall(r"(\d+) passed", done.stdout)[-1])


@pytest.mark.parametrize("series", VERSIONS)
def test_connectors_read_and_write_what_is_matched(series: str, python: Path) -> None:
    try:
        find_java()
        find_jars(VERSIONS[series])
    except Unavailable as missing:
        pytest.skip(f"no connectors here: {missing}")
    assert run_tests(python, "tests/spark/connectors/connector_checks.py") >= 3


@pytest.mark.parametrize("series", OTHERS)
def test_spark_of_another_version_passes_a_sample_of_the_tests(series: str, python: Path) -> None:
    assert run_tests(python, *SAMPLE) > 50
