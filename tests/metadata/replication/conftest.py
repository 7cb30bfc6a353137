"""Two providers, of which the second one may follow the first."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.metadata.replication.nodes import Node


@pytest.fixture
def one(tmp_path: Path) -> Node:
    return Node(tmp_path / "one")


@pytest.fixture
def two(tmp_path: Path) -> Node:
    return Node(tmp_path / "two")
