"""The event schema in the store: only ever extended, one extension after the other."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tidings.errors import SchemaError
from tidings.events.schema.event_schema import EventSchema
from tidings.events.schema.files import load_text, parts_of_text
from tidings.store.store import Store, open_store

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


def test_a_store_begins_with_an_empty_schema(store: Store) -> None:
    assert store.schemas.load() == EventSchema()
    assert store.schemas.version() == 0


def test_an_extension_is_there_for_everybody(store: Store, url: str) -> None:
    extended = store.schemas.extend(parts_of_text(FURNITURE))
    with open_store(url) as other:
        assert other.schemas.load() == extended.schema == load_text(FURNITURE)
        assert other.schemas.version() == 1


def test_saying_the_same_again_changes_nothing(store: Store) -> None:
    store.schemas.extend(parts_of_text(FURNITURE))
    assert store.schemas.extend(parts_of_text(FURNITURE)).changes == ()
    assert store.schemas.version() == 1


def test_what_is_no_extension_is_refused(store: Store) -> None:
    store.schemas.extend(parts_of_text(FURNITURE))
    with pytest.raises(SchemaError, match="attribute price exists"):
        store.schemas.extend(parts_of_text("attributes: {price: string, height: numeric}"))
    assert store.schemas.load() == load_text(FURNITURE)
    assert store.schemas.version() == 1


def test_extensions_at_the_same_time_come_one_after_the_other(store: Store) -> None:
    def extend(number: int) -> None:
        store.schemas.extend(parts_of_text(f"attributes: {{a{number}: numeric}}"))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(extend, range(24)))
    assert sorted(store.schemas.load().attributes) == sorted(f"a{number}" for number in range(24))
    assert store.schemas.version() == 24
