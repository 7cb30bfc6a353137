"""Databases as people have them: keys of any kind, rows without one, triggers of their own, schemas, partitions."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

import psycopg

from tests.objects.databases import Database, Memory, Postgres
from tests.objects.histories import create_tables
from tests.objects.university import PLACED as UNIVERSITY
from tests.objects.university import PUML, filled
from tests.support.servers.postgres import Server
from tidings.objects.model.table_mapping import MappedModel
from tidings.objects.outbox.database import open_sqlite
from tidings.objects.outbox.installation import (
    InstallationState,
    find_differences,
    install_triggers,
    remove_triggers,
)
from tidings.objects.readers.plantuml_reader import read_plantuml

NODES = """
class Node <<subscriber>> {
  title
}
Node "*" -- "*" Node : next <<propagates>> >
"""
PLACED = read_plantuml(NODES)


def nodes(database: Database, *tables: str, placed: MappedModel = PLACED) -> Database:
    """Triggers on tables that are made so."""
    for sql in tables:
        database.run(sql)
    install_triggers(database.site, placed)
    return database


NEXT = "CREATE TABLE next (source_id {0}, target_id {0})"


def happened(database: Database) -> list[str]:
    """What was noticed since it was asked last."""
    rows = database.run("SELECT kind, class, key FROM tidings_changes ORDER BY id")
    database.run("DELETE FROM tidings_changes")
    return [f"{kind} {cls}:{key}" for kind, cls, key in rows]


def run(database: Database, statements: Iterable[str]) -> None:
    for sql in statements:
        database.run(sql)


def test_keys_are_any_texts(database: Database) -> None:
    nodes(database, "CREATE TABLE node (id TEXT PRIMARY KEY, title TEXT)", NEXT.format("TEXT"))
    for key in ("a''b", 'q"x', "ü€𝄞", " ", "", "%_", "\\", "a\nb", "1"):
        database.run(f"INSERT INTO node VALUES ('{key}', 'v')")
    database.run("INSERT INTO tidings_watches SELECT 'Node', id, 'Node', id FROM node")
    database.run("INSERT INTO next SELECT one.id, other.id FROM node AS one, node AS other")
    database.run("DELETE FROM tidings_changes")
    database.run("UPDATE node SET title = 'w'")
    found = database.site.changes(most=100)
    assert [(len(each.propagation.reached), len(each.propagation.hits)) for each in found] == [(9, 9)] * 9


def test_a_row_without_a_key_is_no_object(database: Database) -> None:
    """SQLite takes it for any primary key but INTEGER, PostgreSQL where it is only unique."""
    nodes(database, "CREATE TABLE node (id TEXT UNIQUE, title TEXT)", NEXT.format("TEXT"))
    database.run("INSERT INTO node VALUES (NULL, 'a')")
    database.run("UPDATE node SET title = 'b'")
    database.run("INSERT INTO next VALUES (NULL, NULL), (NULL, 'a'), ('a', NULL)")
    database.run("DELETE FROM node")
    assert happened(database) == []


def test_words_of_sql_are_names_like_any_other(database: Database) -> None:
    text = """
