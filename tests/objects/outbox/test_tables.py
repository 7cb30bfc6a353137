"""The outbox, read and emptied: a change comes with all that follows from it, in pieces of a bounded size."""

from __future__ import annotations

import pytest

from tests.objects.databases import Database
from tidings.errors import InputError
from tidings.objects.model.class_model import ChangeKind
from tidings.objects.outbox import tables
from tidings.objects.propagation import Change, Object, find_reasons


def test_a_change_comes_with_all_that_follows_from_it(university: Database) -> None:
    university.run("UPDATE learning_material SET title = 'Second edition' WHERE id = 2")
    [found] = university.site.changes(most=10)
    script = Object("LearningMaterial", "2")
    assert found.change == Change(ChangeKind.UPDATE, script, frozenset(("title",)))
    assert (found.cls, found.before, found.after) == (
        "LearningMaterial",
        {"title": "Script2"},
        {"title": "Second edition"},
    )
    assert found.at.endswith("Z") and found.id.startswith(found.at)
    because = find_reasons(script, found.propagation.steps, found.propagation.hits)
    assert [each.render() for each in because[Object("Student", "3")]] == [
        "LearningMaterial:2 -usedIn-> Course:2 <-attends- Student:3"
    ]


def test_a_link_says_with_what(university: Database) -> None:
    university.run("INSERT INTO used_in VALUES (1, 2)")
    [found] = university.site.changes(most=10)
    assert found.change == Change(ChangeKind.LINK, Object("Course", "2"))
    assert (found.association, found.other) == ("usedIn", Object("LearningMaterial", "1"))
    assert found.before is None and found.after is None


def test_oldest_first_and_again_until_they_are_forgotten(university: Database) -> None:
    site = university.site
    for room in ("B1", "B2", "B3"):
        university.run(f"UPDATE course SET room = '{room}' WHERE id = 1")
    two = site.changes(most=2)
    assert [each.after for each in two] == [{"room": "B1"}, {"room": "B2"}]
    assert site.changes(most=2) == two
    assert site.forget([two[0].id]) == 1
    assert [each.after for each in site.changes(most=2)] == [{"room": "B2"}, {"room": "B3"}]
    assert site.forget([two[0].id]) == 0 and site.forget([]) == 0


def test_what_is_held_at_once_is_bounded(university: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """But one change is always read, however much follows from it."""
    university.run("UPDATE course SET room = 'B1'")
    both = university.site.changes(most=10)
    rows = [len(each.propagation.reached | each.propagation.steps | each.propagation.hits) for each in both]
    assert len(rows) == 2
    for most, expected in ((sum(rows), both), (sum(rows) - 1, both[:1]), (1, both[:1])):
        monkeypatch.setattr(tables, "MAX_ROWS", most)
        assert university.site.changes(most=10) == expected


def test_changes_of_an_outbox_made_anew_have_other_ids(university: Database) -> None:
    """Its numbers begin anew. Whoever forgets an old change must not lose one of the same number."""
    university.run("UPDATE course SET room = 'B1' WHERE id = 1")
    [old] = university.site.changes(most=10)
    university.run("UPDATE tidings_changes SET at = '2001-02-03T04:05:06Z'")
    [new] = university.site.changes(most=10)
    assert new.id != old.id and new.propagation == old.propagation
    assert university.site.forget([old.id]) == 0 and university.site.changes(most=10) == [new]
    assert university.site.forget([new.id]) == 1 and university.site.changes(most=10) == []


def test_without_an_outbox_the_command_is_told_that_installs_one(database: Database) -> None:
    with pytest.raises(InputError, match="has no outbox; `tidings model triggers MODEL --install URL`"):
        database.site.changes(most=1)
