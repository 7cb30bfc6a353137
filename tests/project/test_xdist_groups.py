"""Tests that share a server or a session run in one worker: each of the others would start one of its own."""

from __future__ import annotations

import pytest


@pytest.mark.xdist_group("a group")
def test_a_group_is_known_to_whoever_hands_out_tests(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("loadgroup", False):
        pytest.skip("tests are not handed out by groups: `-n 2 --dist loadgroup`")
    assert request.node.nodeid.endswith("@a group")


@pytest.mark.spark
def test_what_needs_spark_is_a_group(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("loadgroup", False):
        pytest.skip("tests are not handed out by groups: `-n 2 --dist loadgroup`")
    assert request.node.nodeid.endswith("@session")
