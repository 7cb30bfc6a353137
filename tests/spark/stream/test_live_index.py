"""The index of a running stream: reflects the store through changes, restarts and crashes."""

from __future__ import annotations

import json
import random
import shutil
from itertools import product

import pytest

from tests.support.strategies.events import SCHEMA
from tidings.matching.index import compaction
from tidings.model import Subscription
from tidings.spark.stream.live_index import LiveIndex, open_current_index, repair_index
from tidings.store.database import sqlite_url
from tidings.store.store import open_store


@pytest.fixture
def store(tmp_path):
    with open_store(sqlite_url(tmp_path / "store.db")) as opened:
        yield opened


def subscription(n, text=None):
    return Subscription(f"s{n}", "ana", "predicates", text or f"n = {n}")


def found(live, n):
    return sorted(id for _, id in live.index.match([{"n": [n]}]).pairs())


@pytest.mark.parametrize("at_once", [compaction.SMALL_MERGE, 2])
def test_live_index_follows_the_store(tmp_path, store, monkeypatch, at_once):
    monkeypatch.setattr(
        compaction, "SMALL_MERGE", at_once
    )  # 2: nearly all merges are made beside the batches
    live = LiveIndex(tmp_path / "segments", store)
    dice, alive = random.Random(4), {}
    for step in range(30):
        new = subscription(step, f"n = {step % 5} or n > {100 + step}")
        alive[new.id] = new
        store.subscriptions.add(new)
        if step % 3 == 2:
            gone = dice.choice(sorted(alive))
            del alive[gone]
            store.subscriptions.remove([gone])
        live.refresh()
        live.tidy()
        for n in range(5):
            assert found(live, n) == sorted(id for id in alive if int(id[1:]) % 5 == n)
        # A running merge has its own folder; segments added meanwhile have another.
        assert at_once == 2 or live.index.segments == 1
        assert len(list((tmp_path / "segments").glob("index-*/segment-*"))) <= live.index.segments + 1
    assert found(LiveIndex(tmp_path / "segments", store), 3) == found(live, 3)


def test_live_index_applies_changes_and_pauses_with_the_next_batch(tmp_path, store):
    live = LiveIndex(tmp_path / "segments", store)
    store.subscriptions.add_many([subscription(1), subscription(2)])
    live.refresh()
    for changed, paused, expected in (
        (subscription(1, "n = 2"), None, {1: [], 2: ["s1", "s2"]}),
        (None, "s1", {1: [], 2: ["s2"]}),
        (subscription(2, "n = 1"), None, {1: ["s2"], 2: []}),
    ):
        if changed:
            store.subscriptions.change(changed)
        if paused:
            store.paused.pause(paused, "ana")
        live.refresh()
        assert {n: found(live, n) for n in (1, 2)} == expected
    store.paused.change(subscription(1, "n = 1"))
    live.refresh()
    assert found(live, 1) == ["s2"], "what is paused stays so"
    store.paused.resume("s1")
    store.subscriptions.change(subscription(1, "n = 2"))
    live.refresh()
    assert (found(live, 1), found(live, 2)) == (["s2"], ["s1"]), "the last of several changes counts"
    assert found(LiveIndex(tmp_path / "segments", store), 2) == ["s1"]


def test_live_index_after_a_crash_before_its_state_repeats_the_changes(tmp_path, store):
    store.subscriptions.add(subscription(1))
    live = LiveIndex(tmp_path / "segments", store)
    state = (tmp_path / "segments" / "state.json").read_text()
    store.subscriptions.add(subscription(2))
    store.subscriptions.remove(["s1"])
    live.refresh()
    (tmp_path / "segments" / "state.json").write_text(state)
    again = LiveIndex(tmp_path / "segments", store)
    assert (found(again, 1), found(again, 2)) == (["s1"], [])
    again.refresh()
    assert (found(again, 1), found(again, 2)) == ([], ["s2"])
    assert again.index.size == 1


