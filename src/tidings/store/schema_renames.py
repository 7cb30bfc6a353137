"""Renames of tables, columns, indexes and counters in stores of earlier versions. No rows are copied.

Missing tables and columns are skipped: a store may be older than them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlalchemy import Connection, inspect, text, update

from tidings.store import tables as store_tables

TABLES = {
    "held": "deferred_notifications",
    "promises": "deferral_deadlines",
    "schema_rows": "event_schema",
    "feed_entries": "numbered_notifications",
    "feed_cursors": "numbering_cursors",
    "delivery_lanes": "delivery_cursors",
    "delivery_owners": "scheduling_cursors",
    "delivery_gathered": "pending_digests",
    "undelivered": "dead_deliveries",
    "measures": "time_series",
    "metadata_backbone": "followed_log",
    "rule_group_also": "rule_group_predicates",
    "rule_feeds": "rule_inputs",
}

COLUMNS: Mapping[str, Mapping[str, str]] = {
    "deferred_notifications": {"place": "position"},
    "event_schema": {"place": "number"},
    "reference_tables": {"place": "path"},
    "destinations": {"place": "host", "since": "start_sequence"},
    "scheduling_cursors": {"seen": "sequence"},
    "pending_digests": {"upto": "sequence"},
    "delivery_cursors": {
        "place": "host",
        "told": "position",
        "busy": "leased",
        "gathered": "digest_end",
        "gathers": "next_is_digest",
    },
    "dead_deliveries": {"place": "host", "tries": "attempts_since_replay"},
    "time_series": {"most": "maximum"},
    "polled_feeds": {"inside": "in_private_network", "asked": "last_ping"},
    "metadata_log": {"what": "operation"},
    "metadata_classes": {"above": "superclass"},
    "rule_groups": {"further": "further_predicates"},
    "rule_group_predicates": {"turned": "swapped"},
    "paused_resources": {"said": "content"},
}
"""Columns by the new names of their tables."""

COUNTERS = {"held": "deferred_notifications", "undelivered": "dead_deliveries", "matched": "match_position"}


def rename_all(connection: Connection) -> None:
    """Give the tables, columns, indexes and counters of a store their present names."""
    existing = set(inspect(connection).get_table_names())
    for old, new in TABLES.items():
        if old in existing:
            connection.execute(text(f"ALTER TABLE {old} RENAME TO {new}"))
    existing = set(inspect(connection).get_table_names())
    for table in existing & COLUMNS.keys():
        _rename_columns(connection, table)
    for old, new in TABLES.items():
        if new in existing:
            _rename_indexes(connection, old, new)
    counters = store_tables.counters
    for old, new in COUNTERS.items():
        connection.execute(update(counters).where(counters.c.name == old).values(name=new))


def _rename_columns(connection: Connection, table: str) -> None:
    existing = {column["name"] for column in inspect(connection).get_columns(table)}
    for old, new in COLUMNS[table].items():
        if old in existing:
            connection.execute(text(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}"))


def _rename_indexes(connection: Connection, old: str, new: str) -> None:
    """Rename the indexes that have the earlier name of their table in their own, as `ix_held_time` and `held_pkey`."""
    select_names, rename = _INDEX_STATEMENTS[connection.dialect.name]
    for name in connection.execute(text(select_names), {"table": new}).scalars().all():
        if name.removeprefix("ix_").startswith(f"{old}_"):
            rename(connection, new, name, name.replace(old, new, 1))


def _alter_index(connection: Connection, _: str, old: str, new: str) -> None:
    connection.execute(text(f"ALTER INDEX {old} RENAME TO {new}"))


def _create_index_again(connection: Connection, table: str, old: str, new: str) -> None:
    """SQLite cannot rename an index."""
    connection.execute(text(f"DROP INDEX {old}"))
    indexes = {str(index.name): index for index in store_tables.metadata.tables[table].indexes}
    indexes[new].create(connection)


_INDEX_STATEMENTS: Mapping[str, tuple[str, Callable[[Connection, str, str, str], None]]] = {
    "sqlite": (
        "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = :table AND sql IS NOT NULL",
        _create_index_again,
    ),
    "postgresql": (
        "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema() AND tablename = :table",
        _alter_index,
    ),
}
