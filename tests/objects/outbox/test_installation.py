"""Installation is a migration: differences are reported and applied, and other triggers stay."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.objects.databases import Database
from tests.objects.histories import create_tables
from tests.support.servers.postgres import Server
from tidings.errors import InputError
from tidings.objects.model.table_mapping import MappedModel
from tidings.objects.outbox.database import ObjectDatabase, open_sqlite
from tidings.objects.outbox.installation import (
    InstallationState,
    find_differences,
    install_triggers,
    remove_triggers,
)
from tidings.objects.outbox.postgresql_database import open_postgresql
from tidings.objects.propagation import Limits
from tidings.objects.readers.plantuml_reader import read_plantuml
from tidings.objects.triggers.dialect import SchemaObjectKind

MODEL = """
class Student <<subscriber>> {
  name
}
class Course {
  title
}
Student "*" -- "*" Course : attends <<implicit>> >
Course "*" -- "*" Course : needs <<propagates>> >
"""
MAPPED = read_plantuml(MODEL)
UPDATES_ONLY = read_plantuml(MODEL.replace("<<propagates>>", "<<propagates {kinds = update}>>"))
BY_HAND = {
    "sqlite": ["CREATE TRIGGER by_hand AFTER DELETE ON course BEGIN SELECT 1; END"],
    "postgresql": [
        "CREATE FUNCTION by_hand() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$",
        "CREATE TRIGGER by_hand AFTER DELETE ON course FOR EACH ROW EXECUTE FUNCTION by_hand()",
    ],
}


@pytest.fixture(params=["sqlite", "postgresql"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ObjectDatabase]:
    """A database with the tables of the model, and a trigger that does not belong to it."""
    if request.param == "sqlite":
        path = tmp_path / "a ?.db"
        sqlite3.connect(path).close()
        path.touch()
        opening = open_sqlite(f"sqlite:///{path}")
    else:
        server: Server = request.getfixturevalue("postgres_server")
        opening = open_postgresql(server.empty())
    with opening as opened:
        opened.run([*create_tables(MAPPED, "INTEGER"), *BY_HAND[request.param]])
        yield opened


def differing_triggers(site: ObjectDatabase, mapped: MappedModel, *states: InstallationState) -> set[str]:
    """Return the names of the triggers that differ."""
    differences = (each for each in find_differences(site, mapped) if each.what is SchemaObjectKind.TRIGGER)
    return {each.name for each in differences if not states or each.state in states}


def test_install_triggers_leaves_no_differences(site: ObjectDatabase) -> None:
    assert {each.state for each in find_differences(site, MAPPED)} == {InstallationState.MISSING}
    installed = install_triggers(site, MAPPED)
    assert {each.what for each in installed} >= {
        SchemaObjectKind.TABLE,
        SchemaObjectKind.INDEX,
        SchemaObjectKind.TRIGGER,
    }
    assert find_differences(site, MAPPED) == () and install_triggers(site, MAPPED) == ()
    site.run(["INSERT INTO course (id) VALUES (1)"])
    assert site.count("tidings_changes") == 1


def test_install_triggers_other_model_changes_only_differences(site: ObjectDatabase) -> None:
    """Watches and unread changes are kept."""
    install_triggers(site, MAPPED)
    site.run(
        [
            "INSERT INTO tidings_watches VALUES ('Student', 1, 'Course', NULL)",
            "INSERT INTO course (id) VALUES (1)",
        ]
    )
    links = {f"tidings_needs_{each}" for each in ("linked", "unlinked", "moved_to", "moved_from")}
    assert differing_triggers(site, UPDATES_ONLY, InstallationState.LEFT_OVER) == links
    different = [
        each.name
        for each in find_differences(site, UPDATES_ONLY)
        if each.state is InstallationState.DIFFERENT
    ]
    assert different == ["tidings_changes_told"]
    install_triggers(site, UPDATES_ONLY)
    assert find_differences(site, UPDATES_ONLY) == ()
    assert differing_triggers(site, MAPPED, InstallationState.MISSING) == links
    install_triggers(site, MAPPED)
    assert find_differences(site, MAPPED) == ()
    assert (site.count("tidings_watches"), site.count("tidings_hits")) == (1, 1)


def test_install_triggers_restores_dropped_trigger(site: ObjectDatabase) -> None:
    install_triggers(site, MAPPED)
    on = "" if site.dialect.name == "sqlite" else " ON course"
    site.run([f"DROP TRIGGER tidings_course_updated{on}"])
    assert differing_triggers(site, MAPPED) == {"tidings_course_updated"}
    install_triggers(site, MAPPED)
    assert differing_triggers(site, MAPPED) == set()


def test_remove_triggers_keeps_other_triggers(site: ObjectDatabase) -> None:
    install_triggers(site, MAPPED)
    site.run(["INSERT INTO tidings_watches VALUES ('Student', 1, 'Course', NULL)"])
    count = sum(each[0] is SchemaObjectKind.TRIGGER for each in site.installed_objects())
    assert remove_triggers(site) == (count, 1)
    assert site.installed_objects() == {} and site.tables(
        ["tidings_watches", "tidings_changes", "course"]
    ) == ["course"]
    assert remove_triggers(site) == (0, 0)
    on = "" if site.dialect.name == "sqlite" else " ON course"
    site.run([f"DROP TRIGGER by_hand{on}"])  # fails if it does not exist


def test_install_triggers_missing_column_is_rejected(site: ObjectDatabase) -> None:
    """SQLite would accept the trigger, and reject each update from then on."""
    site.run(["ALTER TABLE course DROP COLUMN title"])
    with pytest.raises(InputError, match=r"lacks 1 column of the model; received course\.title"):
        install_triggers(site, MAPPED)
    assert site.installed_objects() == {}


OLDER = read_plantuml(
    """