class Order <<subscriber>> <<stored {table = order, key = primary}>> {
  select
  NEW
  old
}
class User {
  key
  family
  change
}
Order "*" -- "*" User : table <<propagates {source_column = where, target_column = check}>> >
Order "*" -- "0..1" Order : references <<propagates>> >
"""
    placed = read_plantuml(text)
    nodes(database, *create_tables(placed, "INTEGER"), placed=placed)
    run(
        database,
        (
            'INSERT INTO "order" ("primary") VALUES (1)',
            'INSERT INTO "user" (id) VALUES (1)',
            'INSERT INTO "table" VALUES (1, 1)',
            """UPDATE "order" SET references_id = 1, "select" = 'a', "NEW" = 'b', old = 'c'""",
            """UPDATE "user" SET change = 'a', key = 'b', family = 'c'""",
        ),
    )
    assert happened(database) == [
        "insert Order:1",
        "insert User:1",
        "link User:1",
        "link Order:1",
        "update Order:1",
        "update User:1",
    ]


def test_what_the_program_s_own_triggers_change_is_noticed(database: Database) -> None:
    """Also in a column that the statement does not name."""
    filled(database)
    database.run("ALTER TABLE course ADD COLUMN hidden TEXT")
    if isinstance(database, Memory):
        does = "UPDATE course SET title = NEW.hidden WHERE id = NEW.id;"
        does += "UPDATE learning_material SET title = 'a' WHERE id = 1;"
        database.run(f"CREATE TRIGGER own AFTER UPDATE OF hidden ON course BEGIN {does} END")
    else:
        does = "NEW.title := NEW.hidden; UPDATE learning_material SET title = 'a' WHERE id = 1; RETURN NEW;"
        database.run(f"CREATE FUNCTION own() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {does} END $$")
        database.run(
            "CREATE TRIGGER own BEFORE UPDATE OF hidden ON course FOR EACH ROW EXECUTE FUNCTION own()"
        )
    database.run("UPDATE course SET hidden = 'b' WHERE id = 2")
    assert sorted(happened(database)) == ["update Course:2", "update LearningMaterial:1"]


def test_what_is_generated_changes_with_what_it_is_made_of(database: Database) -> None:
    made = "GENERATED ALWAYS AS (raw || '!') STORED"
    nodes(
        database,
        f"CREATE TABLE node (id INTEGER PRIMARY KEY, raw TEXT, title TEXT {made})",
        NEXT.format("INTEGER"),
    )
    database.run("INSERT INTO node (id, raw) VALUES (1, 'a')")
    database.run("UPDATE node SET raw = 'b'")
    assert [each.after for each in database.site.changes(most=10)] == [{"title": "a!"}, {"title": "b!"}]


def test_upserts_are_what_they_do(database: Database) -> None:
    filled(database)
    insert = "INSERT INTO course (id, title) VALUES ({}, 'new') ON CONFLICT (id) DO"
    for number in (1, 1, 9):
        database.run(f"{insert.format(number)} UPDATE SET title = excluded.title")
    database.run(f"{insert.format(1)} NOTHING")
    assert happened(database) == ["update Course:1", "insert Course:9"]


TREE = read_plantuml(
    """
