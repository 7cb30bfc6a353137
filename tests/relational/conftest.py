"""The Spark session of the tests of Spark: one for the whole run."""

from __future__ import annotations

import pytest

from tidings.spark.session import open_session


@pytest.fixture(scope="session")
def session(tmp_path_factory):
    """As in the tests of Spark; whoever comes second gets the session that is there."""
    opened = open_session("local[2]", log=tmp_path_factory.mktemp("spark") / "spark.log")
    yield opened
    opened.stop()
