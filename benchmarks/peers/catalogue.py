"""All peers. Each call creates new engines."""

from __future__ import annotations

from benchmarks.engine import Engine
from benchmarks.peers.cel_rules import Cel
from benchmarks.peers.clips_rules import Clips
from benchmarks.peers.duckdb_join import DuckDB
from benchmarks.peers.polars_join import Polars
from benchmarks.peers.programs import EventRuler, LuceneMonitor, Quamina
from benchmarks.peers.spark_join import Spark
from benchmarks.peers.zen_rules import Zen

JOINS: tuple[type[Engine], ...] = (DuckDB, Polars, Spark)
RULES: tuple[type[Engine], ...] = (Clips, Zen, Cel)
PROGRAMS: tuple[type[Engine], ...] = (EventRuler, LuceneMonitor, Quamina)
"""These are downloaded and compiled on first use."""


def peers() -> list[Engine]:
    """Create engines: databases, rule libraries from PyPI, publish/subscribe engines in other languages."""
    return [peer() for peer in JOINS + RULES + PROGRAMS]
