"""Looking around in what is stored, against what was registered, page by page."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from sqlalchemy import event

from tests.support.stores.cycle_providers import SCHEMA
from tidings.metadata.resources import Ref, Resource
from tidings.metadata.sql import rule_filter
from tidings.metadata.sql.metadata_reader import InstanceRow, ReferrerCursor, ReferrerRow
from tidings.store.store import Store

REFERENCES = ("serverInformation", "partners", "twin", "backup")


def register(store: Store, *resources: Resource) -> None:
    versions = {each.uri: each for each in resources}
    store.database.transact(lambda connection: rule_filter.run_filter(connection, SCHEMA, versions, []))


def provider(uri: str, cls: str = "CycleProvider", **refers: Iterable[str]) -> Resource:
    return Resource(uri, cls, {name: tuple(map(Ref, uris)) for name, uris in refers.items()})


def test_counts_and_instances_page_by_page(store: Store) -> None:
    uris = [f"doc.rdf#{i}" for i in range(7)]
    register(store, *(provider(uri, ("CycleProvider", "DataProvider")[i % 2]) for i, uri in enumerate(uris)))
    assert store.metadata_browsing.counts() == {"CycleProvider": 4, "DataProvider": 3}
    seen, after = list[str](), ""
    while page := store.metadata_browsing.instances(["DataProvider", "CycleProvider"], after, 2):
        seen += (each.uri for each in page)
        after = page[-1].uri
    assert seen == uris
    assert store.metadata_browsing.instances(["DataProvider"], uris[1], 1) == (
        InstanceRow(uris[3], "DataProvider"),
    )
    assert store.metadata_browsing.neighbours("doc.rdf", 2) == tuple(uris[:2])


def test_references_in_both_directions_page_by_page(store: Store) -> None:
    host = provider("doc.rdf#host", partners=["doc.rdf#a", "doc.rdf#none"])
    register(
        store,
        host,
        provider("doc.rdf#a", twin=["doc.rdf#host"], partners=["doc.rdf#host"]),
        provider("doc.rdf#b", "DataProvider", partners=["doc.rdf#host", "doc.rdf#a"]),
        Resource("doc.rdf#c", "CycleProvider", {"tags": ("doc.rdf#host",)}),  # the same text is no reference
    )
    expected = [
        ReferrerRow("partners", "doc.rdf#a", "CycleProvider", True),
        ReferrerRow("partners", "doc.rdf#b", "DataProvider", True),
        ReferrerRow("twin", "doc.rdf#a", "CycleProvider", True),
    ]
    for limit in (1, 2, 3, 4):
        found, mark = list[ReferrerRow](), ReferrerCursor()
        while seen := store.metadata_browsing.resource("doc.rdf#host", REFERENCES, mark, limit):
            assert seen.resource == host
            assert seen.classes == {"doc.rdf#a": "CycleProvider"}
            if not seen.referrers:
                break
            found += seen.referrers
            mark = ReferrerCursor(found[-1].property, found[-1].uri)
        assert found == expected
    assert store.metadata_browsing.resource("doc.rdf#none", REFERENCES, ReferrerCursor(), 9) is None
    assert [each.uri for each in store.metadata_browsing.referrers("doc.rdf#none", REFERENCES, 9)] == [
        host.uri
    ]


def test_long_uris_that_begin_alike(store: Store) -> None:
    """The index has the start of a value only."""
    long = "doc.rdf#" + "x" * 300
    register(
        store,
        provider(f"{long}1"),
        provider("doc.rdf#a", twin=[f"{long}1"]),
        provider("doc.rdf#b", twin=[f"{long}2"]),
    )
    found = store.metadata_browsing.referrers(f"{long}1", REFERENCES, 9)
    assert [each.uri for each in found] == ["doc.rdf#a"]


def test_referrers_are_found_through_the_index(store: Store) -> None:
    """Whatever else is stored is not walked through: with many resources that would take as long as they are many."""
    if not store.database.is_sqlite:
        pytest.skip("PostgreSQL decides by the sizes of tables, which are small here")
    register(store, provider("doc.rdf#host"), provider("doc.rdf#a", twin=["doc.rdf#host"]))
    said: list[tuple[str, object]] = []
    event.listen(
        store.database.engine,
        "before_cursor_execute",
        lambda _c, _k, words, given, *_: said.append((words, given)),
    )
    store.metadata_browsing.referrers("doc.rdf#host", ["twin"], 9)
    store.metadata_browsing.instances(["CycleProvider"], "", 9)
    asked = [(words, given) for words, given in said if words.startswith("SELECT")]
    with store.database.read() as connection:
        for words, given in asked:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {words}", given).all()
            steps = " ".join(str(row[-1]) for row in plan)
            assert "SEARCH" in steps and "TEMP B-TREE" not in steps, steps
    assert len(asked) == 2
