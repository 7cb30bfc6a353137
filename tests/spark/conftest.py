"""One Spark session for all tests in this folder; tests that need another master start a process of their own."""

from __future__ import annotations

import pytest

from tidings.spark.session import open_session


@pytest.fixture(scope="session")
def session(tmp_path_factory):
    """Two cores, so that tasks really run side by side; the catalogue is not used, so there is nothing to reset."""
    opened = open_session("local[2]", log=tmp_path_factory.mktemp("spark") / "spark.log")
    yield opened
    opened.stop()
