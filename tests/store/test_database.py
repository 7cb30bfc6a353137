"""Addresses, versions, and what is said when a store cannot be used."""

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
from tidings.store.notifications import CommitResult
from tidings.store.store import Store, open_store

pytestmark = pytest.mark.usefixtures("stores_made_anew")


def test_a_store_keeps_what_it_has_when_it_is_opened_again(store: Store, url: str) -> None:
    store.database.transact(lambda c: c.execute(insert(store_tables.counters), {"name": "mine", "value": 7}))
    with open_store(url) as again, again.database.read() as connection:
        names = [
            row.name for row in connection.execute(select(store_tables.migrations.c.name).order_by("version"))
        ]
    assert names == [migration.name for migration in MIGRATIONS]


def test_a_store_of_an_older_version_is_brought_up_to_date(url: str) -> None:
    database = open_database(url)
    assert migrate(database, MIGRATIONS[:2]) == 2
    assert migrate(database) == MIGRATIONS[-1].version
    with open_store(url) as store:
        assert (store.journal.head(), store.notifications.count(), store.schemas.version()) == (0, 0, 0)
    database.close()


def test_subscriptions_of_a_store_without_delays_are_told_at_once(url: str) -> None:
    """As version 5 left it: today's first step makes the table with today's columns, so they are taken away."""
    database = open_database(url)
    migrate(database, MIGRATIONS[:5])

    def as_it_was(connection: Connection) -> None:
        connection.execute(text("DROP INDEX subscriptions_delayed"))
        connection.execute(text("ALTER TABLE subscriptions DROP COLUMN within"))
        columns, row = "added, id, subscriber, language, text", "1, 's', 'ana', 'predicates', 'a = 1'"
        connection.execute(text(f"INSERT INTO subscriptions ({columns}) VALUES ({row})"))
        connection.execute(text("UPDATE counters SET value = 1 WHERE name = 'subscriptions'"))

    database.transact(as_it_was)
    assert "within" not in {
        column["name"] for column in inspect(database.engine).get_columns("subscriptions")
    }
    database.close()
    with open_store(url) as store:
        old, calm = (
            Subscription("s", "ana", "predicates", "a = 1"),
            Subscription("c", "ana", "predicates", "a = 1", 60),
        )
        store.subscriptions.add(calm)
        assert store.subscriptions.list() == [old, calm]
        matches = [MatchRow("p", "s", "ana"), MatchRow("p", "c", "ana")]
        assert store.notifications.commit_batch("main", 0, matches) == CommitResult(1, 0, held=1)
        indexes = {index["name"] for index in inspect(store.database.engine).get_indexes("subscriptions")}
        assert "subscriptions_delayed" in indexes


def test_a_store_of_a_newer_version_is_refused(store: Store, url: str) -> None:
    newer = MIGRATIONS[-1].version + 1
    migrate(store.database, (*MIGRATIONS, Migration(newer, "of next year", ())))
    with pytest.raises(
        StoreError, match=f"the store has version {newer}, .* use the newer Tidings"
    ) as refused:
        open_store(url)
    password = make_url(url).password
    assert password is None or password not in str(refused.value)


def test_feeds_of_a_store_without_hours_to_skip_and_logins(url: str) -> None:
    database = open_database(url)
    migrate(database, MIGRATIONS[:10])
    for column in ("skips", "login"):
        dropped = text(f"ALTER TABLE polled_feeds DROP COLUMN {column}")
        database.transact(lambda each, dropped=dropped: each.execute(dropped))
    columns, row = "number, url, added, inside, failures", "1, 'http://example.org/', '2026', 0, 0"
    database.transact(lambda each: each.execute(text(f"INSERT INTO polled_feeds ({columns}) VALUES ({row})")))
    database.close()
    with open_store(url) as store:
        [feed] = store.polled_feeds.load()
        assert (feed.url, feed.skips, feed.login) == ("http://example.org/", None, None)


