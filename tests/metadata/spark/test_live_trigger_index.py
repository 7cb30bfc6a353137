"""The triggering rules of a running stream: the index has what the store has, through changes and restarts."""

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


def found(live, store):
    """How many rules the server information of the document satisfies: it has a memory of 92."""
    triggers = TriggerIndex(Provider(store).schema, live.index)
    return len(list(triggers.satisfied(store.metadata.resources("http://example.org/doc.rdf"))))


def refreshed(live, store, gone=()):
    live.refresh(Provider(store).schema, gone)
    live.tidy()
    return live


def test_it_follows_the_store(tmp_path, store):
    folder = tmp_path / "segments"
    add(store, 10, 100)
    live = refreshed(LiveTriggerIndex(folder, store), store)
    assert (live.index.size, live.last, found(live, store)) == (2, 2, 1)
    add(store, 20, 30)
    assert found(refreshed(live, store), store) == 3
    # Rules that are gone are taken out when somebody has found that out.
    Provider(store).remove_rules(["r10"])
    assert found(refreshed(live, store), store) == 3
    assert found(refreshed(live, store, {1}), store) == 2
    again = LiveTriggerIndex(folder, store)
    assert (again.folder, again.last, found(again, store)) == (live.folder, 4, 2)
    version = again.index.version
    assert refreshed(again, store).index.version == version


@pytest.mark.parametrize("lost", ["index", "store", "older"])
def test_an_index_that_does_not_fit_is_built_anew(tmp_path, store, lost):
    folder = tmp_path / "segments"
    add(store, 10)
    live = refreshed(LiveTriggerIndex(folder, store), store)
    state = json.loads((folder / "state.json").read_text())
    if lost == "index":
        shutil.rmtree(live.index.folder)
    elif lost == "store":
        (folder / "state.json").write_text(json.dumps(state | {"store": "another"}))
    else:
        (folder / "state.json").write_text(json.dumps(state | {"last": 1_000}))
    add(store, 20)
    again = refreshed(LiveTriggerIndex(folder, store), store)
    assert found(again, store) == again.index.size == 2
    assert [path.name for path in folder.glob("index-*")] == [again.index.folder.name]
