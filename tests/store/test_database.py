"""Store addresses, migrations of older versions, and errors when a store cannot be used."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert, inspect, make_url, select, text

from tests.support.servers.postgres import Server
from tests.support.stores.server_documents import DOC, HOST, LARGE, RDF_XML, SCHEMA, body
from tidings.errors import InputError, StoreError
from tidings.metadata.provider.provider import Provider
from tidings.metadata.sql import tables as sql_tables
from tidings.model import Publication, Subscription
from tidings.store import migrations
from tidings.store import tables as store_tables
from tidings.store.database import WRITE_CONNECTIONS, open_database, sqlite_url
from tidings.store.encoding import MatchRow
from tidings.store.migrations import MIGRATIONS, Migration, migrate
from tidings.store.notifications.batch_commit import CommitResult
from tidings.store.store import Store, open_store

pytestmark = pytest.mark.usefixtures("migrated_stores")


def test_open_store_second_open_keeps_migrations_and_data(store: Store, url: str) -> None:
    store.database.transact(lambda c: c.execute(insert(store_tables.counters), {"name": "mine", "value": 7}))
    with open_store(url) as again, again.database.read() as connection:
        names = [
            row.name for row in connection.execute(select(store_tables.migrations.c.name).order_by("version"))
        ]
    assert names == [migration.name for migration in MIGRATIONS]


def test_open_store_older_version_is_migrated(url: str) -> None:
    database = open_database(url)
    assert migrate(database, MIGRATIONS[:2]) == 2
    assert migrate(database) == MIGRATIONS[-1].version
    with open_store(url) as store:
        assert (store.journal.head(), store.notifications.count(), store.schemas.version()) == (0, 0, 0)
    database.close()


def test_migration_store_without_delays_notifies_immediately(url: str) -> None:
    """The store is as version 5 left it.

    The first migration creates the table with its present columns, so the later ones are dropped.
    """
    database = open_database(url)
    migrate(database, MIGRATIONS[:5])

    def restore_old_form(connection: Connection) -> None:
        connection.execute(text("DROP INDEX subscriptions_delayed"))
        connection.execute(text("ALTER TABLE subscriptions DROP COLUMN within"))
        columns, row = "added, id, subscriber, language, text", "1, 's', 'ana', 'predicates', 'a = 1'"
        connection.execute(text(f"INSERT INTO subscriptions ({columns}) VALUES ({row})"))
        connection.execute(text("UPDATE counters SET value = 1 WHERE name = 'subscriptions'"))

    database.transact(restore_old_form)
    assert "within" not in {
        column["name"] for column in inspect(database.engine).get_columns("subscriptions")
    }
    database.close()
    with open_store(url) as store:
        old, delayed = (
            Subscription("s", "ana", "predicates", "a = 1"),
            Subscription("c", "ana", "predicates", "a = 1", 60),
        )
        store.subscriptions.add(delayed)
        assert store.subscriptions.list() == [old, delayed]
        matches = [MatchRow("p", "s", "ana"), MatchRow("p", "c", "ana")]
        assert store.notifications.commit_batch("main", 0, matches) == CommitResult(1, 0, deferred=1)
        indexes = {index["name"] for index in inspect(store.database.engine).get_indexes("subscriptions")}
        assert "subscriptions_delayed" in indexes


def test_open_store_newer_version_is_rejected(store: Store, url: str) -> None:
    newer = MIGRATIONS[-1].version + 1
    migrate(store.database, (*MIGRATIONS, Migration(newer, "of next year", ())))
    with pytest.raises(StoreError, match=f"the store has version {newer}, .* use the newer Tidings") as error:
        open_store(url)
    password = make_url(url).password
    assert password is None or password not in str(error.value)


def test_migration_feeds_without_skips_and_login_have_none(url: str) -> None:
    database = open_database(url)
    migrate(database, MIGRATIONS[:10])
    for column in ("skips", "login"):
        dropped = text(f"ALTER TABLE polled_feeds DROP COLUMN {column}")
        database.transact(lambda each, dropped=dropped: each.execute(dropped))
    columns, row = (
        "number, url, added, in_private_network, failures",
        "1, 'http://example.org/', '2026', 0, 0",
    )
    database.transact(lambda each: each.execute(text(f"INSERT INTO polled_feeds ({columns}) VALUES ({row})")))
    database.close()
    with open_store(url) as store:
        [feed] = store.polled_feeds.load()
        assert (feed.url, feed.skips, feed.login) == ("http://example.org/", None, None)


def test_migration_metadata_without_log_starts_log_after_its_contents(url: str) -> None:
    """Contents older than the log count as its first entry.

    It cannot be read, so followers take a snapshot.
    """
    database = open_database(url)
    migrate(database, MIGRATIONS[:13])

    def restore_old_form(connection: Connection) -> None:
        connection.execute(text("DROP INDEX metadata_rules_delayed"))
        for column in ("scope", "within"):
            connection.execute(text(f"ALTER TABLE metadata_rules DROP COLUMN {column}"))
        schema = {"media_type": "text/turtle", "body": SCHEMA.body, "version": 1}
        connection.execute(insert(sql_tables.metadata_schema), schema)
        rows = (("all", "search CycleProvider c register c"), ("some", "search all a register a"))
        for name, rule in rows:
            statement = text("INSERT INTO metadata_rules (name, owner, text) VALUES (:name, 'ana', :text)")
            connection.execute(statement, {"name": name, "text": rule})

    database.transact(restore_old_form)
    database.close()
    with open_store(url) as store:
        provider = Provider(store)
        assert (provider.position, provider.log.head(), provider.log.first()) == (1, 1, 2)
        assert [(each.name, each.scope, each.within) for each in provider.rules()] == [
            ("all", "", None),
            ("some", "", None),
        ]
        with pytest.raises(InputError, match="searched by another"):
            provider.remove_rules(["all"])


def test_migration_rules_with_single_comparisons_keep_groups_and_keys(url: str) -> None:
    """Their groups and keys are unchanged: the same rule added again gets the same atomic rules."""
    search = "search CycleProvider c register c where"
    with open_store(url) as store:
        provider = Provider(store)
        provider.load_schema(SCHEMA.body, SCHEMA.media_type)
        provider.register(DOC, body("host.rdf"), RDF_XML)
        provider.add_rules({"large": LARGE}, "ana")

        def restore_old_form(connection: Connection) -> None:
            connection.execute(text("DROP TABLE rule_group_predicates"))
            connection.execute(text("ALTER TABLE rule_groups DROP COLUMN further_predicates"))
            connection.execute(text("DELETE FROM tidings_migrations WHERE version > 16"))

        store.database.transact(restore_old_form)
    with open_store(url) as store:
        provider = Provider(store)
        before = store.rule_graph.load_all().atomic
        provider.add_rules({"again": LARGE}, "ana")
        assert store.rule_graph.load_all().atomic == before
        assert provider.add_rules({"port": f"{search} c.serverInformation.cpu < c.serverPort"}, "ana") == {
            ("port", HOST)
        }
        outcome = provider.register(DOC, body("host-with-32MB.rdf"), RDF_XML).outcome
        assert outcome.left == {("large", HOST), ("again", HOST)}


def test_migrate_failing_step_is_rolled_back(store: Store, url: str) -> None:
    def breaks(connection: Connection) -> None:
        connection.execute(text("CREATE TABLE half_done (x INTEGER)"))
        raise RuntimeError("no")

    newer = (*MIGRATIONS, Migration(MIGRATIONS[-1].version + 1, "breaks", (breaks,)))
    with pytest.raises(RuntimeError):
        migrate(store.database, newer)
    with open_store(url) as again, again.database.read() as connection:
        assert not migrations.inspect(connection).has_table("half_done")


def test_transact_exception_rolls_back(store: Store) -> None:
    def work(connection: Connection) -> None:
        connection.execute(insert(store_tables.counters), {"name": "half", "value": 1})
        raise ValueError("no")

    with pytest.raises(ValueError):
        store.database.transact(work)
    with store.database.read() as connection:
        assert (
            connection.execute(
                select(store_tables.counters).where(store_tables.counters.c.name == "half")
            ).all()
            == []
        )


def test_transact_lost_race_is_retried(store: Store) -> None:
    """On PostgreSQL two transactions may insert the same key; on SQLite they cannot overlap."""
    tries = 0

    def work(connection: Connection) -> None:
        nonlocal tries
        tries += 1
        rows = connection.execute(
            select(store_tables.counters).where(store_tables.counters.c.name == "raced")
        ).all()
        if tries == 1 and not store.database.is_sqlite:
            store.database.transact(work)
        if not rows:
            connection.execute(insert(store_tables.counters), {"name": "raced", "value": tries})

    store.database.transact(work)
    assert tries == (1 if store.database.is_sqlite else 3)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nonsense", "invalid store address"),
        ("ana:secret@nowhere", "invalid store address"),
        ("mysql://ana:secret@host/db", "unsupported store address"),
        ("sqlite://", "unsupported store address"),
        ("sqlite:///:memory:", "unsupported store address"),
        ("postgresql://ana:secret@127.0.0.1:1/db", "is the server running"),
        ("postgresql://ana:secret@no-such-host.invalid/db", "is the host's name right"),
    ],
)
def test_open_store_invalid_address_is_rejected_without_password(url: str, message: str) -> None:
    with pytest.raises(StoreError, match=message) as error:
        open_store(url)
    assert "secret" not in str(error.value)
    assert "secret" not in str(error.value.facts())


def test_open_store_wrong_password_or_database_gets_hint(postgres_server: Server) -> None:
    with pytest.raises(StoreError, match="are user and password right"):
        open_store(postgres_server.url().replace(postgres_server.password, "wrong"))
    with pytest.raises(StoreError, match="create the database first") as error:
        open_store(postgres_server.url("no_such_database"))
    assert postgres_server.password not in str(error.value)


def test_open_store_missing_driver_names_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreError, match=r"pip install 'tidings\[postgresql\]'"):
        open_store("postgresql://ana:secret@127.0.0.1:1/db")


@pytest.mark.parametrize("name", ["a b", "%20", "100%", "%41%", "#1", "hö", "a@b:c", "[a]", "a+b&c=d;e"])
def test_sqlite_url_special_characters_keep_path(tmp_path: Path, name: str) -> None:
    """Some characters have a meaning in an address; in a path they have none."""
    path = tmp_path / name / "store.db"
    path.parent.mkdir()
    with open_store(sqlite_url(path)) as store:
        store.journal.append([Publication("p-1", "application/json", b"{}")])
    assert path.exists() and [each.name for each in tmp_path.iterdir()] == [name]
    with open_store(sqlite_url(path)) as again:
        assert again.journal.head() == 1


def test_open_store_unusable_file_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="does the folder exist"):
        open_store(sqlite_url(tmp_path / "missing" / "store.db"))
    (tmp_path / "letter.txt").write_text("dear store, " * 100)
    with pytest.raises(StoreError, match="the file is something else"):
        open_store(sqlite_url(tmp_path / "letter.txt"))
    with pytest.raises(StoreError, match="question mark"):
        sqlite_url(tmp_path / "what?" / "store.db")


def test_waiting_writers_leave_connections_to_readers(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when another process has the lock that all writers want."""
    monkeypatch.setattr("tidings.store.database.BUSY_SECONDS", 0.01)
    with ExitStack() as waiting:
        for _ in range(1 if store.database.is_sqlite else WRITE_CONNECTIONS):
            waiting.enter_context(store.database._turn())
        assert store.journal.head() == 0
        with pytest.raises(StoreError, match="too many concurrent writers"):
            store.journal.append([])
    assert store.journal.append([]) == []