def test_metadata_of_a_store_without_a_log(url: str) -> None:
    """What is older than the log counts as its first entry, which nobody can read: who follows takes a snapshot."""
    database = open_database(url)
    migrate(database, MIGRATIONS[:13])

    def as_it_was(connection: Connection) -> None:
        connection.execute(text("DROP INDEX metadata_rules_delayed"))
        for column in ("scope", "within"):
            connection.execute(text(f"ALTER TABLE metadata_rules DROP COLUMN {column}"))
        schema = {"media_type": "text/turtle", "body": SCHEMA.body, "version": 1}
        connection.execute(insert(sql_tables.metadata_schema), schema)
        rows = (("all", "search CycleProvider c register c"), ("some", "search all a register a"))
        for name, rule in rows:
            statement = text("INSERT INTO metadata_rules (name, owner, text) VALUES (:name, 'ana', :text)")
            connection.execute(statement, {"name": name, "text": rule})

    database.transact(as_it_was)
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


def test_rules_of_a_store_whose_joins_had_one_comparison(url: str) -> None:
    """Their groups and keys are as they were: who asks the same again gets the same atomic rules."""
    search = "search CycleProvider c register c where"
    with open_store(url) as store:
        provider = Provider(store)
        provider.load_schema(SCHEMA.body, SCHEMA.media_type)
        provider.register(DOC, body("host.rdf"), RDF_XML)
        provider.add_rules({"large": LARGE}, "ana")

        def as_it_was(connection: Connection) -> None:
            connection.execute(text("DROP TABLE rule_group_also"))
            connection.execute(text("ALTER TABLE rule_groups DROP COLUMN further"))
            connection.execute(text("DELETE FROM tidings_migrations WHERE version > 16"))

        store.database.transact(as_it_was)
    with open_store(url) as store:
        provider = Provider(store)
        before = store.rule_graph.every().atomic
        provider.add_rules({"again": LARGE}, "ana")
        assert store.rule_graph.every().atomic == before
        assert provider.add_rules({"port": f"{search} c.serverInformation.cpu < c.serverPort"}, "ana") == {
            ("port", HOST)
        }
        outcome = provider.register(DOC, body("host-with-32MB.rdf"), RDF_XML).outcome
        assert outcome.left == {("large", HOST), ("again", HOST)}


def test_a_migration_that_fails_leaves_nothing(store: Store, url: str) -> None:
    def breaks(connection: Connection) -> None:
        connection.execute(text("CREATE TABLE half_done (x INTEGER)"))
        raise RuntimeError("no")

    newer = (*MIGRATIONS, Migration(MIGRATIONS[-1].version + 1, "breaks", (breaks,)))
    with pytest.raises(RuntimeError):
        migrate(store.database, newer)
    with open_store(url) as again, again.database.read() as connection:
        assert not migrations.inspect(connection).has_table("half_done")


def test_what_raises_inside_a_transaction_undoes_it(store: Store) -> None:
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


def test_a_lost_race_is_run_again(store: Store) -> None:
    """On PostgreSQL two transactions may insert the same key; on SQLite they cannot meet."""
    tries = 0

    def work(connection: Connection) -> None:
        nonlocal tries
        tries += 1
        found = connection.execute(
            select(store_tables.counters).where(store_tables.counters.c.name == "raced")
        ).all()
        if tries == 1 and not store.database.is_sqlite:
            store.database.transact(work)
        if not found:
            connection.execute(insert(store_tables.counters), {"name": "raced", "value": tries})

    store.database.transact(work)
    assert tries == (1 if store.database.is_sqlite else 3)


