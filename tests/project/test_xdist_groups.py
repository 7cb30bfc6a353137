"""Tests that share a server or a session run in one xdist worker, so that the others start none."""

from __future__ import annotations

import pytest


@pytest.mark.xdist_group("a group")
def test_xdist_group_is_part_of_node_id(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("loadgroup", False):
        pytest.skip("tests are not distributed by group: `-n 2 --dist loadgroup`")
    assert request.node.nodeid.endswith("@a group")


@pytest.mark.spark
def test_spark_tests_are_in_session_group(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("loadgroup", False):
        pytest.skip("tests are not distributed by group: `-n 2 --dist loadgroup`")
    assert request.node.nodeid.endswith("@session")