class Node <<subscriber>> {
  title
}
Node "*" -- "0..1 parent" Node : below <<propagates>> >
"""
)
TREE_TABLE = "CREATE TABLE node (id INTEGER PRIMARY KEY, title TEXT, parent_id INTEGER REFERENCES node {})"


def test_what_the_database_deletes_with_a_row_ends_too(database: Database) -> None:
    nodes(database, TREE_TABLE.format("ON DELETE CASCADE"), placed=TREE)
    database.run("INSERT INTO node VALUES (1, 'a', NULL), (2, 'b', 1), (3, 'c', 2)")
    happened(database)
    database.run("DELETE FROM node WHERE id = 1")
    assert happened(database) == ["delete Node:1", "delete Node:2", "delete Node:3"]


def test_who_loses_a_reference_with_its_object_is_not_unlinked_besides(database: Database) -> None:
    nodes(database, TREE_TABLE.format("ON DELETE SET NULL"), placed=TREE)
    database.run("INSERT INTO node VALUES (1, 'a', NULL), (2, 'b', 1)")
    happened(database)
    database.run("DELETE FROM node WHERE id = 1")
    assert database.run("SELECT parent_id FROM node") == [(None,)]
    assert happened(database) == ["delete Node:1"]


def test_links_may_come_before_their_ends(database: Database) -> None:
    """Where constraints are looked at when a transaction ends."""
    links = ", ".join(
        f"{end}_id INTEGER REFERENCES node DEFERRABLE INITIALLY DEFERRED" for end in ("source", "target")
    )
    nodes(database, "CREATE TABLE node (id INTEGER PRIMARY KEY, title TEXT)", f"CREATE TABLE next ({links})")
    run(
        database,
        ("BEGIN", "INSERT INTO next VALUES (1, 2)", "INSERT INTO node (id) VALUES (1), (2)", "COMMIT"),
    )
    assert happened(database) == ["link Node:2", "insert Node:1", "insert Node:2"]
    run(database, ("BEGIN", "DELETE FROM node WHERE id = 1", "DELETE FROM next", "COMMIT"))
    assert happened(database) == ["delete Node:1"]


def test_what_a_savepoint_undoes_was_never_there(database: Database) -> None:
    filled(database)
    update = "UPDATE course SET room = 'B1' WHERE id = {}"
    run(
        database,
        ("BEGIN", update.format(1), "SAVEPOINT here", update.format(2), "ROLLBACK TO here", "COMMIT"),
    )
    assert happened(database) == ["update Course:1"]


def test_a_link_that_is_there_twice_is_one_step(database: Database) -> None:
    filled(database)
    database.run("INSERT INTO used_in VALUES (2, 1)")
    database.run("DELETE FROM tidings_changes")
    database.run("UPDATE learning_material SET title = 'a' WHERE id = 2")
    assert database.run("SELECT count(*) FROM tidings_steps") == [(2,)]


def test_thousands_of_rows_in_one_statement(database: Database) -> None:
    filled(database)
    numbers = "WITH RECURSIVE n (i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 2099)"
    database.run(f"{numbers} INSERT INTO learning_material SELECT i, 'a' FROM n")
    database.run("INSERT INTO used_in SELECT id, 2 FROM learning_material WHERE id > 99")
    database.run("DELETE FROM tidings_changes")
    database.run("UPDATE learning_material SET title = 'b' WHERE id > 99")
    counted = "SELECT count(*), count(DISTINCT change), count(DISTINCT subscriber_key) FROM tidings_hits"
    assert database.run(counted) == [(4_000, 2_000, 2)]


def test_a_column_that_was_renamed_is_another_model(database: Database) -> None:
    filled(database)
    database.run("ALTER TABLE course RENAME COLUMN room TO place")
    placed = read_plantuml(Path(PUML).read_text().replace("room : String", "place : String"))
    assert {each.state for each in find_differences(database.site, placed)} == {InstallationState.DIFFERENT}
    install_triggers(database.site, placed)
    assert find_differences(database.site, placed) == ()
    database.run("UPDATE course SET place = 'B1' WHERE id = 1")
    assert happened(database) == ["update Course:1"]


class TestSqlite:
    """Its tables take anything."""

    def test_values_that_json_has_not(self, tmp_path: Path) -> None:
        """Nobody would be told of anything any more if one of them could not be read."""
        path = tmp_path / "nodes.db"
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE node (id INTEGER PRIMARY KEY, title)")
            connection.execute(NEXT.format("INTEGER"))
        connection.close()
        with open_sqlite(f"sqlite:///{path}") as site:
            install_triggers(site, PLACED)
            values = ("9e999", "-9e999", "CAST(x'61ff' AS TEXT)", "x'61ff'", "'a' || char(0) || 'b'")
            site.run([f"INSERT INTO node (title) VALUES ({value})" for value in values])
            expected = ["Inf", "-Inf", "a\N{REPLACEMENT CHARACTER}", "61FF", "a\0b"]
            assert [each.after for each in site.changes(most=10)] == [{"title": each} for each in expected]
            assert [each["title"] for each in site.values(PLACED, "Node", list("12345")).values()] == expected

    def test_tables_without_rowid(self) -> None:
        node = "CREATE TABLE node (id TEXT PRIMARY KEY, title TEXT) WITHOUT ROWID"
        links = "CREATE TABLE next (source_id, target_id, PRIMARY KEY (source_id, target_id)) WITHOUT ROWID"
        database = nodes(Memory(), node, links)
        run(
            database, ("INSERT INTO node VALUES ('a', 'x'), ('b', 'x')", "INSERT INTO next VALUES ('a', 'b')")
        )
        assert happened(database) == ["insert Node:a", "insert Node:b", "link Node:b"]

    def test_what_is_replaced_is_inserted_or_where_sqlite_says_so_deleted_before(self) -> None:
        database = filled(Memory())
        replace = "INSERT OR REPLACE INTO course VALUES (1, 'Logic', 'A1', NULL)"
        database.run(replace)
        assert happened(database) == ["insert Course:1"]
        database.run("PRAGMA recursive_triggers = ON")
        database.run(replace)
        assert happened(database) == ["delete Course:1", "insert Course:1"]


class TestPostgresql:
    """What only a server has."""

    def test_partitions(self, postgres: Postgres) -> None:
        """A row that moves to another one is deleted and inserted: PostgreSQL does just that."""
        parts = (
            f"CREATE TABLE node{at} PARTITION OF node FOR VALUES FROM ({at}00) TO ({at + 1}00)"
            for at in (0, 1)
        )
        table = "CREATE TABLE node (id INTEGER PRIMARY KEY, title TEXT) PARTITION BY RANGE (id)"
        database = nodes(postgres.emptied(), table, *parts, NEXT.format("INTEGER"))
        run(
            database,
            ("INSERT INTO node VALUES (1, 'a')", "UPDATE node SET title = 'b'", "UPDATE node SET id = 101"),
        )
        assert happened(database) == ["insert Node:1", "update Node:1", "delete Node:1", "insert Node:101"]
        assert find_differences(database.site, PLACED) == ()
        remove_triggers(database.site)

    def test_tables_of_another_schema(self, postgres: Postgres) -> None:
        database = postgres.emptied()
        run(database, ("DROP SCHEMA IF EXISTS sales CASCADE", "CREATE SCHEMA sales"))
        text = NODES.replace("<<subscriber>>", "<<subscriber>> <<stored {table = sales.node}>>")
        text = text.replace("<<propagates>>", "<<propagates {table = sales.next}>>")
        placed, other = read_plantuml(text), read_plantuml(text.replace("<<propagates {", "<<stored {"))
        table, links = "CREATE TABLE sales.node (id INTEGER PRIMARY KEY, title TEXT)", NEXT.format("INTEGER")
        nodes(database, table, links.replace("next", "sales.next"), placed=placed)
        assert find_differences(database.site, placed) == () and install_triggers(database.site, placed) == ()
        install_triggers(database.site, other)
        assert find_differences(database.site, other) == ()
        install_triggers(database.site, placed)
        remove_triggers(database.site)
        left = "SELECT relname FROM pg_class WHERE relname LIKE 'tidings%' AND relnamespace IN"
        assert database.run(f"{left} ('sales'::regnamespace, current_schema()::regnamespace)") == []
        database.run("DROP SCHEMA sales CASCADE")

    def test_indexes_of_the_same_name_in_another_schema(self, postgres: Postgres) -> None:
        """A copy of the tables without an outbox, say: what it has does not keep ours from being made."""
        own = (
            "SELECT i.relname, pg_get_indexdef(i.oid) FROM pg_class AS i WHERE i.relkind = 'i' "
            "AND i.relname LIKE 'tidings%by%' AND i.relnamespace = current_schema()::regnamespace ORDER BY 1"
        )
        database = postgres.emptied()
        tables = "CREATE TABLE node (id INTEGER PRIMARY KEY, title TEXT)", NEXT.format("INTEGER")
        nodes(database, *tables, placed=PLACED)
        made = [tuple(row) for row in database.run(own)]
        assert any(" ON tried.next " in text for _, text in made)
        run(database, ("DROP SCHEMA IF EXISTS copied CASCADE", "CREATE SCHEMA copied"))
        run(database, ("CREATE TABLE copied.next AS TABLE next",))
        run(database, [text.replace("tried.", "copied.") for _, text in made if " ON tried.next " in text])
        database = postgres.emptied()
        nodes(database, *tables, placed=PLACED)
        assert database.run(own) == made
        remove_triggers(database.site)
        assert database.run("SELECT count(*) FROM pg_indexes WHERE schemaname = 'copied'") != [(0,)]
        database.run("DROP SCHEMA copied CASCADE")

    def test_whoever_changes_rows_finds_the_outbox(self, postgres: Postgres) -> None:
        """Also if it lies in the schema that is called as the one who installed it."""
        database = postgres.emptied()
        user = database.run("SELECT current_user")[0][0]
        run(database, (f"CREATE SCHEMA {user}", 'SET search_path = "$user", tried', "CREATE ROLE somebody"))
        try:
            nodes(
                database,
                *(sql.replace('TABLE "', 'TABLE tried."') for sql in create_tables(PLACED, "INTEGER")),
            )
            for schema in (user, "tried"):
                database.run(f"GRANT USAGE ON SCHEMA {schema} TO somebody")
                database.run(f"GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO somebody")
            run(database, ("SET ROLE somebody", "INSERT INTO tried.node VALUES (1, 'a')", "RESET ROLE"))
            assert happened(database) == ["insert Node:1"]
        finally:
            run(database, ("RESET ROLE", "SET search_path = tried", f"DROP SCHEMA {user} CASCADE"))
            run(database, ("DROP OWNED BY somebody", "DROP ROLE somebody"))

    def test_a_key_of_another_type(self, postgres: Postgres, postgres_server: Server) -> None:
        """Installing again takes it: what turns texts into keys had the old one."""
        database = filled(postgres.emptied())
        database.run("ALTER TABLE course ALTER id TYPE bigint")
        assert {each.name for each in find_differences(database.site, UNIVERSITY)} == {"tidings_course_key"}
        install_triggers(database.site, UNIVERSITY)
        assert find_differences(database.site, UNIVERSITY) == ()
        with psycopg.connect(postgres_server.url(), autocommit=True) as connection:
            connection.execute("SET search_path = tried")
            connection.execute("INSERT INTO course VALUES (5000000000, 'Logic', 'A1', NULL)")
        assert happened(database) == ["insert Course:5000000000"]

    def test_keys_and_values_of_its_own_types(self, postgres: Postgres) -> None:
        database, key = postgres.emptied(), "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
        types = (
            "json",
            "jsonb",
            "timestamptz",
            "numeric",
            "int[]",
            "bytea",
            "point",
            "xml",
            "int4range",
            "interval",
        )
        columns = ", ".join(f'"v{number}" {each}' for number, each in enumerate(types))
        attributes = "\n".join(f"  v{number}" for number in range(len(types)))
        placed = read_plantuml(NODES.replace("  title", attributes))
        nodes(
            database,
            f"CREATE TABLE node (id uuid PRIMARY KEY, {columns})",
            NEXT.format("uuid"),
            placed=placed,
        )
        values = ("{}", "{}", "now", "1.5", "{1}", "a", "(1,2)", "<a/>", "[1,3)", "1 day")
        database.run(f"INSERT INTO node (id) VALUES ('{key}')")
        database.run("INSERT INTO tidings_watches VALUES ('Node', 'no uuid', 'Node', 'no uuid')")
        sets = ", ".join(f"v{number} = '{value}'" for number, value in enumerate(values))
        database.run(f"UPDATE node SET {sets}")
        assert len(database.site.changes(most=10)[1].change.attributes) == len(types)

    def test_transactions_side_by_side(self, postgres: Postgres, postgres_server: Server) -> None:
        """None waits for another, and what ends later is read later, though it began before."""
        database, url = filled(postgres.emptied()), postgres_server.url()
        with psycopg.connect(url) as one, psycopg.connect(url) as other:
            for connection in (one, other):
                connection.execute("SET search_path = tried")
                connection.commit()
            one.execute("UPDATE course SET room = 'a' WHERE id = 1")
            other.execute("UPDATE learning_material SET title = 'b' WHERE id = 2")
            other.commit()
            found = database.site.changes(most=10)
            assert [str(each.change.object) for each in found] == ["LearningMaterial:2"]
            database.site.forget(each.id for each in found)
            one.commit()
            assert happened(database) == ["update Course:1"]
