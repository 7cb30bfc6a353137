"""Tables of the metadata log, of the provider's identity, and of the dependencies between rules."""

from __future__ import annotations

from sqlalchemy import Column, Connection, Index, LargeBinary, Table, Text, delete, func, insert, select

from tidings.metadata.rules.rule_parser import parse_rule
from tidings.metadata.sql.tables import metadata_rules, metadata_schema
from tidings.store import names
from tidings.store.tables import Name, Whole, counters, metadata

LOG_COUNTER, APPLIED_COUNTER, RULE_CHANGES_COUNTER = (
    "metadata_log",
    "metadata_applied",
    "metadata_rule_changes",
)
"""Counters: the last position of the log, the last applied position, and the number of changes of rules."""

# Registrations in one order. The log begins later than at the first position if it was trimmed.
metadata_log = Table(
    "metadata_log",
    metadata,
    Column("position", Whole, primary_key=True, autoincrement=False),
    Column("what", Text, nullable=False),
    Column("uri", Text, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("time", Text, nullable=False),
)
_schemas = metadata_log.c.what == "schema"
Index("metadata_log_schemas", metadata_log.c.position, sqlite_where=_schemas, postgresql_where=_schemas)

# One row: the id of this store among providers. It is generated once, so that each store is a different provider.
metadata_identity = Table("metadata_identity", metadata, Column("id", Name, primary_key=True))

# Which rules search which others by name.
rule_uses = Table(
    "rule_uses",
    metadata,
    Column("name", Name, primary_key=True),
    Column("used", Name, primary_key=True),
    Index("rule_uses_of", "used"),
    sqlite_with_rowid=False,
)

LOG_TABLES = (metadata_log, metadata_identity, rule_uses)


def create_identity(connection: Connection) -> None:
    """Migration: generate the id of the store as a provider."""
    connection.execute(insert(metadata_identity), {"id": names.new_id("m", 16)})


def initialize_log(connection: Connection) -> None:
    """Migration: metadata that is older than the log counts as its first, trimmed entry.

    Otherwise a follower of the log from its beginning would believe to have everything.
    """
    known = connection.execute(select(func.count()).select_from(metadata_schema)).scalar_one()
    rows = [
        {"name": LOG_COUNTER, "value": known},
        {"name": APPLIED_COUNTER, "value": known},
        {"name": RULE_CHANGES_COUNTER, "value": 0},
    ]
    connection.execute(insert(counters), rows)


def fill_rule_uses(connection: Connection) -> None:
    """Migration: fill the dependencies of existing rules."""
    texts = dict(
        tuple(row) for row in connection.execute(select(metadata_rules.c.name, metadata_rules.c.text))
    )
    connection.execute(delete(rule_uses))
    uses = {(name, each.extension) for name, text in texts.items() for each in parse_rule(text).searched}
    rows = [{"name": name, "used": used} for name, used in sorted(uses) if used in texts]
    if rows:
        connection.execute(insert(rule_uses), rows)
