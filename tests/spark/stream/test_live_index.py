"""The index of a running stream reflects the store after changes, restarts and crashes."""

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
    with open_store(sqlite_url(tmp_path / "store.db")) as created:
        yield created


def subscription(n, text=None):
    return Subscription(f"s{n}", "ana", "predicates", text or f"n = {n}")


def matching_ids(live, n):
    return sorted(id for _, id in live.index.match([{"n": [n]}]).pairs())


@pytest.mark.parametrize("small_merge", [compaction.SMALL_MERGE, 2])
def test_live_index_reflects_store_after_each_change(tmp_path, store, monkeypatch, small_merge):
    monkeypatch.setattr(compaction, "SMALL_MERGE", small_merge)  # 2: nearly all merges run beside the batches
    live = LiveIndex(tmp_path / "segments", store)
    dice, alive = random.Random(4), {}
    for step in range(30):
        new = subscription(step, f"n = {step % 5} or n > {100 + step}")
        alive[new.id] = new
        store.subscriptions.add(new)
        if step % 3 == 2:
            removed = dice.choice(sorted(alive))
            del alive[removed]
            store.subscriptions.remove([removed])
        live.refresh()
        live.tidy()
        for n in range(5):
            assert matching_ids(live, n) == sorted(id for id in alive if int(id[1:]) % 5 == n)
        # A running merge has its own folder; segments added meanwhile have another.
        assert small_merge == 2 or live.index.segments == 1
        assert len(list((tmp_path / "segments").glob("index-*/segment-*"))) <= live.index.segments + 1
    assert matching_ids(LiveIndex(tmp_path / "segments", store), 3) == matching_ids(live, 3)


def test_live_index_applies_changes_and_pauses_with_next_batch(tmp_path, store):
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
        assert {n: matching_ids(live, n) for n in (1, 2)} == expected
    store.paused.change(subscription(1, "n = 1"))
    live.refresh()
    assert matching_ids(live, 1) == ["s2"], "a paused subscription stays paused"
    store.paused.resume("s1")
    store.subscriptions.change(subscription(1, "n = 2"))
    live.refresh()
    assert (matching_ids(live, 1), matching_ids(live, 2)) == (["s2"], ["s1"]), (
        "the last of several changes counts"
    )
    assert matching_ids(LiveIndex(tmp_path / "segments", store), 2) == ["s1"]


def test_live_index_crash_before_write_of_state_repeats_changes(tmp_path, store):
    store.subscriptions.add(subscription(1))
    live = LiveIndex(tmp_path / "segments", store)
    state = (tmp_path / "segments" / "state.json").read_text()
    store.subscriptions.add(subscription(2))
    store.subscriptions.remove(["s1"])
    live.refresh()
    (tmp_path / "segments" / "state.json").write_text(state)
    reopened = LiveIndex(tmp_path / "segments", store)
    assert (matching_ids(reopened, 1), matching_ids(reopened, 2)) == (["s1"], [])
    reopened.refresh()
    assert (matching_ids(reopened, 1), matching_ids(reopened, 2)) == ([], ["s2"])
    assert reopened.index.size == 1


def test_live_index_unfinished_segment_is_removed(tmp_path, store):
    store.subscriptions.add(subscription(1))
    live = LiveIndex(tmp_path / "segments", store)
    half = live.index.folder / f"segment-{live.index.version + 1:08d}-abcdef.unfinished"
    half.mkdir()
    (half / "arrays.bin").write_bytes(b"half")
    reopened = LiveIndex(tmp_path / "segments", store)
    store.subscriptions.add(subscription(2))
    reopened.refresh()
    assert (matching_ids(reopened, 1), matching_ids(reopened, 2)) == (["s1"], ["s2"])
    reopened.tidy()
    assert not half.exists()
    assert matching_ids(reopened, 2) == ["s2"]


def test_live_index_extended_schema_recompiles_all_subscriptions(tmp_path, store):
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


def test_live_index_invalidated_subscription_is_dead_letter(tmp_path, store):
    """The subscription was accepted just when the schema was extended."""
    store.subscriptions.add(subscription(1, "colour = 'red'"))
    live = LiveIndex(tmp_path / "segments", store)
    store.schemas.extend(SCHEMA)
    live.refresh()
    assert live.index.size == 0
    [letter] = store.dead_letters.read(source="subscriptions")
    assert letter.publication == "s1" and "no event type has an attribute 'colour'" in letter.reason


def test_live_index_deleted_index_is_rebuilt(tmp_path, store):
    store.subscriptions.add(subscription(1))
    shutil.rmtree(LiveIndex(tmp_path / "segments", store).index.folder)
    assert matching_ids(LiveIndex(tmp_path / "segments", store), 1) == ["s1"]


def test_live_index_ignores_segments_of_another_store(tmp_path, store):
    store.subscriptions.add(subscription(1))
    LiveIndex(tmp_path / "segments", store)
    with open_store(sqlite_url(tmp_path / "other.db")) as other:
        live = LiveIndex(tmp_path / "segments", other)
        assert live.index.size == 0
    assert json.loads((tmp_path / "segments" / "state.json").read_text())["store"].endswith("other.db")


def test_live_index_truncated_file_is_rebuilt(tmp_path, store):
    """Each file and the state are emptied, truncated to half, and removed in turn."""
    segments = tmp_path / "segments"
    cuts = (lambda whole: b"", lambda whole: whole[: len(whole) // 2], None)
    store.subscriptions.add_many([subscription(n) for n in range(50)])
    live = LiveIndex(segments, store)
    store.subscriptions.remove(["s1"])
    live.refresh()
    live.tidy()
    assert repair_index(segments) == [], "the index is intact"
    copy = tmp_path / "kept"
    shutil.copytree(segments, copy)
    names = sorted(path.relative_to(copy) for path in copy.rglob("*") if path.is_file())
    needed = [name for name in names if name.name != "CURRENT"]
    assert len(needed) == 8, needed
    for name, cut in product(needed, cuts):
        shutil.rmtree(segments)
        shutil.copytree(copy, segments)
        path = segments / name
        path.write_bytes(cut(path.read_bytes())) if cut else path.unlink()
        repairs = repair_index(segments)
        assert bool(repairs) == (cut is not None or name.name != "state.json"), (name, repairs)
        assert open_current_index(segments) is None
        reopened = LiveIndex(segments, store)
        assert (matching_ids(reopened, 1), matching_ids(reopened, 2), repair_index(segments)) == (
            [],
            ["s2"],
            [],
        )
