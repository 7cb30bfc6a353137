"""Every peer, fresh: engines are built once and thrown away."""

from __future__ import annotations

from benchmarks.engines import DuckDB
from benchmarks.harness import Engine


def peers() -> list[Engine]:
    return [DuckDB()]
