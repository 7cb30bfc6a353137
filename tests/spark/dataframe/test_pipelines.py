"""Spark Declarative Pipelines: the program of the docs, run by `spark-pipelines` twice, with a new file in between."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.paths import ROOT
from tests.support.servers.spark_servers import HOME, connect_server

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(900)]

PAGE = ROOT / "docs/dataframes.md"
SECTION = "Declarative pipelines"
SPECIFICATION = """
name: alerts
storage: {storage}
libraries:
  - glob:
      include: transformations/**
"""
IN_FUNCTION = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

from tidings import Subscription
from tidings.spark import match

spark = SparkSession.active()


@dp.table
def matches():
    return match(spark.readStream.text("{orders}"), [Subscription("s1", "ana", "predicates", "price < 100")])
"""


def page_programs() -> dict[str, str]:
    """Return the blocks of the section of the docs by language."""
    section = PAGE.read_text().partition(f"\n## {SECTION}\n")[2].partition("\n## ")[0]
    return dict(re.findall(r"^```(\w+)\n(.*?)^```", section, re.MULTILINE | re.DOTALL))


class Project:
    """A folder with a pipeline, and a Connect server that runs it."""

    def __init__(self, folder: Path, server: str) -> None:
        self.folder, self._server = folder, server
        self.orders = folder / "orders"
        self.orders.mkdir(parents=True)
        (folder / "transformations").mkdir()
        storage = (folder / "storage").as_uri()
        (folder / "spark-pipeline.yml").write_text(SPECIFICATION.format(storage=storage))

    def define(self, name: str, text: str) -> None:
        (self.folder / "transformations" / name).write_text(text)

    def run(self) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
        }
        command = [str(HOME / "bin/spark-pipelines"), "run", "--remote", self._server]
        return subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=400,
        )


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    with connect_server(tmp_path / "server") as (_, address):
        yield address


def read_pairs(warehouse: Path, name: str) -> list[tuple[str, str]]:
    rows = pq.read_table(warehouse / name).to_pylist()
    return sorted((row["publication"], row["subscription"]) for row in rows)


def test_pipeline_of_the_docs_matches_in_every_kind_of_flow(tmp_path, server):
    project = Project(tmp_path / "project", server)
    programs = page_programs()
    project.define("alerts.py", programs["python"].replace("s3://shop/orders", str(project.orders)))
    project.define("alerts.sql", programs["sql"])
    warehouse = tmp_path / "server" / "spark-warehouse"
    (project.orders / "1.jsonl").write_text('{"id": "o1", "price": 95.0}\n{"id": "o2", "price": 195.0}\n')
    done = project.run()
    assert done.returncode == 0, done.stdout + done.stderr
    for table in ("matches", "matches_of_table", "matches_as_stream"):
        assert read_pairs(warehouse, table) == [("o1", "s1")], table
    (project.orders / "2.jsonl").write_text('{"id": "o3", "price": 3}\n')
    done = project.run()
    assert done.returncode == 0, done.stdout + done.stderr
    for table in ("matches", "matches_of_table", "matches_as_stream"):
        assert read_pairs(warehouse, table) == [("o1", "s1"), ("o3", "s1")], table
    assert pq.read_table(warehouse / "alerts_by_subscriber").to_pylist() == [
        {"subscriber": "ana", "count": 2}
    ]


def test_match_in_a_query_function_is_refused_by_spark(tmp_path, server):
    """The docs say so. If Spark allows it some day, this test fails, and the docs become simpler."""
    project = Project(tmp_path / "project", server)
    project.define("alerts.py", IN_FUNCTION.format(orders=project.orders))
    done = project.run()
    assert done.returncode != 0
    assert "ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION" in done.stdout + done.stderr
