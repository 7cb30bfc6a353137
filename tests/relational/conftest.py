"""One Spark session for all tests in this folder."""

from __future__ import annotations

import pytest

from tests.spark.conftest import QUICK
from tidings.spark.session import open_session


@pytest.fixture(scope="session")
def session(tmp_path_factory):
    """As in the tests of Spark."""
    opened = open_session("local[2]", log=tmp_path_factory.mktemp("spark") / "spark.log", **QUICK)
    yield opened
    opened.stop()
