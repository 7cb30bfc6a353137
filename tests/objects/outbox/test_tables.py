"""Reading and deleting the outbox: changes come with all effects, in parts of limited size."""

from __future__ import annotations

import pytest

from tests.objects.databases import Database
from tidings.errors import InputError
from tidings.objects.model.class_model import ChangeKind
from tidings.objects.outbox import tables
from tidings.objects.propagation import Change, Object, find_reasons


def test_changes_include_all_effects(university: Database) -> None:
    university.run("UPDATE learning_material SET title = 'Second edition' WHERE id = 2")
    [change] = university.site.changes(limit=10)
    script = Object("LearningMaterial", "2")
    assert change.change == Change(ChangeKind.UPDATE, script, frozenset(("title",)))
    assert (change.cls, change.before, change.after) == (
        "LearningMaterial",
        {"title": "Script2"},
        {"title": "Second edition"},
    )
    assert change.at.endswith("Z") and change.id.startswith(change.at)
    reasons = find_reasons(script, change.propagation.steps, change.propagation.hits)
    assert [each.render() for each in reasons[Object("Student", "3")]] == [
        "LearningMaterial:2 -usedIn-> Course:2 <-attends- Student:3"
    ]


def test_changes_link_names_other_object(university: Database) -> None:
    university.run("INSERT INTO used_in VALUES (1, 2)")
    [change] = university.site.changes(limit=10)
    assert change.change == Change(ChangeKind.LINK, Object("Course", "2"))
    assert (change.association, change.other) == ("usedIn", Object("LearningMaterial", "1"))
    assert change.before is None and change.after is None


def test_changes_are_oldest_first_until_deleted(university: Database) -> None:
    site = university.site
    for room in ("B1", "B2", "B3"):
        university.run(f"UPDATE course SET room = '{room}' WHERE id = 1")
    oldest = site.changes(limit=2)
    assert [each.after for each in oldest] == [{"room": "B1"}, {"room": "B2"}]
    assert site.changes(limit=2) == oldest
    assert site.delete_changes([oldest[0].id]) == 1
    assert [each.after for each in site.changes(limit=2)] == [{"room": "B2"}, {"room": "B3"}]
    assert site.delete_changes([oldest[0].id]) == 0 and site.delete_changes([]) == 0


def test_changes_are_limited_in_rows(university: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """One change is always read, however many effects it has."""
    university.run("UPDATE course SET room = 'B1'")
    both = university.site.changes(limit=10)
    rows = [len(each.propagation.reached | each.propagation.steps | each.propagation.hits) for each in both]
    assert len(rows) == 2
    for most, expected in ((sum(rows), both), (sum(rows) - 1, both[:1]), (1, both[:1])):
        monkeypatch.setattr(tables, "MAX_ROWS", most)
        assert university.site.changes(limit=10) == expected


def test_changes_of_recreated_outbox_have_new_ids(university: Database) -> None:
    """Its numbers start again, so deleting an old change must not delete one with the same number."""
    university.run("UPDATE course SET room = 'B1' WHERE id = 1")
    [old] = university.site.changes(limit=10)
    university.run("UPDATE tidings_changes SET at = '2001-02-03T04:05:06Z'")
    [new] = university.site.changes(limit=10)
    assert new.id != old.id and new.propagation == old.propagation
    assert university.site.delete_changes([old.id]) == 0 and university.site.changes(limit=10) == [new]
    assert university.site.delete_changes([new.id]) == 1 and university.site.changes(limit=10) == []


def test_changes_without_outbox_error_names_command(database: Database) -> None:
    with pytest.raises(InputError, match="has no outbox; `tidings model triggers MODEL --install URL`"):
        database.site.changes(limit=1)
