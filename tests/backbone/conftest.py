"""Two providers, of which the second one may follow the first, and a database that they may share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from postgres import Server, find_binaries, running_server
from tests.backbone.nodes import Node


@pytest.fixture
def one(tmp_path: Path) -> Node:
    return Node(tmp_path / "one")


@pytest.fixture
def two(tmp_path: Path) -> Node:
    return Node(tmp_path / "two")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("no PostgreSQL here: neither initdb on the PATH nor /usr/lib/postgresql/*/bin")
    with running_server(binaries) as server:
        yield server