@pytest.mark.parametrize(
    ("url", "said"),
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
def test_a_wrong_address_is_refused_without_its_password(url: str, said: str) -> None:
    with pytest.raises(StoreError, match=said) as refused:
        open_store(url)
    assert "secret" not in str(refused.value)
    assert "secret" not in str(refused.value.facts())


def test_a_wrong_password_or_database_is_said(postgres_server: Server) -> None:
    with pytest.raises(StoreError, match="are user and password right"):
        open_store(postgres_server.url().replace(postgres_server.password, "wrong"))
    with pytest.raises(StoreError, match="create the database first") as refused:
        open_store(postgres_server.url("no_such_database"))
    assert postgres_server.password not in str(refused.value)


def test_without_the_driver_the_hint_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreError, match=r"pip install 'tidings\[postgresql\]'"):
        open_store("postgresql://ana:secret@127.0.0.1:1/db")


@pytest.mark.parametrize("name", ["a b", "%20", "100%", "%41%", "#1", "hö", "a@b:c", "[a]", "a+b&c=d;e"])
def test_a_store_is_where_its_path_says(tmp_path: Path, name: str) -> None:
    """An address has characters that mean others, and a path has none."""
    path = tmp_path / name / "store.db"
    path.parent.mkdir()
    with open_store(sqlite_url(path)) as store:
        store.journal.append([Publication("p-1", "application/json", b"{}")])
    assert path.exists() and [each.name for each in tmp_path.iterdir()] == [name]
    with open_store(sqlite_url(path)) as again:
        assert again.journal.head() == 1


def test_a_file_that_cannot_be_a_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="does the folder exist"):
        open_store(sqlite_url(tmp_path / "missing" / "store.db"))
    (tmp_path / "letter.txt").write_text("dear store, " * 100)
    with pytest.raises(StoreError, match="the file is something else"):
        open_store(sqlite_url(tmp_path / "letter.txt"))
    with pytest.raises(StoreError, match="question mark"):
        sqlite_url(tmp_path / "what?" / "store.db")


def test_whoever_waits_to_write_leaves_connections_to_readers(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when another process has the lock that all of them want."""
    monkeypatch.setattr("tidings.store.database.BUSY_SECONDS", 0.01)
    with ExitStack() as waiting:
        for _ in range(1 if store.database.is_sqlite else WRITE_CONNECTIONS):
            waiting.enter_context(store.database._turn())
        assert store.journal.head() == 0
        with pytest.raises(StoreError, match="too many concurrent writers"):
            store.journal.append([])
    assert store.journal.append([]) == []


def test_all_connections_are_in_use(url: str) -> None:
    made = open_database(url)
    made.engine.pool._timeout = 0.01  # type: ignore[attr-defined]
    with ExitStack() as held, pytest.raises(StoreError, match="all connections are in use"):
        for _ in range(100):
            held.enter_context(made.read())
    made.close()


def test_sqlite_waits_for_the_disk_and_lets_readers_read(tmp_path: Path) -> None:
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


def test_who_asks_while_somebody_tries_to_write_is_told_what_was_refused_last(store: Store) -> None:
    """Again and again, as probes do: what is told does not grow with each of them."""
    store.database.refused = StoreError("the disk is full")
    depths = set[int]()
    with store._trying:
        for _ in range(3):
            with pytest.raises(StoreError, match="the disk is full") as told:
                store.check()
            depths.add(len(told.traceback))
    assert len(depths) == 1
    store.check()
    assert store.database.refused is None


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**30, "\ud800", "a\x00b"])
def test_statement_with_a_value_that_no_column_holds_is_the_callers_mistake(
    store: Store, value: int | str
) -> None:
    """And not one of the store: with `StoreError` whoever asks would be told to come back."""
    if value == "a\x00b" and store.database.is_sqlite:
        pytest.skip("SQLite takes it: parameters are checked before")
    kind = "BIGINT" if isinstance(value, int) else "TEXT"
    statement = text(f"SELECT CAST(:given AS {kind})")
    with pytest.raises(InputError, match="a value that the store cannot hold"):
        store.database.transact(lambda connection: connection.execute(statement, {"given": value}))
    assert store.database.refused is None
    with store.database.read() as connection, pytest.raises(InputError):
        connection.execute(statement, {"given": value})
