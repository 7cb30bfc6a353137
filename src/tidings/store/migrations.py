"""How a store came to have its tables, step by step.

A step makes something so if it is not so yet. A new store begins with all tables as they are today, and runs only
through the steps that write rows. Steps are only ever added, at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Column, Connection, Table, func, insert, inspect, select, text

from tidings.errors import StoreError
from tidings.store import (
    acknowledgements,
    audiences,
    backbone_tables,
    bulk,
    clock_recovery,
    destination_tables,
    feed_tables,
    measures,
    metadata_tables,
    object_sources,
    paused_results,
    repository_tables,
    rule_tables,
    tables,
    tokens,
    traces,
)
from tidings.store.database import Database

# Any number will do, as long as nothing else in the same PostgreSQL database takes a lock with it.
LOCK = 0x7469_6469


Step = Callable[[Connection], None]


@dataclass(frozen=True, slots=True)
class Shaping:
    """A step that changes which tables and columns there are; `made` are the tables it creates."""

    change: Step
    made: tuple[Table, ...] = ()

    def __call__(self, connection: Connection) -> None:
        self.change(connection)


@dataclass(frozen=True, slots=True)
class Migration:
    """What a version is for, and the steps that lead to it."""

    version: int
    name: str
    steps: tuple[Step, ...]


def creates(*made: Table) -> Shaping:
    """A step that creates tables."""
    return Shaping(lambda connection: tables.metadata.create_all(connection, made), made)


def counts(name: str) -> Step:
    """A step that starts a counter at zero, if there is none: like the others it can be repeated."""

    def start(connection: Connection) -> None:
        bulk.insert_missing(connection, tables.counters, [{"name": name, "value": 0}])

    return start


def adds(column: Column[Any], *indexes: str) -> Shaping:
    """A step that adds a column, empty for the rows there are, and indexes of its table."""

    def add(connection: Connection) -> None:
        table = column.table.name
        if column.name not in {found["name"] for found in inspect(connection).get_columns(table)}:
            kind = column.type.compile(connection.dialect)
            connection.execute(text(f"ALTER TABLE {table} ADD COLUMN {column.name} {kind}"))
        for index in tables.metadata.tables[table].indexes:
            if index.name in indexes:
                index.create(connection, checkfirst=True)

    return Shaping(add)


MIGRATIONS = (
    Migration(1, "journal", (creates(tables.counters, tables.journal), counts("journal"))),
    Migration(2, "subscriptions", (creates(tables.subscriptions), counts("subscriptions"))),
    Migration(3, "notifications", (creates(tables.subscribers, tables.notifications, tables.batches),)),
    Migration(4, "dead letters", (creates(tables.dead_letters), counts("dead_letters"))),
    Migration(5, "event schema", (creates(tables.schema_rows), counts("schema"))),
    Migration(
        6,
        "delays",
        (
            adds(tables.subscriptions.c.within, "subscriptions_delayed"),
            creates(tables.held, tables.promises),
            counts("held"),
        ),
    ),
    Migration(7, "reference tables", (creates(tables.reference_tables), counts("references"))),
    Migration(8, "taxonomies", (creates(tables.taxonomies), counts("taxonomies"))),
    Migration(9, "polled feeds", (creates(tables.polled_feeds, tables.polled_items), counts("feeds"))),
    Migration(
        10,
        "personal feeds",
        (
            creates(feed_tables.feed_addresses, feed_tables.feed_cursors, feed_tables.feed_entries),
            creates(feed_tables.hub_intents, feed_tables.hub_subscriptions, feed_tables.hub_deliveries),
        ),
    ),
    Migration(11, "hours to skip", (adds(tables.polled_feeds.c.skips),)),
    Migration(12, "logins of feeds", (adds(tables.polled_feeds.c.login),)),
    Migration(13, "metadata", (creates(*rule_tables.ALL), counts("atomic_rules"), counts("metadata_schema"))),
    Migration(
        14,
        "log of metadata",
        (
            creates(*metadata_tables.ALL),
            adds(rule_tables.metadata_rules.c.scope),
            adds(rule_tables.metadata_rules.c.within, "metadata_rules_delayed"),
            metadata_tables.name_itself,
            metadata_tables.begin_log,
            metadata_tables.note_uses,
        ),
    ),
    Migration(15, "backbone", (creates(backbone_tables.metadata_backbone),)),
    Migration(16, "repositories", (creates(*repository_tables.ALL), counts("repository"))),
    Migration(
        17,
        "joins by several comparisons",
        (adds(rule_tables.rule_groups.c.further), creates(rule_tables.rule_group_also)),
    ),
    Migration(18, "sources of objects", (creates(object_sources.object_sources),)),
    Migration(19, "tokens", (creates(tokens.tokens), counts("tokens"))),
    Migration(20, "audiences", (creates(audiences.labels, audiences.grants), counts("audiences"))),
    Migration(21, "paused subscriptions", (creates(tables.paused),)),
    Migration(22, "acknowledgements", (creates(acknowledgements.acknowledgements),)),
    Migration(23, "destinations", (creates(*destination_tables.ALL), counts("undelivered"))),
    Migration(24, "operating", (creates(measures.measures, traces.traces), counts("matched"))),
    Migration(
        25, "digests", (creates(destination_tables.delivery_gathered), destination_tables.gather_delayed)
    ),
    Migration(26, "results of paused rules", (creates(*paused_results.ALL),)),
    Migration(
        27,
        "budgets",
        (
            creates(tables.overruns),
            adds(tables.dead_letters.c.subscription),
            adds(tables.paused.c.reason),
        ),
    ),
    Migration(28, "what feeds leave out", (adds(tables.polled_feeds.c.left_out),)),
    Migration(29, "since when rows wait", tuple(adds(table.c.since) for table in clock_recovery.WAITING)),
)

NEWEST = MIGRATIONS[-1].version


def migrate(database: Database, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """Bring the store to the newest version, in one transaction; a store of a newer version is refused."""
    newest = migrations[-1].version
    with database.read() as connection:
        if _version(connection, database, newest) == newest:
            return newest

    def climb(connection: Connection) -> int:
        _alone(connection, database)
        current = _version(connection, database, newest)
        missing = [migration for migration in migrations if migration.version > current]
        if current == 0:
            _begin(connection, missing)
        for migration in missing:
            for step in migration.steps:
                if current or not isinstance(step, Shaping):
                    step(connection)
            _record(connection, migration)
        return newest

    return database.transact(climb)


def found_version(database: Database) -> int:
    """The version that a store is of, whichever that is; 0 if it has no tables yet."""
    with database.read() as connection:
        return _found(connection)


def check_version(database: Database) -> None:
    """Refuse a store that is not of the newest version: one that nobody has brought there, or a newer one."""
    found = found_version(database)
    if found != NEWEST:
        raise StoreError(
            f"the store is of version {found}, this Tidings works with version {NEWEST}",
            where=database.name,
            hint="bring it there: tidings store migrate",
        )


def _begin(connection: Connection, migrations: Sequence[Migration]) -> None:
    """The tables of a new store, none of which has to be looked for: that takes longer than to create them."""
    shaping = [step for migration in migrations for step in migration.steps if isinstance(step, Shaping)]
    made = dict.fromkeys(table for step in shaping for table in step.made)
    tables.metadata.create_all(connection, list(made), checkfirst=False)


def _version(connection: Connection, database: Database, newest: int) -> int:
    found = _found(connection)
    if found > newest:
        raise StoreError(
            f"the store is of version {found}, this Tidings knows versions up to {newest}",
            where=database.name,
            hint="use the newer Tidings that wrote it, or another store (--home, --store)",
        )
    return found


def _found(connection: Connection) -> int:
    if not inspect(connection).has_table(tables.migrations.name):
        return 0
    return int(connection.execute(select(func.max(tables.migrations.c.version))).scalar() or 0)


def _alone(connection: Connection, database: Database) -> None:
    """Keep other processes from migrating at the same time; on SQLite the transaction itself does."""
    if not database.is_sqlite:
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
    tables.migrations.create(connection, checkfirst=True)


def _record(connection: Connection, migration: Migration) -> None:
    row = {"version": migration.version, "name": migration.name, "applied": datetime.now(UTC).isoformat()}
    connection.execute(insert(tables.migrations), row)
