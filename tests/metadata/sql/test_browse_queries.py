"""Browsing of stored resources, compared with what was registered, page by page."""

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


def test_counts_and_instances_are_paged(store: Store) -> None:
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


def test_references_and_referrers_are_paged(store: Store) -> None:
    host = provider("doc.rdf#host", partners=["doc.rdf#a", "doc.rdf#none"])
    register(
        store,
        host,
        provider("doc.rdf#a", twin=["doc.rdf#host"], partners=["doc.rdf#host"]),
        provider("doc.rdf#b", "DataProvider", partners=["doc.rdf#host", "doc.rdf#a"]),
        Resource("doc.rdf#c", "CycleProvider", {"tags": ("doc.rdf#host",)}),  # equal text is no reference
    )
    expected = [
        ReferrerRow("partners", "doc.rdf#a", "CycleProvider", True),
        ReferrerRow("partners", "doc.rdf#b", "DataProvider", True),
        ReferrerRow("twin", "doc.rdf#a", "CycleProvider", True),
    ]
    for limit in (1, 2, 3, 4):
        referrers, cursor = list[ReferrerRow](), ReferrerCursor()
        while seen := store.metadata_browsing.resource("doc.rdf#host", REFERENCES, cursor, limit):
            assert seen.resource == host
            assert seen.classes == {"doc.rdf#a": "CycleProvider"}
            if not seen.referrers:
                break
            referrers += seen.referrers
            cursor = ReferrerCursor(referrers[-1].property, referrers[-1].uri)
        assert referrers == expected
    assert store.metadata_browsing.resource("doc.rdf#none", REFERENCES, ReferrerCursor(), 9) is None
    assert [each.uri for each in store.metadata_browsing.referrers("doc.rdf#none", REFERENCES, 9)] == [
        host.uri
    ]


def test_referrers_long_uris_with_equal_prefix_are_distinguished(store: Store) -> None:
    """The index has only the first characters of a value."""
    long = "doc.rdf#" + "x" * 300
    register(
        store,
        provider(f"{long}1"),
        provider("doc.rdf#a", twin=[f"{long}1"]),
        provider("doc.rdf#b", twin=[f"{long}2"]),
    )
    referrers = store.metadata_browsing.referrers(f"{long}1", REFERENCES, 9)
    assert [each.uri for each in referrers] == ["doc.rdf#a"]


def test_referrers_query_uses_index(store: Store) -> None:
    """A scan would take time proportional to all stored resources."""
    if not store.database.is_sqlite:
        pytest.skip("PostgreSQL decides by the sizes of tables, which are small here")
    register(store, provider("doc.rdf#host"), provider("doc.rdf#a", twin=["doc.rdf#host"]))
    statements: list[tuple[str, object]] = []
    event.listen(
        store.database.engine,
        "before_cursor_execute",
        lambda _c, _k, statement, parameters, *_: statements.append((statement, parameters)),
    )
    store.metadata_browsing.referrers("doc.rdf#host", ["twin"], 9)
    store.metadata_browsing.instances(["CycleProvider"], "", 9)
    selects = [
        (statement, parameters) for statement, parameters in statements if statement.startswith("SELECT")
    ]
    with store.database.read() as connection:
        for statement, parameters in selects:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
            steps = " ".join(str(row[-1]) for row in plan)
            assert "SEARCH" in steps and "TEMP B-TREE" not in steps, steps
    assert len(selects) == 2
