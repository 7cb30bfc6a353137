"""The trigger index of a running stream follows the store through changes and restarts."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.support.stores.server_documents import RDF_XML, SCHEMA, body
from tidings.metadata.filter.trigger_index import TriggerIndex
from tidings.metadata.provider.provider import Provider
from tidings.metadata.spark.metadata_stream import LiveTriggerIndex
from tidings.store.database import sqlite_url
from tidings.store.store import open_store

INFO = "http://example.org/doc.rdf#info"


@pytest.fixture
def store(tmp_path):
    with open_store(sqlite_url(tmp_path / "store.db")) as opened:
        provider = Provider(opened)
        provider.load_schema(SCHEMA.body, SCHEMA.media_type)
        provider.register("http://example.org/doc.rdf", body("host.rdf"), RDF_XML)
        yield opened


def add(store, *limits):
    texts = {f"r{n}": f"search ServerInformation s register s where s.memory > {n}" for n in limits}
    Provider(store).add_rules(texts, "ana")


def count_satisfied(live, store):
    """Count the rules that the server information of the document satisfies: its memory is 92."""
    triggers = TriggerIndex(Provider(store).schema, live.index)
    return len(list(triggers.find_satisfied(store.metadata.resources("http://example.org/doc.rdf"))))


def refresh(live, store, removed=()):
    live.refresh(Provider(store).schema, removed)
    live.tidy()
    return live


def test_refresh_follows_store_and_survives_restart(tmp_path, store):
    folder = tmp_path / "segments"
    add(store, 10, 100)
    live = refresh(LiveTriggerIndex(folder, store), store)
    assert (live.index.size, live.last, count_satisfied(live, store)) == (2, 2, 1)
    add(store, 20, 30)
    assert count_satisfied(refresh(live, store), store) == 3
    # Removed rules leave the index once their removal is known.
    Provider(store).remove_rules(["r10"])
    assert count_satisfied(refresh(live, store), store) == 3
    assert count_satisfied(refresh(live, store, {1}), store) == 2
    again = LiveTriggerIndex(folder, store)
    assert (again.folder, again.last, count_satisfied(again, store)) == (live.folder, 4, 2)
    version = again.index.version
    assert refresh(again, store).index.version == version


@pytest.mark.parametrize("mismatch", ["index", "store", "older"])
def test_refresh_index_that_does_not_match_store_is_rebuilt(tmp_path, store, mismatch):
    folder = tmp_path / "segments"
    add(store, 10)
    live = refresh(LiveTriggerIndex(folder, store), store)
    state = json.loads((folder / "state.json").read_text())
    if mismatch == "index":
        shutil.rmtree(live.index.folder)
    elif mismatch == "store":
        (folder / "state.json").write_text(json.dumps(state | {"store": "another"}))
    else:
        (folder / "state.json").write_text(json.dumps(state | {"last": 1_000}))
    add(store, 20)
    again = refresh(LiveTriggerIndex(folder, store), store)
    assert count_satisfied(again, store) == again.index.size == 2
    assert [path.name for path in folder.glob("index-*")] == [again.index.folder.name]
