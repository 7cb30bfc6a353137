"""Taxonomies in the store: by name, checked together before one is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tidings.errors import SchemaError
from tidings.store.reference_data import TaxonomyFile
from tidings.store.store import Store, open_store

ACADEMIA = TaxonomyFile("academia", "text/turtle", b"<urn:lab> a <urn:x> . # \xc3\xa4")
TRADE = TaxonomyFile("trade", "application/n-triples", b"")


def anything(files: Sequence[TaxonomyFile]) -> None:
    """Refuses nothing."""


def test_a_store_begins_without_taxonomies(store: Store) -> None:
    assert store.taxonomies.load() == ()
    assert store.taxonomies.version() == 0


def test_files_are_there_for_everybody(store: Store, url: str) -> None:
    store.taxonomies.add(TRADE, anything)
    assert store.taxonomies.add(ACADEMIA, anything) == replace(ACADEMIA, version=2)
    with open_store(url) as other:
        assert other.taxonomies.load() == (replace(ACADEMIA, version=2), replace(TRADE, version=1))


def test_a_name_that_is_taken_gets_the_new_file(store: Store) -> None:
    store.taxonomies.add(ACADEMIA, anything)
    seen: list[list[str]] = []
    store.taxonomies.add(replace(ACADEMIA, body=b""), lambda files: seen.append([f.name for f in files]))
    assert seen == [["academia"]]
    assert store.taxonomies.load() == (replace(ACADEMIA, body=b"", version=2),)


def test_what_is_refused_changes_nothing(store: Store) -> None:
    store.taxonomies.add(ACADEMIA, anything)

    def refuse(files: Sequence[TaxonomyFile]) -> None:
        raise SchemaError("a circle", received=str(len(files)))

    with pytest.raises(SchemaError, match="a circle"):
        store.taxonomies.add(TRADE, refuse)
    assert store.taxonomies.version() == 1 and len(store.taxonomies.load()) == 1


def test_removing(store: Store) -> None:
    store.taxonomies.add(ACADEMIA, anything)
    assert store.taxonomies.remove("academia") and not store.taxonomies.remove("academia")
    assert store.taxonomies.load() == () and store.taxonomies.version() == 2
