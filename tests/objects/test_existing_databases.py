"""Triggers on existing databases: any keys, null keys, other triggers, schemas, partitions."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

import psycopg

from tests.objects.databases import Database, Memory, Postgres
from tests.objects.histories import create_tables
from tests.objects.university import MAPPED as UNIVERSITY
from tests.objects.university import PUML, create_university
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
MAPPED = read_plantuml(NODES)


def create_nodes(database: Database, *tables: str, mapped: MappedModel = MAPPED) -> Database:
    """Create tables with these statements, and install the triggers."""
    for sql in tables:
        database.run(sql)
    install_triggers(database.site, mapped)
    return database


NEXT = "CREATE TABLE next (source_id {0}, target_id {0})"


def take_changes(database: Database) -> list[str]:
    """Return the changes since the last call."""
    rows = database.run("SELECT kind, class, key FROM tidings_changes ORDER BY id")
    database.run("DELETE FROM tidings_changes")
    return [f"{kind} {cls}:{key}" for kind, cls, key in rows]


def run(database: Database, statements: Iterable[str]) -> None:
    for sql in statements:
        database.run(sql)


def test_triggers_accept_any_text_as_key(database: Database) -> None:
    create_nodes(database, "CREATE TABLE node (id TEXT PRIMARY KEY, title TEXT)", NEXT.format("TEXT"))
    for key in ("a''b", 'q"x', "ü€𝄞", " ", "", "%_", "\\", "a\nb", "1"):
        database.run(f"INSERT INTO node VALUES ('{key}', 'v')")
    database.run("INSERT INTO tidings_watches SELECT 'Node', id, 'Node', id FROM node")
    database.run("INSERT INTO next SELECT one.id, other.id FROM node AS one, node AS other")
    database.run("DELETE FROM tidings_changes")
    database.run("UPDATE node SET title = 'w'")
    changes = database.site.changes(limit=100)
    assert [(len(each.propagation.reached), len(each.propagation.hits)) for each in changes] == [(9, 9)] * 9


def test_triggers_ignore_rows_with_null_key(database: Database) -> None:
    """SQLite allows null in primary keys other than INTEGER, PostgreSQL in unique columns."""
    create_nodes(database, "CREATE TABLE node (id TEXT UNIQUE, title TEXT)", NEXT.format("TEXT"))
    database.run("INSERT INTO node VALUES (NULL, 'a')")
    database.run("UPDATE node SET title = 'b'")
    database.run("INSERT INTO next VALUES (NULL, NULL), (NULL, 'a'), ('a', NULL)")
    database.run("DELETE FROM node")
    assert take_changes(database) == []


def test_triggers_quote_keywords_of_sql(database: Database) -> None:
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
    mapped = read_plantuml(text)
    create_nodes(database, *create_tables(mapped, "INTEGER"), mapped=mapped)
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
    assert take_changes(database) == [
        "insert Order:1",
        "insert User:1",
        "link User:1",
        "link Order:1",
        "update Order:1",
        "update User:1",
    ]


def test_triggers_record_changes_by_other_triggers(database: Database) -> None:
    """Also in a column that the statement does not name."""
    create_university(database)
    database.run("ALTER TABLE course ADD COLUMN hidden TEXT")
    if isinstance(database, Memory):
        body = "UPDATE course SET title = NEW.hidden WHERE id = NEW.id;"
        body += "UPDATE learning_material SET title = 'a' WHERE id = 1;"
        database.run(f"CREATE TRIGGER own AFTER UPDATE OF hidden ON course BEGIN {body} END")
    else:
        body = "NEW.title := NEW.hidden; UPDATE learning_material SET title = 'a' WHERE id = 1; RETURN NEW;"
        database.run(f"CREATE FUNCTION own() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$")
        database.run(
            "CREATE TRIGGER own BEFORE UPDATE OF hidden ON course FOR EACH ROW EXECUTE FUNCTION own()"
        )
    database.run("UPDATE course SET hidden = 'b' WHERE id = 2")
    assert sorted(take_changes(database)) == ["update Course:2", "update LearningMaterial:1"]


def test_triggers_record_generated_columns(database: Database) -> None:
    generated = "GENERATED ALWAYS AS (raw || '!') STORED"
    create_nodes(
        database,
        f"CREATE TABLE node (id INTEGER PRIMARY KEY, raw TEXT, title TEXT {generated})",
        NEXT.format("INTEGER"),
    )
    database.run("INSERT INTO node (id, raw) VALUES (1, 'a')")
    database.run("UPDATE node SET raw = 'b'")
    assert [each.after for each in database.site.changes(limit=10)] == [{"title": "a!"}, {"title": "b!"}]


def test_triggers_record_upsert_as_insert_or_update(database: Database) -> None:
    create_university(database)
    insert = "INSERT INTO course (id, title) VALUES ({}, 'new') ON CONFLICT (id) DO"
    for number in (1, 1, 9):
        database.run(f"{insert.format(number)} UPDATE SET title = excluded.title")
    database.run(f"{insert.format(1)} NOTHING")
    assert take_changes(database) == ["update Course:1", "insert Course:9"]


TREE = read_plantuml(
    """
