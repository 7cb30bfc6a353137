"""Event schema, declarations of reference tables, and taxonomies in the store."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from tidings.errors import SchemaError
from tidings.events.schema.event_schema import EventSchema
from tidings.events.schema.files import load_text, parts_of_text
from tidings.reference_data.declarations import Reference
from tidings.store.reference_data import TaxonomyFile
from tidings.store.store import Store, open_store

SECTORS = Reference("sectors", "/data/sectors.csv", "symbol", "/stock/symbol", ("sector", "größe"))
SHOPS = Reference("shops", "spark:sales.shops", "id", "shop")


def test_references_new_store_has_none(store: Store) -> None:
    assert store.references.load() == ()
    assert store.references.version() == 0


def test_references_added_are_visible_to_other_connections(store: Store, url: str) -> None:
    assert store.references.add(SHOPS) == replace(SHOPS, version=1)
    store.references.add(SECTORS)
    with open_store(url) as other:
        assert other.references.load() == (replace(SECTORS, version=2), replace(SHOPS, version=1))
        assert other.references.version() == 2


def test_references_add_existing_name_replaces_declaration(store: Store) -> None:
    store.references.add(SECTORS)
    store.references.add(replace(SECTORS, key="isin"))
    assert store.references.load() == (replace(SECTORS, key="isin", version=2),)


def test_references_add_same_declaration_increments_version(store: Store) -> None:
    """This is how an operator reports that a table of Spark has changed."""
    store.references.add(SHOPS)
    store.references.add(SHOPS)
    assert [one.version for one in store.references.load()] == [2]


def test_references_remove_deletes_declaration_once(store: Store) -> None:
    store.references.add(SECTORS)
    assert store.references.remove("sectors")
    assert store.references.load() == ()
    assert store.references.version() == 2
    assert not store.references.remove("sectors")
    assert store.references.version() == 2


FURNITURE = """
domains:
  furniture_category: {concepts: {table: [dining room], chair: [dining room], dining room: []}}
attributes:
  price: numeric
  furniture_category: furniture_category
event_types:
  furniture:
    attributes:
      price: optional
      furniture_category: mandatory
"""


def test_schemas_new_store_has_empty_schema(store: Store) -> None:
    assert store.schemas.load() == EventSchema()
    assert store.schemas.version() == 0


def test_schemas_extension_is_visible_to_other_connections(store: Store, url: str) -> None:
    extended = store.schemas.extend(parts_of_text(FURNITURE))
    with open_store(url) as other:
        assert other.schemas.load() == extended.schema == load_text(FURNITURE)
        assert other.schemas.version() == 1


def test_schemas_repeated_extension_changes_nothing(store: Store) -> None:
    store.schemas.extend(parts_of_text(FURNITURE))
    assert store.schemas.extend(parts_of_text(FURNITURE)).changes == ()
    assert store.schemas.version() == 1


def test_schemas_conflicting_extension_is_rejected(store: Store) -> None:
    store.schemas.extend(parts_of_text(FURNITURE))
    with pytest.raises(SchemaError, match="attribute price exists"):
        store.schemas.extend(parts_of_text("attributes: {price: string, height: numeric}"))
    assert store.schemas.load() == load_text(FURNITURE)
    assert store.schemas.version() == 1


def test_schemas_concurrent_extensions_are_serialized(store: Store) -> None:
    def extend(number: int) -> None:
        store.schemas.extend(parts_of_text(f"attributes: {{a{number}: numeric}}"))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(extend, range(24)))
    assert sorted(store.schemas.load().attributes) == sorted(f"a{number}" for number in range(24))
    assert store.schemas.version() == 24


ACADEMIA = TaxonomyFile("academia", "text/turtle", b"<urn:lab> a <urn:x> . # \xc3\xa4")
TRADE = TaxonomyFile("trade", "application/n-triples", b"")


def accept_all(files: Sequence[TaxonomyFile]) -> None:
    """Accept any files."""


def test_taxonomies_new_store_has_none(store: Store) -> None:
    assert store.taxonomies.load() == ()
    assert store.taxonomies.version() == 0


def test_taxonomies_added_are_visible_to_other_connections(store: Store, url: str) -> None:
    store.taxonomies.add(TRADE, accept_all)
    assert store.taxonomies.add(ACADEMIA, accept_all) == replace(ACADEMIA, version=2)
    with open_store(url) as other:
        assert other.taxonomies.load() == (replace(ACADEMIA, version=2), replace(TRADE, version=1))


def test_taxonomies_add_existing_name_replaces_file(store: Store) -> None:
    store.taxonomies.add(ACADEMIA, accept_all)
    seen: list[list[str]] = []
    store.taxonomies.add(replace(ACADEMIA, body=b""), lambda files: seen.append([f.name for f in files]))
    assert seen == [["academia"]]
    assert store.taxonomies.load() == (replace(ACADEMIA, body=b"", version=2),)


def test_taxonomies_failed_check_changes_nothing(store: Store) -> None:
    store.taxonomies.add(ACADEMIA, accept_all)

    def reject(files: Sequence[TaxonomyFile]) -> None:
        raise SchemaError("a circle", received=str(len(files)))

    with pytest.raises(SchemaError, match="a circle"):
        store.taxonomies.add(TRADE, reject)
    assert store.taxonomies.version() == 1 and len(store.taxonomies.load()) == 1


def test_taxonomies_remove_deletes_file_once(store: Store) -> None:
    store.taxonomies.add(ACADEMIA, accept_all)
    assert store.taxonomies.remove("academia") and not store.taxonomies.remove("academia")
    assert store.taxonomies.load() == () and store.taxonomies.version() == 2
