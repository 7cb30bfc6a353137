"""What a repository keeps, on both databases: circles, what is shared, local documents, and why something is there."""

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
    return Resource(uri, "Host", {name: found for name, found in values.items() if found})


@pytest.fixture
def begun(store: Store) -> Store:
    """Two rules, without anything."""
    store.repository.name("passau")
    state = RepositoryState("p", 1, 1, 0, {"one": (), "two": ()}, ())
    store.repository.replace(FILE, SCHEMA, {"one": "text", "two": "text"}, state, "")
    return store


def tell(store: Store, moves: list[tuple[str, str, str]], *resources: Resource) -> ApplyCounts | None:
    since = store.repository.cursor()
    assert since is not None
    numbered = [
        Move(number, rule, uri, kind, f"t{number}")
        for number, (rule, uri, kind) in enumerate(moves, since.sequence + 1)
    ]
    told = ChangeSet("p", since.position + 1, 1, since.sequence + len(moves), tuple(numbered), resources)
    done = store.repository.apply(FILE, SCHEMA, told, since)
    assert store.repository.apply(FILE, SCHEMA, told, since) is None, "it is applied once"
    return done


def held(store: Store) -> list[str]:
    return [each.uri for each in store.repository.resources()]


def test_a_circle_goes_with_what_held_it(begun: Store) -> None:
    made = (host(A, B), host(B, C), host(C, B, LONG, near=D), host(LONG, C))
    assert tell(begun, [("one", A, "entered")], *made) == ApplyCounts(new=4)
    assert held(begun) == [A, B, C, LONG]
    assert tell(begun, [("two", C, "entered")], *made[1:]) == ApplyCounts()
    assert tell(begun, [("one", A, "left")]) == ApplyCounts(gone=1)
    assert held(begun) == [B, C, LONG]
    assert begun.repository.why(SCHEMA, [B, C, D]) == {
        B: ResourceOrigin((), (C,), False),
        C: ResourceOrigin(("two",), (B, LONG), False),
    }
    assert tell(begun, [("two", C, "left")]) == ApplyCounts(gone=3)
    assert begun.repository.counts() == RepositoryCounts(0, 0, 0)


def test_what_the_provider_does_not_have_any_more_goes(begun: Store) -> None:
    tell(begun, [("one", A, "entered"), ("two", B, "entered")], host(A, C), host(B, C), host(C))
    assert tell(begun, [("one", A, "changed"), ("two", B, "changed")], host(A, C), host(B, C)) == ApplyCounts(
        gone=1
    )
    assert held(begun) == [A, B]
    tell(begun, [("one", A, "changed")], host(A, C, size=2), host(C, size=3))
    assert held(begun) == [A, B, C] and begun.repository.resource(C) == host(C, size=3)
    assert [each.uri for each in begun.repository.members("two")] == [B]


def test_what_is_of_another_class_now_is_held_by_nobody(begun: Store) -> None:
    """It is told because of a rule that this repository has no more; parts are hosts, and this is none."""
    tell(begun, [("one", A, "entered")], host(A, B), host(B))
    moves = [("one", A, "changed"), ("gone", B, "entered")]
    assert tell(begun, moves, host(A, B), Resource(B, "Disk", {})) == ApplyCounts(gone=1)
    assert held(begun) == [A]


def test_a_state_changes_what_is_different(begun: Store) -> None:
    tell(begun, [("one", A, "entered"), ("two", B, "entered")], host(A, C), host(B), host(C))
    version = begun.repository.version()
    state = RepositoryState("q", 7, 1, 4, {"two": (B, D)}, (host(B, size=2), host(D), host(LONG)))
    done = begun.repository.replace(FILE, SCHEMA, {"two": "text"}, state, "mark")
    assert (done, held(begun)) == (ApplyCounts(new=1, changed=1, gone=2), [B, D])
    assert begun.repository.version() > version and begun.repository.rules() == {"two": "text"}
    assert begun.repository.cursor() == Cursor("q", 4, 7, "mark")
    assert begun.repository.member_counts() == {"two": 2}


def test_the_cursor_remembers_the_last_move(begun: Store) -> None:
    tell(begun, [("one", A, "entered")], host(A))
    mark = compute_mark(Move(1, "one", A, "entered", "t1"))
    assert begun.repository.cursor() == Cursor("p", 1, 2, mark)
    version = begun.repository.version()
    assert tell(begun, []) == ApplyCounts()
    assert begun.repository.cursor() == Cursor("p", 1, 3, mark) and begun.repository.version() == version
    begun.repository.unsettle()
    found = begun.repository.cursor()
    assert found is not None and not found.is_settled and found.position == 3


def test_a_name_stays_and_another_one_is_another_repository(store: Store) -> None:
    made = store.repository.name()
    assert store.repository.name() == made != "" and store.repository.cursor() is None
    store.repository.replace(FILE, SCHEMA, {}, RepositoryState("p", 1, 1, 5, {}, ()), "mark")
    assert store.repository.name(made) == made and store.repository.cursor() == Cursor("p", 5, 1, "mark")
    assert store.repository.name("other") == "other"
    found = store.repository.cursor()
    assert found is not None and not found.is_settled
    with pytest.raises(InputError, match="name of a repository"):
        store.repository.name("a/b")


def test_a_local_document_is_in_the_way_of_the_providers(begun: Store) -> None:
    other = "http://example.org/other.rdf"
    x, y = f"{other}#x", f"{other}#y"
    tell(begun, [("one", A, "entered")], host(A, x), host(x, B), host(B))
    begun.repository.register_local(SCHEMA, Document(other, (host(y, A),)), "text/turtle", b"")
    assert held(begun) == [A, y], "what only the provider's held is gone"
    assert begun.repository.local_documents() == (LocalDocument(other, 1, True),)
    tell(begun, [("one", A, "changed")], host(A, x, size=2), host(x, B), host(B))
    assert held(begun) == [A, y]
    tell(begun, [("one", A, "left")])
    assert held(begun) == [y] and begun.repository.counts() == RepositoryCounts(1, 1, 0)
    assert begun.repository.why(SCHEMA, [y]) == {y: ResourceOrigin((), (), True)}
    assert begun.repository.remove_local(other) and not begun.repository.remove_local(other)
    found = begun.repository.cursor()
    assert held(begun) == [] and found is not None and not found.is_settled


def test_who_refers_to_something_is_found_by_an_index(begun: Store) -> None:
    """A change would cost what the whole cache does otherwise."""
    if not begun.database.is_sqlite:
        pytest.skip("PostgreSQL reads small tables whole, whatever there is")
    asked: list[tuple[str, Any]] = []
    event.listen(
        begun.database.engine, "before_cursor_execute", lambda *given: asked.append((given[2], given[3]))
    )
    tell(begun, [("one", A, "entered")], host(A, B), host(B))
    tell(begun, [("one", A, "left")])
    [(statement, given)] = {
        text: params for text, params in asked if "substr" in text and text.startswith("SELECT")
    }.items()
    with begun.database.read() as connection:
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", given).all()
    assert any(row.detail.startswith("SEARCH") and "metadata_atoms_strong" in row.detail for row in plan)
