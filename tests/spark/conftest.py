"""One Spark session for all tests in this folder; tests that need another master start a process of their own."""

from __future__ import annotations

import pytest

from tidings.spark.session import open_session

QUICK = {
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}
"""A test has a few rows and plans of its own: to compile Java for each of their projections, and to plan anew after
each exchange, is most of the work. Commands of the docs run with what everybody has.
"""


@pytest.fixture(scope="session")
def session(tmp_path_factory):
    """Two cores, so that tasks really run side by side; the catalogue is not used, so there is nothing to reset."""
    opened = open_session("local[2]", log=tmp_path_factory.mktemp("spark") / "spark.log", **QUICK)
    yield opened
    opened.stop()
