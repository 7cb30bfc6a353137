"""Migrations of the store.

Each step checks whether its change is needed. A new store starts with the current tables, and runs only the steps that
write rows. New migrations are appended; existing ones never change, except that they follow the names of tables and
columns: renames are the first steps that run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Column, Connection, Table, func, insert, inspect, select, text

from tidings.delivery.sql import tables as delivery_tables
from tidings.errors import StoreError
from tidings.feeds.sql import hub_store
from tidings.feeds.sql import tables as feed_tables
from tidings.metadata.sql import log_rows
from tidings.metadata.sql import tables as metadata_tables
from tidings.objects.sql import object_store
from tidings.store import (
    audiences,
    bulk,
    clock_recovery,
    schema_renames,
    telemetry,
    tokens,
)
from tidings.store import tables as store_tables
from tidings.store.database import Database, open_database
from tidings.store.notifications import acknowledgements

# Number of the advisory lock in PostgreSQL; any number that no other application in the database uses.
LOCK = 0x7469_6469


Step = Callable[[Connection], None]


@dataclass(frozen=True, slots=True)
class SchemaStep:
    """A step that changes tables or columns; `made` are the tables that it creates."""

    change: Step
    made: tuple[Table, ...] = ()

    def __call__(self, connection: Connection) -> None:
        self.change(connection)


@dataclass(frozen=True, slots=True)
class Migration:
    """A version with its name and its steps."""

    version: int
    name: str
    steps: tuple[Step, ...]


class Renames(SchemaStep):
    """A step that renames tables, columns, indexes or counters. It runs before the steps of all other migrations."""


def create_tables(*made: Table) -> SchemaStep:
    """Return a step that creates tables."""
    return SchemaStep(
        lambda connection: store_tables.metadata.create_all(connection, _belonging(connection, made)), made
    )


def _belonging(connection: Connection, made: Iterable[Table]) -> list[Table]:
    """Return the tables that this kind of database has."""
    name = connection.dialect.name
    return [table for table in made if table.info.get(store_tables.DIALECT, name) == name]


def start_counter(name: str) -> Step:
    """Return a step that starts a counter at zero, unless it exists."""

    def start(connection: Connection) -> None:
        bulk.insert_missing(connection, store_tables.counters, [{"name": name, "value": 0}])

    return start


def add_column(column: Column[Any], *indexes: str) -> SchemaStep:
    """Return a step that adds a column, empty in existing rows, and indexes of its table."""

    def add(connection: Connection) -> None:
        table = column.table.name
        if column.name not in {found["name"] for found in inspect(connection).get_columns(table)}:
            kind = column.type.compile(connection.dialect)
            connection.execute(text(f"ALTER TABLE {table} ADD COLUMN {column.name} {kind}"))
        for index in store_tables.metadata.tables[table].indexes:
            if index.name in indexes:
                index.create(connection, checkfirst=True)

    return SchemaStep(add)


MIGRATIONS = (
    Migration(
        1, "journal", (create_tables(store_tables.counters, store_tables.journal), start_counter("journal"))
    ),
    Migration(
        2, "subscriptions", (create_tables(store_tables.subscriptions), start_counter("subscriptions"))
    ),
    Migration(
        3,
        "notifications",
        (create_tables(store_tables.subscribers, store_tables.notifications, store_tables.batches),),
    ),
    Migration(4, "dead letters", (create_tables(store_tables.dead_letters), start_counter("dead_letters"))),
    Migration(5, "event schema", (create_tables(store_tables.event_schema), start_counter("schema"))),
    Migration(
        6,
        "delays",
        (
            add_column(store_tables.subscriptions.c.within, "subscriptions_delayed"),
            create_tables(store_tables.deferred_notifications, store_tables.deferral_deadlines),
            start_counter("deferred_notifications"),
        ),
    ),
    Migration(
        7, "reference tables", (create_tables(store_tables.reference_tables), start_counter("references"))
    ),
    Migration(8, "taxonomies", (create_tables(store_tables.taxonomies), start_counter("taxonomies"))),
    Migration(
        9,
        "polled feeds",
        (create_tables(feed_tables.polled_feeds, feed_tables.polled_items), start_counter("feeds")),
    ),
    Migration(
        10,
        "personal feeds",
        (
            create_tables(
                feed_tables.feed_addresses,
                store_tables.numbering_cursors,
                store_tables.numbered_notifications,
            ),
            create_tables(feed_tables.hub_intents, feed_tables.hub_subscriptions),
        ),
    ),
    Migration(11, "hours to skip", (add_column(feed_tables.polled_feeds.c.skips),)),
    Migration(12, "logins of feeds", (add_column(feed_tables.polled_feeds.c.login),)),
    Migration(
        13,
        "metadata",
        (
            create_tables(*metadata_tables.RULE_TABLES),
            start_counter("atomic_rules"),
            start_counter("metadata_schema"),
        ),
    ),
    Migration(
        14,
        "log of metadata",
        (
            create_tables(*metadata_tables.LOG_TABLES),
            add_column(metadata_tables.metadata_rules.c.scope),
            add_column(metadata_tables.metadata_rules.c.within, "metadata_rules_delayed"),
            log_rows.create_identity,
            log_rows.initialize_log,
            log_rows.fill_rule_uses,
        ),
    ),
    Migration(15, "backbone", (create_tables(metadata_tables.followed_log),)),
    Migration(
        16, "repositories", (create_tables(*metadata_tables.REPOSITORY_TABLES), start_counter("repository"))
    ),
    Migration(
        17,
        "joins by several comparisons",
        (
            add_column(metadata_tables.rule_groups.c.further_predicates),
            create_tables(metadata_tables.rule_group_predicates),
        ),
    ),
    Migration(18, "sources of objects", (create_tables(object_store.object_sources),)),
    Migration(19, "tokens", (create_tables(tokens.tokens), start_counter("tokens"))),
    Migration(
        20, "audiences", (create_tables(audiences.labels, audiences.grants), start_counter("audiences"))
    ),
    Migration(21, "paused subscriptions", (create_tables(store_tables.paused),)),
    Migration(22, "acknowledgements", (create_tables(acknowledgements.acknowledgements),)),
    Migration(23, "destinations", (create_tables(*delivery_tables.ALL), start_counter("dead_deliveries"))),
    Migration(
        24,
        "operating",
        (create_tables(telemetry.time_series, telemetry.traces), start_counter("match_position")),
    ),
    Migration(
        25, "digests", (create_tables(delivery_tables.pending_digests), delivery_tables.gather_delayed)
    ),
    Migration(26, "results of paused rules", (create_tables(*metadata_tables.PAUSED_TABLES),)),
    Migration(
        27,
        "budgets",
        (
            create_tables(store_tables.overruns),
            add_column(store_tables.dead_letters.c.subscription),
            add_column(store_tables.paused.c.reason),
        ),
    ),
    Migration(28, "what feeds leave out", (add_column(feed_tables.polled_feeds.c.left_out),)),
    Migration(
        29, "since when rows wait", tuple(add_column(table.c.since) for table in clock_recovery.WAITING)
    ),
    Migration(30, "hub deliveries", (SchemaStep(hub_store.deliver_by_destinations),)),
    Migration(31, "plain names", (Renames(schema_renames.rename_all),)),
    Migration(
        32,
        "positions of notifications",
        (create_tables(store_tables.notification_ranges), start_counter("notification_log")),
    ),
    Migration(
        33,
        "staging tables",
        (
            create_tables(
                store_tables.staged_attempts, store_tables.staged_matches, store_tables.staged_dead_letters
            ),
        ),
    ),
)

NEWEST = MIGRATIONS[-1].version


def migrate(database: Database, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """Migrate the store to the newest version in one transaction; raise if it has a newer one."""
    newest = migrations[-1].version
    with database.read() as connection:
        if _version(connection, database, newest) == newest:
            return newest

    def climb(connection: Connection) -> int:
        _lock_migrations(connection, database)
        current = _version(connection, database, newest)
        missing = [migration for migration in migrations if migration.version > current]
        if current == 0:
            _begin(connection, missing)
        steps = [step for migration in missing for step in migration.steps]
        for step in sorted(steps, key=lambda step: not isinstance(step, Renames)):
            if current or not isinstance(step, SchemaStep):
                step(connection)
        for migration in missing:
            _record(connection, migration)
        return newest

    return database.transact(climb)


def read_version(database: Database) -> int:
    """Return the version of a store; 0 if it has no tables yet."""
    with database.read() as connection:
        return _stored_version(connection)


def check_version(database: Database) -> None:
    """Raise if the store does not have the newest version."""
    version = read_version(database)
    if version != NEWEST:
        raise StoreError(
            f"the store has version {version}, this Tidings needs version {NEWEST}",
            where=database.name,
            hint="migrate it: tidings store migrate",
        )


def _begin(connection: Connection, migrations: Sequence[Migration]) -> None:
    """Create the tables of a new store without checking for each, which would take longer than creating it."""
    shaping = [step for migration in migrations for step in migration.steps if isinstance(step, SchemaStep)]
    made = dict.fromkeys(table for step in shaping for table in step.made)
    store_tables.metadata.create_all(connection, _belonging(connection, made), checkfirst=False)


def _version(connection: Connection, database: Database, newest: int) -> int:
    version = _stored_version(connection)
    if version > newest:
        raise StoreError(
            f"the store has version {version}, this Tidings supports versions up to {newest}",
            where=database.name,
            hint="use the newer Tidings that wrote it, or another store (--home, --store)",
        )
    return version


def _stored_version(connection: Connection) -> int:
    if not inspect(connection).has_table(store_tables.migrations.name):
        return 0
    return int(connection.execute(select(func.max(store_tables.migrations.c.version))).scalar() or 0)


def _lock_migrations(connection: Connection, database: Database) -> None:
    """Exclude concurrent migrations; on SQLite the transaction does."""
    if not database.is_sqlite:
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
    store_tables.migrations.create(connection, checkfirst=True)


def _record(connection: Connection, migration: Migration) -> None:
    row = {"version": migration.version, "name": migration.name, "applied": datetime.now(UTC).isoformat()}
    connection.execute(insert(store_tables.migrations), row)


@dataclass(frozen=True, slots=True)
class StoreVersion:
    """URL of a store without its password, its version (0 without tables), and the version that this code needs."""

    name: str
    store: int
    works_with: int = NEWEST


def inspect_store_version(url: str) -> StoreVersion:
    database = open_database(url)
    try:
        return StoreVersion(database.name, read_version(database))
    finally:
        database.close()
