"""Tests that share a server or a session run in one worker: each of the others would start one of its own."""

from __future__ import annotations

import os

import pytest


@pytest.mark.xdist_group("a group")
@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="one process: all tests share everything")
def test_a_group_is_known_to_whoever_hands_out_tests(request: pytest.FixtureRequest) -> None:
    assert request.node.nodeid.endswith("@a group")
