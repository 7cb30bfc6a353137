"""Two providers, of which the second one may follow the first, and a database or a broker that they may share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.engine import NotHere
from kafka_broker import Broker, find_java, running_broker
from tests.backbone.nodes import Node


@pytest.fixture
def one(tmp_path: Path) -> Node:
    return Node(tmp_path / "one")


@pytest.fixture
def two(tmp_path: Path) -> Node:
    return Node(tmp_path / "two")


@pytest.fixture(scope="session")
def kafka_broker() -> Iterator[Broker]:
    try:
        java = find_java()
    except NotHere as missing:
        pytest.skip(f"no Kafka here: {missing}")
    with running_broker(java) as broker:
        yield broker