def test_live_index_with_an_unfinished_segment_removes_it(tmp_path, store):
    store.subscriptions.add(subscription(1))
    live = LiveIndex(tmp_path / "segments", store)
    half = live.index.folder / f"segment-{live.index.version + 1:08d}-abcdef.unfinished"
    half.mkdir()
    (half / "arrays.bin").write_bytes(b"half")
    again = LiveIndex(tmp_path / "segments", store)
    store.subscriptions.add(subscription(2))
    again.refresh()
    assert (found(again, 1), found(again, 2)) == (["s1"], ["s2"])
    again.tidy()
    assert not half.exists()
    assert found(again, 2) == ["s2"]


def test_live_index_with_an_extended_schema_recompiles_everything(tmp_path, store):
    store.subscriptions.add(subscription(1, "price < 5"))
    live = LiveIndex(tmp_path / "segments", store)
    before = live.folder
    assert live.schema_text is None
    store.schemas.extend(SCHEMA)
    store.subscriptions.add(subscription(2, "category is a 'furniture'"))
    live.refresh()
    assert live.folder != before and live.schema_text
    assert sorted(id for _, id in live.index.match([{"category": ["chair"], "price": [1]}]).pairs()) == [
        "s1",
        "s2",
    ]
    assert [path.name for path in (tmp_path / "segments").glob("index-*")] == [live.index.folder.name]


def test_live_index_with_an_invalidated_subscription_writes_a_dead_letter(tmp_path, store):
    """A subscription was accepted at the moment the schema was extended."""
    store.subscriptions.add(subscription(1, "colour = 'red'"))
    live = LiveIndex(tmp_path / "segments", store)
    store.schemas.extend(SCHEMA)
    live.refresh()
    assert live.index.size == 0
    [letter] = store.dead_letters.read(source="subscriptions")
    assert letter.publication == "s1" and "no event type has an attribute 'colour'" in letter.reason


def test_live_index_that_was_deleted_is_rebuilt(tmp_path, store):
    store.subscriptions.add(subscription(1))
    shutil.rmtree(LiveIndex(tmp_path / "segments", store).index.folder)
    assert found(LiveIndex(tmp_path / "segments", store), 1) == ["s1"]


def test_live_index_ignores_segments_of_another_store(tmp_path, store):
    store.subscriptions.add(subscription(1))
    LiveIndex(tmp_path / "segments", store)
    with open_store(sqlite_url(tmp_path / "other.db")) as other:
        live = LiveIndex(tmp_path / "segments", other)
        assert live.index.size == 0
    assert json.loads((tmp_path / "segments" / "state.json").read_text())["store"].endswith("other.db")


def test_live_index_with_a_truncated_file_is_rebuilt(tmp_path, store):
    """Each file and the state in turn: emptied, halved, and removed."""
    segments = tmp_path / "segments"
    cuts = (lambda whole: b"", lambda whole: whole[: len(whole) // 2], None)
    store.subscriptions.add_many([subscription(n) for n in range(50)])
    live = LiveIndex(segments, store)
    store.subscriptions.remove(["s1"])
    live.refresh()
    live.tidy()
    assert repair_index(segments) == [], "nothing is wrong with it"
    kept = tmp_path / "kept"
    shutil.copytree(segments, kept)
    names = sorted(path.relative_to(kept) for path in kept.rglob("*") if path.is_file())
    needed = [name for name in names if name.name != "CURRENT"]
    assert len(needed) == 8, needed
    for name, cut in product(needed, cuts):
        shutil.rmtree(segments)
        shutil.copytree(kept, segments)
        path = segments / name
        path.write_bytes(cut(path.read_bytes())) if cut else path.unlink()
        told = repair_index(segments)
        assert bool(told) == (cut is not None or name.name != "state.json"), (name, told)
        assert open_current_index(segments) is None
        again = LiveIndex(segments, store)
        assert (found(again, 1), found(again, 2), repair_index(segments)) == ([], ["s2"], [])
