"""Two providers, of which the second may follow the first."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.metadata.replication.nodes import Node


@pytest.fixture
def first_node(tmp_path: Path) -> Node:
    return Node(tmp_path / "one")


@pytest.fixture
def second_node(tmp_path: Path) -> Node:
    return Node(tmp_path / "two")
