"""Contents of a repository, on both databases: cycles, sharing, local documents, origins."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import event

from tests.support.oracles.repository_contents import SCHEMA
from tests.support.strategies.metadata import schema_graph
from tidings.errors import InputError
from tidings.metadata.change_sets import ChangeSet, Cursor, Move, RepositoryState, compute_mark
from tidings.metadata.documents import Document
from tidings.metadata.resources import Ref, Resource
from tidings.metadata.sql.metadata_reader import SchemaFile
from tidings.metadata.sql.repository.change_application import ApplyCounts
from tidings.metadata.sql.repository.repository_store import LocalDocument, RepositoryCounts, ResourceOrigin
from tidings.store.store import Store

FILE = SchemaFile("text/turtle", schema_graph(SCHEMA).serialize(format="turtle").encode())
DOC = "http://example.org/doc.rdf"
A, B, C, D = (f"{DOC}#{name}" for name in "abcd")
LONG = f"{DOC}#{'long' * 100}"


def host(uri: str, *parts: str, size: int = 1, near: str | None = None) -> Resource:
    values = {"parts": tuple(map(Ref, sorted(parts))), "near": (Ref(near),) if near else (), "size": (size,)}
    return Resource(uri, "Host", {name: present for name, present in values.items() if present})


@pytest.fixture
def two_rules(store: Store) -> Store:
    """A repository with two rules and no resources."""
    store.repository.name("passau")
    state = RepositoryState("p", 1, 1, 0, {"one": (), "two": ()}, ())
    store.repository.replace(FILE, SCHEMA, {"one": "text", "two": "text"}, state, "")
    return store


def apply_moves(store: Store, moves: list[tuple[str, str, str]], *resources: Resource) -> ApplyCounts | None:
    since = store.repository.cursor()
    assert since is not None
    numbered = [
        Move(number, rule, uri, kind, f"t{number}")
        for number, (rule, uri, kind) in enumerate(moves, since.sequence + 1)
    ]
    change_set = ChangeSet(
        "p", since.position + 1, 1, since.sequence + len(moves), tuple(numbered), resources
    )
    counts = store.repository.apply(FILE, SCHEMA, change_set, since)
    assert store.repository.apply(FILE, SCHEMA, change_set, since) is None, "a change set is applied once"
    return counts


def stored_uris(store: Store) -> list[str]:
    return [each.uri for each in store.repository.resources()]


def test_apply_cycle_is_removed_with_its_last_member(two_rules: Store) -> None:
    resources = (host(A, B), host(B, C), host(C, B, LONG, near=D), host(LONG, C))
    assert apply_moves(two_rules, [("one", A, "entered")], *resources) == ApplyCounts(new=4)
    assert stored_uris(two_rules) == [A, B, C, LONG]
    assert apply_moves(two_rules, [("two", C, "entered")], *resources[1:]) == ApplyCounts()
    assert apply_moves(two_rules, [("one", A, "left")]) == ApplyCounts(gone=1)
    assert stored_uris(two_rules) == [B, C, LONG]
    assert two_rules.repository.explain_origins(SCHEMA, [B, C, D]) == {
        B: ResourceOrigin((), (C,), False),
        C: ResourceOrigin(("two",), (B, LONG), False),
    }
    assert apply_moves(two_rules, [("two", C, "left")]) == ApplyCounts(gone=3)
    assert two_rules.repository.counts() == RepositoryCounts(0, 0, 0)


def test_apply_resource_missing_at_provider_is_removed(two_rules: Store) -> None:
    apply_moves(two_rules, [("one", A, "entered"), ("two", B, "entered")], host(A, C), host(B, C), host(C))
    assert apply_moves(
        two_rules, [("one", A, "changed"), ("two", B, "changed")], host(A, C), host(B, C)
    ) == ApplyCounts(gone=1)
    assert stored_uris(two_rules) == [A, B]
    apply_moves(two_rules, [("one", A, "changed")], host(A, C, size=2), host(C, size=3))
    assert stored_uris(two_rules) == [A, B, C] and two_rules.repository.resource(C) == host(C, size=3)
    assert [each.uri for each in two_rules.repository.members("two")] == [B]


def test_apply_resource_of_other_class_is_not_kept(two_rules: Store) -> None:
    """It arrives for a rule that the repository has removed; parts must be hosts, and it is none."""
    apply_moves(two_rules, [("one", A, "entered")], host(A, B), host(B))
    moves = [("one", A, "changed"), ("gone", B, "entered")]
    assert apply_moves(two_rules, moves, host(A, B), Resource(B, "Disk", {})) == ApplyCounts(gone=1)
    assert stored_uris(two_rules) == [A]


def test_replace_state_changes_only_differences(two_rules: Store) -> None:
    apply_moves(two_rules, [("one", A, "entered"), ("two", B, "entered")], host(A, C), host(B), host(C))
    version = two_rules.repository.version()
    state = RepositoryState("q", 7, 1, 4, {"two": (B, D)}, (host(B, size=2), host(D), host(LONG)))
    counts = two_rules.repository.replace(FILE, SCHEMA, {"two": "text"}, state, "mark")
    assert (counts, stored_uris(two_rules)) == (ApplyCounts(new=1, changed=1, gone=2), [B, D])
    assert two_rules.repository.version() > version and two_rules.repository.rules() == {"two": "text"}
    assert two_rules.repository.cursor() == Cursor("q", 4, 7, "mark")
    assert two_rules.repository.member_counts() == {"two": 2}


def test_cursor_has_mark_of_last_move(two_rules: Store) -> None:
    apply_moves(two_rules, [("one", A, "entered")], host(A))
    mark = compute_mark(Move(1, "one", A, "entered", "t1"))
    assert two_rules.repository.cursor() == Cursor("p", 1, 2, mark)
    version = two_rules.repository.version()
    assert apply_moves(two_rules, []) == ApplyCounts()
    assert (
        two_rules.repository.cursor() == Cursor("p", 1, 3, mark) and two_rules.repository.version() == version
    )
    two_rules.repository.unsettle()
    cursor = two_rules.repository.cursor()
    assert cursor is not None and not cursor.is_settled and cursor.position == 3


def test_name_other_name_makes_other_repository(store: Store) -> None:
    generated = store.repository.name()
    assert store.repository.name() == generated != "" and store.repository.cursor() is None
    store.repository.replace(FILE, SCHEMA, {}, RepositoryState("p", 1, 1, 5, {}, ()), "mark")
    assert store.repository.name(generated) == generated and store.repository.cursor() == Cursor(
        "p", 5, 1, "mark"
    )
    assert store.repository.name("other") == "other"
    cursor = store.repository.cursor()
    assert cursor is not None and not cursor.is_settled
    with pytest.raises(InputError, match="name of a repository"):
        store.repository.name("a/b")


def test_register_local_document_shadows_that_of_provider(two_rules: Store) -> None:
    other = "http://example.org/other.rdf"
    x, y = f"{other}#x", f"{other}#y"
    apply_moves(two_rules, [("one", A, "entered")], host(A, x), host(x, B), host(B))
    two_rules.repository.register_local(SCHEMA, Document(other, (host(y, A),)), "text/turtle", b"")
    assert stored_uris(two_rules) == [A, y], "resources reached only from the provider's document are gone"
    assert two_rules.repository.local_documents() == (LocalDocument(other, 1, True),)
    apply_moves(two_rules, [("one", A, "changed")], host(A, x, size=2), host(x, B), host(B))
    assert stored_uris(two_rules) == [A, y]
    apply_moves(two_rules, [("one", A, "left")])
    assert stored_uris(two_rules) == [y] and two_rules.repository.counts() == RepositoryCounts(1, 1, 0)
    assert two_rules.repository.explain_origins(SCHEMA, [y]) == {y: ResourceOrigin((), (), True)}
    assert two_rules.repository.remove_local(other) and not two_rules.repository.remove_local(other)
    cursor = two_rules.repository.cursor()
    assert stored_uris(two_rules) == [] and cursor is not None and not cursor.is_settled


def test_apply_referrers_are_found_by_index(two_rules: Store) -> None:
    """Otherwise a change would cost as much as the whole cache."""
    if not two_rules.database.is_sqlite:
        pytest.skip("PostgreSQL always scans small tables")
    statements: list[tuple[str, Any]] = []
    event.listen(
        two_rules.database.engine,
        "before_cursor_execute",
        lambda *parameters: statements.append((parameters[2], parameters[3])),
    )
    apply_moves(two_rules, [("one", A, "entered")], host(A, B), host(B))
    apply_moves(two_rules, [("one", A, "left")])
    [(statement, parameters)] = {
        text: params for text, params in statements if "substr" in text and text.startswith("SELECT")
    }.items()
    with two_rules.database.read() as connection:
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
    assert any(row.detail.startswith("SEARCH") and "metadata_atoms_strong" in row.detail for row in plan)
