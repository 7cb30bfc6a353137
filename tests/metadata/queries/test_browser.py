"""Browsing the metadata of a provider, and suggesting rules for selected resources."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.stores.browsable_metadata import DATA, DOC, HOST, INFO, OTHER, PREFIXES, TURTLE, fill
from tests.support.strategies.effort import share
from tests.support.strategies.metadata import document_graph, histories, schema_graph, schemas, state
from tidings.errors import InputError, NotFound, SetupError
from tidings.metadata.provider.provider import DocumentSource, Provider
from tidings.metadata.queries.browser import Browser, Link, class_tree, suggest_rule, suggest_rule_name
from tidings.metadata.resources import Ref
from tidings.metadata.rules.rule_parser import parse_rule
from tidings.metadata.rules.validation import check_rule
from tidings.metadata.schema.model import Reference
from tidings.store.database import sqlite_url
from tidings.store.store import Store, open_store

STRONG, WEAK = Reference.STRONG, Reference.WEAK
BOTH = f"{OTHER}#both"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(sqlite_url(tmp_path / "s.db")) as opened:
        fill(Provider(opened))
        yield opened


@pytest.fixture
def browser(store: Store) -> Browser:
    return Browser(store)


def test_class_tree_shows_hierarchy_with_counts(browser: Browser) -> None:
    """A class appears below each of its parents; instances of both count once in common ancestors."""
    assert [(depth, cls.name, cls.own, cls.all) for depth, cls in class_tree(browser.classes())] == [
        (0, "Thing", 0, 3),
        (1, "Provider", 0, 3),
        (2, "CycleProvider", 1, 2),
        (3, "Both", 1, 1),
        (2, "DataProvider", 1, 2),
        (3, "Both", 1, 1),
        (0, "Information", 1, 1),
    ]


def test_instances_are_paged(browser: Browser) -> None:
    first = browser.instances("Provider", limit=2)
    assert [(each.uri, each.cls) for each in first.instances] == [(HOST, "CycleProvider"), (BOTH, "Both")]
    assert (first.of.own, first.of.all, first.more) == (0, 3, BOTH)
    last = browser.instances("Provider", first.more, 2)
    assert ([each.uri for each in last.instances], last.more) == ([DATA], None)


def test_resource_shows_references_and_referrers(browser: Browser) -> None:
    seen = browser.resource(HOST)
    assert (seen.resource.uri, seen.document, seen.more) == (HOST, DOC, None)
    assert seen.references == (
        Link("information", INFO, "Information", STRONG, True),
        Link("partners", f"{DOC}#none", None, WEAK, False),
        Link("partners", DATA, "DataProvider", WEAK, True),
    )
    assert seen.referrers == (
        Link("partners", BOTH, "Both", WEAK, True),
        Link("partners", DATA, "DataProvider", WEAK, True),
    )


def test_resource_reference_to_wrong_class_is_not_followed(browser: Browser) -> None:
    assert Link("partners", INFO, "Information", WEAK, False) in browser.resource(DATA).references
    first = browser.resource(INFO, limit=1)
    assert first.referrers == (Link("information", HOST, "CycleProvider", STRONG, True),)
    assert first.more is not None
    second = browser.resource(INFO, first.more, 1)
    assert (second.referrers, second.more) == ((Link("partners", DATA, "DataProvider", WEAK, False),), None)


@pytest.mark.parametrize("what", [HOST, INFO, "Provider", "CycleProvider", "Information"])
def test_pick_suggested_rule_matches_exactly_selection(store: Store, what: str) -> None:
    browser, provider = Browser(store), Provider(store)
    picked = browser.pick(what)
    entered = {uri for _, uri in provider.add_rules({picked.name: picked.text}, "ana")}
    cls = what in provider.schema.classes
    assert entered == ({each.uri for each in browser.instances(what).instances} if cls else {what})


def test_suggest_rule_name_is_short_and_printable() -> None:
    assert suggest_rule_name("CycleProvider") == "all-CycleProvider"
    assert suggest_rule_name("CycleProvider", HOST) == "doc.ttl-host"
    assert suggest_rule_name("servers:Disk") == "all-servers-Disk"
    assert (
        suggest_rule_name("X", "urn:x") == "urn-x"
        and suggest_rule_name("X", "http://example.org/") == "example.org"
    )
    assert (
        suggest_rule_name("X", "http://example.org/#///") == "example.org"
        and suggest_rule_name("X", "#") == "picked"
    )
    assert len(suggest_rule_name("X", "http://example.org/" + "x" * 400)) == 80


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("Provder", "did you mean 'Provider'?"),
        ("provider", "did you mean 'Provider'?"),
        ("Elephant", "accepted: Thing, Provider, CycleProvider, DataProvider, Both, Information"),
        (f"{DOC}#hots", f"did you mean '{HOST}'?"),
        (f"{DOC}#none", f"{HOST} refers to it (partners)"),
        ("http://example.org/nobody", "there is no such resource"),
        ("doc.ttl#host", "there is no such resource"),
    ],
)
def test_lookup_unknown_name_is_rejected_with_hint(browser: Browser, what: str, message: str) -> None:
    for look in (browser.pick, browser.instances if browser.is_class(what) else browser.resource):
        with pytest.raises(NotFound) as error:
            look(what)
        assert message in str(error.value)


@pytest.mark.parametrize("limit", [0, 1_001])
def test_paging_invalid_size_or_cursor_is_rejected(browser: Browser, limit: int) -> None:
    for look in (
        lambda: browser.instances("Thing", limit=limit),
        lambda: browser.resource(HOST, limit=limit),
    ):
        with pytest.raises(InputError, match="invalid page size"):
            look()
    with pytest.raises(InputError, match="not a cursor of a page"):
        browser.resource(HOST, "partners")


def test_classes_without_schema_is_rejected(tmp_path: Path) -> None:
    with open_store(sqlite_url(tmp_path / "s.db")) as empty, pytest.raises(SetupError):
        Browser(empty).classes()


def test_class_tree_nested_diamonds_stay_linear(tmp_path: Path) -> None:
    steps = ":A0 a rdfs:Class .\n" + "".join(
        f":L{i} a rdfs:Class ; rdfs:subClassOf :A{i - 1} . :R{i} a rdfs:Class ; rdfs:subClassOf :A{i - 1} .\n"
        f":A{i} a rdfs:Class ; rdfs:subClassOf :L{i}, :R{i} .\n"
        for i in range(1, 41)
    )
    with open_store(sqlite_url(tmp_path / "s.db")) as opened:
        Provider(opened).load_schema((PREFIXES + steps).encode(), TURTLE)
        assert sum(1 for _ in class_tree(Browser(opened).classes())) == 1 + 40 * 4


@share(5)
@given(st.data())
def test_browser_shows_any_metadata_consistently(data: st.DataObject) -> None:
    """Each reference is seen from both ends, and each resource has a valid suggested rule."""
    schema = data.draw(schemas())
    resources_by_uri = state(data.draw(histories(schema)))
    with tempfile.TemporaryDirectory() as folder, open_store(sqlite_url(Path(folder) / "s.db")) as store:
        provider = Provider(store)
        provider.load_schema(schema_graph(schema).serialize(format="turtle").encode(), TURTLE)
        by_document: dict[str, list] = {}
        for uri, resource in resources_by_uri.items():
            by_document.setdefault(uri.partition("#")[0], []).append(resource)
        provider.register_many(
            DocumentSource(
                uri, document_graph(tuple(resources), schema).serialize(format="turtle").encode(), TURTLE
            )
            for uri, resources in by_document.items()
        )
        browser = Browser(store)
        assert sum(cls.own for cls in browser.classes()) == len(resources_by_uri)
        outgoing, incoming = set(), set()
        for uri, resource in resources_by_uri.items():
            seen = browser.resource(uri, limit=1_000)
            assert seen.resource.cls == resource.cls
            outgoing |= {(uri, each.property, each.uri, each.leads) for each in seen.references}
            incoming |= {(each.uri, each.property, uri, each.leads) for each in seen.referrers}
            assert check_rule(parse_rule(suggest_rule(resource.cls, uri)), schema, {}) == resource.cls
        references = {
            (uri, name, value.uri)
            for uri, resource in resources_by_uri.items()
            for name, values in resource.values.items()
            for value in values
            if isinstance(value, Ref)
        }
        assert {each[:3] for each in outgoing} == references
        assert {each for each in outgoing if each[2] in resources_by_uri} == incoming
