"""One Spark session for all tests in this folder; tests that need another master start a process of their own."""

from __future__ import annotations

import pytest

from tidings.spark.session import open_session

QUICK = {"spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""A test has a few rows and plans of its own: to compile Java for each of their projections is most of the work."""


@pytest.fixture(scope="session")
def session(tmp_path_factory):
    """Two cores, so that tasks really run side by side; the catalogue is not used, so there is nothing to reset."""
    opened = open_session("local[2]", log=tmp_path_factory.mktemp("spark") / "spark.log", **QUICK)
    yield opened
    opened.stop()
