"""Installing is a migration: what differs is told, exactly that is changed, and what others made stays."""

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
PLACED = read_plantuml(MODEL)
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
    """A database with the tables of the model, and a trigger that somebody made."""
    if request.param == "sqlite":
        path = tmp_path / "a ?.db"
        sqlite3.connect(path).close()
        path.touch()
        opening = open_sqlite(f"sqlite:///{path}")
    else:
        server: Server = request.getfixturevalue("postgres_server")
        opening = open_postgresql(server.empty())
    with opening as opened:
        opened.run([*create_tables(PLACED, "INTEGER"), *BY_HAND[request.param]])
        yield opened


def said(site: ObjectDatabase, placed: MappedModel, *states: InstallationState) -> set[str]:
    """Which triggers differ."""
    found = (each for each in find_differences(site, placed) if each.what is SchemaObjectKind.TRIGGER)
    return {each.name for each in found if not states or each.state in states}


def test_what_is_installed_differs_no_more(site: ObjectDatabase) -> None:
    assert {each.state for each in find_differences(site, PLACED)} == {InstallationState.MISSING}
    made = install_triggers(site, PLACED)
    assert {each.what for each in made} >= {
        SchemaObjectKind.TABLE,
        SchemaObjectKind.INDEX,
        SchemaObjectKind.TRIGGER,
    }
    assert find_differences(site, PLACED) == () and install_triggers(site, PLACED) == ()
    site.run(["INSERT INTO course (id) VALUES (1)"])
    assert site.count("tidings_changes") == 1


def test_another_model_changes_what_it_says_otherwise_and_back(site: ObjectDatabase) -> None:
    """Watches and what nobody has read yet stay."""
    install_triggers(site, PLACED)
    site.run(
        [
            "INSERT INTO tidings_watches VALUES ('Student', 1, 'Course', NULL)",
            "INSERT INTO course (id) VALUES (1)",
        ]
    )
    links = {f"tidings_needs_{each}" for each in ("linked", "unlinked", "moved_to", "moved_from")}
    assert said(site, UPDATES_ONLY, InstallationState.LEFT_OVER) == links
    told = [
        each.name
        for each in find_differences(site, UPDATES_ONLY)
        if each.state is InstallationState.DIFFERENT
    ]
    assert told == ["tidings_changes_told"]
    install_triggers(site, UPDATES_ONLY)
    assert find_differences(site, UPDATES_ONLY) == ()
    assert said(site, PLACED, InstallationState.MISSING) == links
    install_triggers(site, PLACED)
    assert find_differences(site, PLACED) == ()
    assert (site.count("tidings_watches"), site.count("tidings_hits")) == (1, 1)


def test_what_somebody_changed_is_put_right(site: ObjectDatabase) -> None:
    install_triggers(site, PLACED)
    on = "" if site.dialect.name == "sqlite" else " ON course"
    site.run([f"DROP TRIGGER tidings_course_updated{on}"])
    assert said(site, PLACED) == {"tidings_course_updated"}
    install_triggers(site, PLACED)
    assert said(site, PLACED) == set()


def test_of_what_is_removed_nothing_is_left_and_of_others_everything(site: ObjectDatabase) -> None:
    install_triggers(site, PLACED)
    site.run(["INSERT INTO tidings_watches VALUES ('Student', 1, 'Course', NULL)"])
    count = sum(each[0] is SchemaObjectKind.TRIGGER for each in site.found())
    assert remove_triggers(site) == (count, 1)
    assert site.found() == {} and site.tables(["tidings_watches", "tidings_changes", "course"]) == ["course"]
    assert remove_triggers(site) == (0, 0)
    on = "" if site.dialect.name == "sqlite" else " ON course"
    site.run([f"DROP TRIGGER by_hand{on}"])  # fails if it is not there


def test_nothing_is_installed_where_a_column_is_missing(site: ObjectDatabase) -> None:
    """SQLite would take the trigger, and refuse each update from then on."""
    site.run(["ALTER TABLE course DROP COLUMN title"])
    with pytest.raises(InputError, match=r"lacks 1 column of the model; received course\.title"):
        install_triggers(site, PLACED)
    assert site.found() == {}


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
"""What older_outbox.*.sql were generated from, before changes had authors and limits."""


def test_an_outbox_of_an_earlier_version_is_renewed_and_keeps_what_is_in_it(database: Database) -> None:
    for sql in create_tables(OLDER, "INTEGER"):
        database.run(sql)
    database.run_all((Path(__file__).parent / f"older_outbox.{database.dialect.name}.sql").read_text())
    database.run("INSERT INTO tidings_watches VALUES ('Student', 1, 'Course', NULL)")
    database.run("INSERT INTO course VALUES (1, 'Logic')")
    site = database.site
    with pytest.raises(
        InputError, match="of an earlier version; `tidings model triggers MODEL --install URL`"
    ):
        site.changes(most=1)
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
    found = site.changes(most=10)
    assert [each.change.kind.value for each in found] == ["insert", "update"]
    assert [{str(hit.subscriber) for hit in each.propagation.hits} for each in found] == [{"Student:1"}] * 2


def test_limits_are_part_of_what_is_installed(site: ObjectDatabase) -> None:
    install_triggers(site, PLACED, Limits(steps=3))
    assert find_differences(site, PLACED, Limits(steps=3)) == ()
    for other in (Limits(steps=4), Limits(steps=3, subscribers=1), Limits()):
        assert {each.name for each in find_differences(site, PLACED, other)} == {"tidings_changes_told"}


def test_all_or_nothing(site: ObjectDatabase) -> None:
    with pytest.raises(Exception, match="nowhere"):
        site.run(["CREATE TABLE tidings_watches (a INTEGER)", "INSERT INTO nowhere VALUES (1)"])
    assert site.tables(["tidings_watches"]) == []


def test_addresses_that_lead_nowhere(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be opened"), open_sqlite(f"sqlite:///{tmp_path}/none.db"):
        pass
    assert list(tmp_path.iterdir()) == []
    with (
        pytest.raises(InputError, match="cannot be used") as refused,
        open_postgresql("postgresql://ana:secret@127.0.0.1:1/none"),
    ):
        pass
    assert "secret" not in str(refused.value)
