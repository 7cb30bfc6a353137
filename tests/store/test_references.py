"""Declarations of reference tables in the store: by name, each with a version."""

from __future__ import annotations

from dataclasses import replace

from tidings.reference_data.declarations import Reference
from tidings.store.store import Store, open_store

SECTORS = Reference("sectors", "/data/sectors.csv", "symbol", "/stock/symbol", ("sector", "größe"))
SHOPS = Reference("shops", "spark:sales.shops", "id", "shop")


def test_a_store_begins_without_tables(store: Store) -> None:
    assert store.references.load() == ()
    assert store.references.version() == 0


def test_declarations_are_there_for_everybody(store: Store, url: str) -> None:
    assert store.references.add(SHOPS) == replace(SHOPS, version=1)
    store.references.add(SECTORS)
    with open_store(url) as other:
        assert other.references.load() == (replace(SECTORS, version=2), replace(SHOPS, version=1))
        assert other.references.version() == 2


def test_a_name_that_is_taken_gets_the_new_table(store: Store) -> None:
    store.references.add(SECTORS)
    store.references.add(replace(SECTORS, key="isin"))
    assert store.references.load() == (replace(SECTORS, key="isin", version=2),)


def test_the_same_again_is_a_new_version(store: Store) -> None:
    """That is how somebody says that a table of Spark's has changed."""
    store.references.add(SHOPS)
    store.references.add(SHOPS)
    assert [one.version for one in store.references.load()] == [2]


def test_withdrawing(store: Store) -> None:
    store.references.add(SECTORS)
    assert store.references.remove("sectors")
    assert store.references.load() == ()
    assert store.references.version() == 2
    assert not store.references.remove("sectors")
    assert store.references.version() == 2