class Student <<subscriber>> {
  name
}
class Course {
  title
}
Student "*" -- "*" Course : attends <<implicit>> >
"""
)
"""The model of older_outbox.*.sql, generated before changes had authors and limits."""


def test_install_triggers_older_outbox_is_migrated_with_its_changes(database: Database) -> None:
    for sql in create_tables(OLDER, "INTEGER"):
        database.run(sql)
    database.run_all((Path(__file__).parent / f"older_outbox.{database.dialect.name}.sql").read_text())
    database.run("INSERT INTO tidings_watches VALUES ('Student', 1, 'Course', NULL)")
    database.run("INSERT INTO course VALUES (1, 'Logic')")
    site = database.site
    with pytest.raises(
        InputError, match="has an earlier version; `tidings model triggers MODEL --install URL`"
    ):
        site.changes(limit=1)
    missing = {
        (each.what, each.name)
        for each in find_differences(site, OLDER)
        if each.state is InstallationState.MISSING
    }
    assert missing >= {
        (SchemaObjectKind.COLUMN, "author_family"),
        (SchemaObjectKind.COLUMN, "author_key"),
        (SchemaObjectKind.TABLE, "tidings_cuts"),
    }
    install_triggers(site, OLDER)
    assert find_differences(site, OLDER) == ()
    database.run("UPDATE course SET title = 'Sets'")
    changes = site.changes(limit=10)
    assert [each.change.kind.value for each in changes] == ["insert", "update"]
    assert [{str(hit.subscriber) for hit in each.propagation.hits} for each in changes] == [{"Student:1"}] * 2


def test_find_differences_includes_limits(site: ObjectDatabase) -> None:
    install_triggers(site, MAPPED, Limits(steps=3))
    assert find_differences(site, MAPPED, Limits(steps=3)) == ()
    for other in (Limits(steps=4), Limits(steps=3, subscribers=1), Limits()):
        assert {each.name for each in find_differences(site, MAPPED, other)} == {"tidings_changes_told"}


def test_run_failing_statement_rolls_back_all(site: ObjectDatabase) -> None:
    with pytest.raises(Exception, match="nowhere"):
        site.run(["CREATE TABLE tidings_watches (a INTEGER)", "INSERT INTO nowhere VALUES (1)"])
    assert site.tables(["tidings_watches"]) == []


def test_open_unusable_address_is_rejected_without_password(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be opened"), open_sqlite(f"sqlite:///{tmp_path}/none.db"):
        pass
    assert list(tmp_path.iterdir()) == []
    with (
        pytest.raises(InputError, match="cannot be used") as error,
        open_postgresql("postgresql://ana:secret@127.0.0.1:1/none"),
    ):
        pass
    assert "secret" not in str(error.value)
