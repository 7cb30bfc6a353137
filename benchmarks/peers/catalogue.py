"""Every peer, fresh: engines are built once and thrown away."""

from __future__ import annotations

from benchmarks.engine import Engine
from benchmarks.peers.duckdb_join import DuckDB
from benchmarks.peers.polars_join import Polars
from benchmarks.peers.spark_join import Spark


def peers() -> list[Engine]:
    return [DuckDB(), Polars(), Spark()]