def test_read_all_connections_in_use_is_rejected(url: str) -> None:
    database = open_database(url)
    database.engine.pool._timeout = 0.01  # type: ignore[attr-defined]
    with ExitStack() as stack, pytest.raises(StoreError, match="all connections are in use"):
        for _ in range(100):
            stack.enter_context(database.read())
    database.close()


def test_sqlite_settings_are_durable_and_allow_concurrent_reads(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "a store.db")
    with open_store(url) as store, store.database.read() as connection:
        settings = {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in SETTINGS}
        assert settings == SETTINGS
        writer = sqlite3.connect(tmp_path / "a store.db", isolation_level=None)
        writer.execute("BEGIN IMMEDIATE")
        assert store.journal.head() == 0
        writer.execute("ROLLBACK")
        writer.close()


SETTINGS = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 60_000}


def test_check_during_write_attempt_raises_last_error(store: Store) -> None:
    """Repeated, as probes do: the traceback of the error does not grow with each call."""
    store.database.refused = StoreError("the disk is full")
    depths = set[int]()
    with store._trying:
        for _ in range(3):
            with pytest.raises(StoreError, match="the disk is full") as error:
                store.check()
            depths.add(len(error.traceback))
    assert len(depths) == 1
    store.check()
    assert store.database.refused is None


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**30, "\ud800", "a\x00b"])
def test_statement_value_outside_column_range_is_input_error(store: Store, value: int | str) -> None:
    """It is no failure of the store: a `StoreError` would make callers retry."""
    if value == "a\x00b" and store.database.is_sqlite:
        pytest.skip("SQLite accepts it: parameters are checked before")
    column_type = "BIGINT" if isinstance(value, int) else "TEXT"
    statement = text(f"SELECT CAST(:given AS {column_type})")
    with pytest.raises(InputError, match="a value that the store cannot hold"):
        store.database.transact(lambda connection: connection.execute(statement, {"given": value}))
    assert store.database.refused is None
    with store.database.read() as connection, pytest.raises(InputError):
        connection.execute(statement, {"given": value})
