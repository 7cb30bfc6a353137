"""How Spark finds the format `tidings`."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import pyspark_tidings
from tests.support.paths import ROOT
from tidings.model import Publication
from tidings.spark import register
from tidings.spark.data_source.source import TidingsSource
from tidings.store.database import sqlite_url
from tidings.store.store import open_store


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = sqlite_url(tmp_path / "store.db")
    with open_store(url) as store:
        store.journal.append([Publication("a", "application/json", b"{}")])
    return url


@pytest.mark.spark
def test_format_is_found_without_registration(session: SparkSession, url: str) -> None:
    assert session.newSession().read.format("tidings").load(url).count() == 1


@pytest.mark.spark
def test_register_registers_the_format_and_may_be_repeated(session: SparkSession, url: str) -> None:
    other = session.newSession()
    register(other)
    register(other)
    assert other.read.format("tidings").load(url).count() == 1


def test_package_for_spark_has_the_source_and_imports_nothing_heavy() -> None:
    """Spark imports it in every program of the environment."""
    assert pyspark_tidings.DefaultSource is TidingsSource
    heavy = {"sqlalchemy", "numba", "lark", "tidings.store", "tidings.kinds"}
    code = "import sys, pyspark_tidings; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not heavy & set(done.stdout.split())


def test_package_for_spark_is_part_of_the_distribution() -> None:
    found = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]["find"]
    assert found == {"where": [str(Path(pyspark_tidings.__file__).parents[1].relative_to(ROOT))]}