class Node <<subscriber>> {
  title
}
Node "*" -- "0..1 parent" Node : below <<propagates>> >
"""
)
TREE_TABLE = "CREATE TABLE node (id INTEGER PRIMARY KEY, title TEXT, parent_id INTEGER REFERENCES node {})"


def test_triggers_record_cascaded_deletes(database: Database) -> None:
    create_nodes(database, TREE_TABLE.format("ON DELETE CASCADE"), mapped=TREE)
    database.run("INSERT INTO node VALUES (1, 'a', NULL), (2, 'b', 1), (3, 'c', 2)")
    take_changes(database)
    database.run("DELETE FROM node WHERE id = 1")
    assert take_changes(database) == ["delete Node:1", "delete Node:2", "delete Node:3"]


def test_triggers_reference_set_null_by_delete_is_no_unlink(database: Database) -> None:
    create_nodes(database, TREE_TABLE.format("ON DELETE SET NULL"), mapped=TREE)
    database.run("INSERT INTO node VALUES (1, 'a', NULL), (2, 'b', 1)")
    take_changes(database)
    database.run("DELETE FROM node WHERE id = 1")
    assert database.run("SELECT parent_id FROM node") == [(None,)]
    assert take_changes(database) == ["delete Node:1"]


def test_triggers_accept_links_before_their_objects(database: Database) -> None:
    """With deferred constraints, which are checked at the end of a transaction."""
    links = ", ".join(
        f"{end}_id INTEGER REFERENCES node DEFERRABLE INITIALLY DEFERRED" for end in ("source", "target")
    )
    create_nodes(
        database, "CREATE TABLE node (id INTEGER PRIMARY KEY, title TEXT)", f"CREATE TABLE next ({links})"
    )
    run(
        database,
        ("BEGIN", "INSERT INTO next VALUES (1, 2)", "INSERT INTO node (id) VALUES (1), (2)", "COMMIT"),
    )
    assert take_changes(database) == ["link Node:2", "insert Node:1", "insert Node:2"]
    run(database, ("BEGIN", "DELETE FROM node WHERE id = 1", "DELETE FROM next", "COMMIT"))
    assert take_changes(database) == ["delete Node:1"]


def test_triggers_rollback_to_savepoint_discards_changes(database: Database) -> None:
    create_university(database)
    update = "UPDATE course SET room = 'B1' WHERE id = {}"
    run(
        database,
        ("BEGIN", update.format(1), "SAVEPOINT here", update.format(2), "ROLLBACK TO here", "COMMIT"),
    )
    assert take_changes(database) == ["update Course:1"]


def test_triggers_duplicate_link_is_one_step(database: Database) -> None:
    create_university(database)
    database.run("INSERT INTO used_in VALUES (2, 1)")
    database.run("DELETE FROM tidings_changes")
    database.run("UPDATE learning_material SET title = 'a' WHERE id = 2")
    assert database.run("SELECT count(*) FROM tidings_steps") == [(2,)]


def test_triggers_record_thousands_of_rows_in_one_statement(database: Database) -> None:
    create_university(database)
    numbers = "WITH RECURSIVE n (i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 2099)"
    database.run(f"{numbers} INSERT INTO learning_material SELECT i, 'a' FROM n")
    database.run("INSERT INTO used_in SELECT id, 2 FROM learning_material WHERE id > 99")
    database.run("DELETE FROM tidings_changes")
    database.run("UPDATE learning_material SET title = 'b' WHERE id > 99")
    counted = "SELECT count(*), count(DISTINCT change), count(DISTINCT subscriber_key) FROM tidings_hits"
    assert database.run(counted) == [(4_000, 2_000, 2)]


def test_install_triggers_renamed_column_differs_from_model(database: Database) -> None:
    create_university(database)
    database.run("ALTER TABLE course RENAME COLUMN room TO place")
    mapped = read_plantuml(Path(PUML).read_text().replace("room : String", "place : String"))
    assert {each.state for each in find_differences(database.site, mapped)} == {InstallationState.DIFFERENT}
    install_triggers(database.site, mapped)
    assert find_differences(database.site, mapped) == ()
    database.run("UPDATE course SET place = 'B1' WHERE id = 1")
    assert take_changes(database) == ["update Course:1"]


class TestSqlite:
    """SQLite, whose columns accept any type."""

    def test_triggers_values_without_json_form_are_readable(self, tmp_path: Path) -> None:
        """A value that cannot be read would block all later changes."""
        path = tmp_path / "nodes.db"
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE node (id INTEGER PRIMARY KEY, title)")
            connection.execute(NEXT.format("INTEGER"))
        connection.close()
        with open_sqlite(f"sqlite:///{path}") as site:
            install_triggers(site, MAPPED)
            values = ("9e999", "-9e999", "CAST(x'61ff' AS TEXT)", "x'61ff'", "'a' || char(0) || 'b'")
            site.run([f"INSERT INTO node (title) VALUES ({value})" for value in values])
            expected = ["Inf", "-Inf", "a\N{REPLACEMENT CHARACTER}", "61FF", "a\0b"]
            assert [each.after for each in site.changes(limit=10)] == [{"title": each} for each in expected]
            assert [each["title"] for each in site.values(MAPPED, "Node", list("12345")).values()] == expected

    def test_triggers_support_tables_without_rowid(self) -> None:
        node = "CREATE TABLE node (id TEXT PRIMARY KEY, title TEXT) WITHOUT ROWID"
        links = "CREATE TABLE next (source_id, target_id, PRIMARY KEY (source_id, target_id)) WITHOUT ROWID"
        database = create_nodes(Memory(), node, links)
        run(
            database, ("INSERT INTO node VALUES ('a', 'x'), ('b', 'x')", "INSERT INTO next VALUES ('a', 'b')")
        )
        assert take_changes(database) == ["insert Node:a", "insert Node:b", "link Node:b"]

    def test_triggers_replace_is_delete_only_with_recursive_triggers(self) -> None:
        database = create_university(Memory())
        replace = "INSERT OR REPLACE INTO course VALUES (1, 'Logic', 'A1', NULL)"
        database.run(replace)
        assert take_changes(database) == ["insert Course:1"]
        database.run("PRAGMA recursive_triggers = ON")
        database.run(replace)
        assert take_changes(database) == ["delete Course:1", "insert Course:1"]


class TestPostgresql:
    """Features that only PostgreSQL has."""

    def test_triggers_row_moved_between_partitions_is_deleted_and_inserted(self, postgres: Postgres) -> None:
        """PostgreSQL runs such an update as a deletion and an insertion."""
        parts = (
            f"CREATE TABLE node{at} PARTITION OF node FOR VALUES FROM ({at}00) TO ({at + 1}00)"
            for at in (0, 1)
        )
        table = "CREATE TABLE node (id INTEGER PRIMARY KEY, title TEXT) PARTITION BY RANGE (id)"
        database = create_nodes(postgres.recreate_schema(), table, *parts, NEXT.format("INTEGER"))
        run(
            database,
            ("INSERT INTO node VALUES (1, 'a')", "UPDATE node SET title = 'b'", "UPDATE node SET id = 101"),
        )
        assert take_changes(database) == [
            "insert Node:1",
            "update Node:1",
            "delete Node:1",
            "insert Node:101",
        ]
        assert find_differences(database.site, MAPPED) == ()
        remove_triggers(database.site)

    def test_triggers_support_tables_of_other_schema(self, postgres: Postgres) -> None:
        database = postgres.recreate_schema()
        run(database, ("DROP SCHEMA IF EXISTS sales CASCADE", "CREATE SCHEMA sales"))
        text = NODES.replace("<<subscriber>>", "<<subscriber>> <<stored {table = sales.node}>>")
        text = text.replace("<<propagates>>", "<<propagates {table = sales.next}>>")
        mapped, other = read_plantuml(text), read_plantuml(text.replace("<<propagates {", "<<stored {"))
        table, links = "CREATE TABLE sales.node (id INTEGER PRIMARY KEY, title TEXT)", NEXT.format("INTEGER")
        create_nodes(database, table, links.replace("next", "sales.next"), mapped=mapped)
        assert find_differences(database.site, mapped) == () and install_triggers(database.site, mapped) == ()
        install_triggers(database.site, other)
        assert find_differences(database.site, other) == ()
        install_triggers(database.site, mapped)
        remove_triggers(database.site)
        left = "SELECT relname FROM pg_class WHERE relname LIKE 'tidings%' AND relnamespace IN"
        assert database.run(f"{left} ('sales'::regnamespace, current_schema()::regnamespace)") == []
        database.run("DROP SCHEMA sales CASCADE")

    def test_install_triggers_ignores_indexes_of_other_schema(self, postgres: Postgres) -> None:
        """For example in a copy of the tables without an outbox."""
        own = (
            "SELECT i.relname, pg_get_indexdef(i.oid) FROM pg_class AS i WHERE i.relkind = 'i' "
            "AND i.relname LIKE 'tidings%by%' AND i.relnamespace = current_schema()::regnamespace ORDER BY 1"
        )
        database = postgres.recreate_schema()
        tables = "CREATE TABLE node (id INTEGER PRIMARY KEY, title TEXT)", NEXT.format("INTEGER")
        create_nodes(database, *tables, mapped=MAPPED)
        indexes = [tuple(row) for row in database.run(own)]
        assert any(" ON tried.next " in text for _, text in indexes)
        run(database, ("DROP SCHEMA IF EXISTS copied CASCADE", "CREATE SCHEMA copied"))
        run(database, ("CREATE TABLE copied.next AS TABLE next",))
        run(database, [text.replace("tried.", "copied.") for _, text in indexes if " ON tried.next " in text])
        database = postgres.recreate_schema()
        create_nodes(database, *tables, mapped=MAPPED)
        assert database.run(own) == indexes
        remove_triggers(database.site)
        assert database.run("SELECT count(*) FROM pg_indexes WHERE schemaname = 'copied'") != [(0,)]
        database.run("DROP SCHEMA copied CASCADE")

    def test_triggers_write_outbox_for_other_role(self, postgres: Postgres) -> None:
        """Also if the outbox is in the schema named like the role that installed it."""
        database = postgres.recreate_schema()
        user = database.run("SELECT current_user")[0][0]
        run(database, (f"CREATE SCHEMA {user}", 'SET search_path = "$user", tried', "CREATE ROLE somebody"))
        try:
            create_nodes(
                database,
                *(sql.replace('TABLE "', 'TABLE tried."') for sql in create_tables(MAPPED, "INTEGER")),
            )
            for schema in (user, "tried"):
                database.run(f"GRANT USAGE ON SCHEMA {schema} TO somebody")
                database.run(f"GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO somebody")
            run(database, ("SET ROLE somebody", "INSERT INTO tried.node VALUES (1, 'a')", "RESET ROLE"))
            assert take_changes(database) == ["insert Node:1"]
        finally:
            run(database, ("RESET ROLE", "SET search_path = tried", f"DROP SCHEMA {user} CASCADE"))
            run(database, ("DROP OWNED BY somebody", "DROP ROLE somebody"))

    def test_install_triggers_follows_changed_type_of_key(
        self, postgres: Postgres, postgres_server: Server
    ) -> None:
        """The function that converts texts to keys has the previous type."""
        database = create_university(postgres.recreate_schema())
        database.run("ALTER TABLE course ALTER id TYPE bigint")
        assert {each.name for each in find_differences(database.site, UNIVERSITY)} == {"tidings_course_key"}
        install_triggers(database.site, UNIVERSITY)
        assert find_differences(database.site, UNIVERSITY) == ()
        with psycopg.connect(postgres_server.url(), autocommit=True) as connection:
            connection.execute("SET search_path = tried")
            connection.execute("INSERT INTO course VALUES (5000000000, 'Logic', 'A1', NULL)")
        assert take_changes(database) == ["insert Course:5000000000"]

    def test_triggers_support_types_of_postgresql(self, postgres: Postgres) -> None:
        database, key = postgres.recreate_schema(), "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
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
        mapped = read_plantuml(NODES.replace("  title", attributes))
        create_nodes(
            database,
            f"CREATE TABLE node (id uuid PRIMARY KEY, {columns})",
            NEXT.format("uuid"),
            mapped=mapped,
        )
        values = ("{}", "{}", "now", "1.5", "{1}", "a", "(1,2)", "<a/>", "[1,3)", "1 day")
        database.run(f"INSERT INTO node (id) VALUES ('{key}')")
        database.run("INSERT INTO tidings_watches VALUES ('Node', 'no uuid', 'Node', 'no uuid')")
        sets = ", ".join(f"v{number} = '{value}'" for number, value in enumerate(values))
        database.run(f"UPDATE node SET {sets}")
        assert len(database.site.changes(limit=10)[1].change.attributes) == len(types)

    def test_changes_of_concurrent_transactions_are_read_in_commit_order(
        self, postgres: Postgres, postgres_server: Server
    ) -> None:
        """No transaction waits for another."""
        database, url = create_university(postgres.recreate_schema()), postgres_server.url()
        with psycopg.connect(url) as first, psycopg.connect(url) as second:
            for connection in (first, second):
                connection.execute("SET search_path = tried")
                connection.commit()
            first.execute("UPDATE course SET room = 'a' WHERE id = 1")
            second.execute("UPDATE learning_material SET title = 'b' WHERE id = 2")
            second.commit()
            changes = database.site.changes(limit=10)
            assert [str(each.change.object) for each in changes] == ["LearningMaterial:2"]
            database.site.delete_changes(each.id for each in changes)
            first.commit()
            assert take_changes(database) == ["update Course:1"]
