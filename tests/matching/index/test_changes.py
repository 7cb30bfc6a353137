"""Changes of an index: after additions, removals, merges and reopening it agrees with a dictionary of plans."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from research.events.evaluation import satisfies
from tests.support.oracles.index_algorithm import compiled_of, loosened
from tests.support.strategies.effort import share
from tests.support.strategies.plans import events, plans
from tidings.atoms import Event
from tidings.errors import SetupError
from tidings.matching.compiler.compilation import compile_many
from tidings.matching.compiler.plan import Compiled, Plan
from tidings.matching.index import compaction
from tidings.matching.index.compaction import CompactionWorker, Merge
from tidings.matching.index.index import Index
from tidings.model import Subscription

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""A folder in memory, so that thousands of changes do not wait for a disk."""

ids = st.sampled_from([f"s{number}" for number in range(9)])
several = st.dictionaries(ids, plans, max_size=4)
Plans = Mapping[str, Plan]


def matching_ids(plans_by_id: Plans, event: Event) -> set[str]:
    return {id for id, plan in plans_by_id.items() if satisfies(plan, event)}


def matched_ids(index: Index, event: Event) -> set[str]:
    pairs = list(index.match([event]).pairs())
    assert len(pairs) == len(set(pairs)), "a pair was found twice"
    return {id for _, id in pairs}


class Changes(RuleBasedStateMachine):
    """An index compared with a dictionary; earlier versions and readers with copies of it."""

    merges = Bundle("merges")

    @initialize(event=events)
    def begin(self, event: Event) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(compaction, "SMALLEST", 1)  # otherwise all segments of a test would be of one size
        self.folder = Path(tempfile.mkdtemp(prefix="tidings-test-", dir=MEMORY))
        self.index, self.plans, self.event = Index.create(self.folder), dict[str, Plan](), event
        self.copies: dict[int, Plans] = {}
        self.readers: list[tuple[Index, Plans]] = []

    @rule(more=several, loose=st.booleans())
    def add(self, more: Plans, loose: bool) -> None:
        self.index.add(loosened(compiled_of(more)) if loose else compiled_of(more))
        self.plans |= more

    @rule(removed=st.lists(ids, max_size=4))
    def remove(self, removed: list[str]) -> None:
        known = set(removed) & self.plans.keys()
        assert self.index.remove(removed) == len(known)
        self.plans = {id: plan for id, plan in self.plans.items() if id not in known}

    @rule(removed=st.lists(ids, max_size=3), more=several, absorb=st.sampled_from([0, 4, 100]))
    def change(self, removed: list[str], more: Plans, absorb: int) -> None:
        self.index.change(removed, compiled_of(more), absorb)
        self.plans = {id: plan for id, plan in self.plans.items() if id not in removed} | dict(more)

    @rule()
    def merge(self) -> None:
        self.index.merge()
        assert self.index.plan_merge() is None

    @rule(most=st.integers(1, 3))
    def compact(self, most: int) -> None:
        self.index.compact(most)  # a running merge then has nothing left to replace
        assert self.index.segments <= most

    @rule(target=merges)
    def begin_merge(self) -> Merge | None:
        return self.index.plan_merge()

    @rule(planned=consumes(merges))
    def end_merge(self, planned: Merge | None) -> None:
        if planned is not None and planned.name in self.index._merging:
            planned.write()
            self.index.adopt(planned)

    @rule()
    def reopen(self) -> None:
        self.index = Index.open(self.folder)

    @rule()
    def collect(self) -> None:
        self.index.collect(keep_versions=1)
        self.copies.clear()

    @rule()
    def keep_version(self) -> None:
        self.copies[self.index.version] = dict(self.plans)
        self.readers.append((Index.open(self.folder), dict(self.plans)))
        assert matched_ids(self.readers[-1][0], self.event) == matching_ids(self.plans, self.event)

    @rule(event=events)
    def change_event(self, event: Event) -> None:
        self.event = event

    @rule()
    def check_old_versions(self) -> None:
        for version, plans_by_id in self.copies.items():
            assert matched_ids(Index.open(self.folder, version), self.event) == matching_ids(
                plans_by_id, self.event
            )
        for reader, plans_by_id in self.readers:
            assert matched_ids(reader, self.event) == matching_ids(plans_by_id, self.event)

    @invariant()
    def index_agrees_with_dictionary(self) -> None:
        assert matched_ids(self.index, self.event) == matching_ids(self.plans, self.event)
        assert self.index.size == len(self.plans)

    def teardown(self) -> None:
        self.patch.undo()
        shutil.rmtree(self.folder)


TestChanges = Changes.TestCase
TestChanges.settings = share(3, stateful_step_count=25)


def compile_texts(**texts: str) -> Compiled:
    return compile_many([Subscription(id, "ana", "predicates", text) for id, text in texts.items()])


def compile_numbered(first: int, last: int) -> Compiled:
    return compile_texts(**{f"s{number}": f"n = {number % 7}" for number in range(first, last)})


def test_change_removal_and_addition_is_one_version(tmp_path: Path) -> None:
    index = Index.create(tmp_path)
    before = index.add(compile_texts(a="n = 1", b="n = 1"))
    assert index.change(["a", "unknown"], compile_texts(c="n = 1")) == before + 1
    assert matched_ids(index, {"n": [1]}) == {"b", "c"}
    assert index.change(["unknown"], compile_texts()) == index.version == before + 1


@pytest.fixture
def memory_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tidings-test-", dir=MEMORY) as folder:
        yield Path(folder)


def test_change_absorbs_small_segments(tmp_path: Path) -> None:
    index = Index.create(tmp_path)
    index.add(compile_numbered(0, 10))
    index.add(compile_numbered(10, 20))
    before = index.change(["s3"], compile_numbered(20, 30), absorb=28)
    assert index.segments == 3, "29 would be more than 28"
    assert index.change(["s10"], compile_texts(s4="n = 100"), absorb=28) == before + 1
    assert [(each.subscriptions, each.removed) for each in index.describe()] == [(28, 0)]
    assert matched_ids(index, {"n": [3, 4, 100]}) == {f"s{n}" for n in (4, 11, 17, 18, 24, 25)}


def test_merge_many_small_additions_stay_in_few_segments(
    memory_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each subscription is written about as often as the logarithm of their number."""
    monkeypatch.setattr(compaction, "SMALLEST", 1)
    sizes: list[int] = []
    write = compaction.write_segment
    monkeypatch.setattr(
        compaction,
        "write_segment",
        lambda folder, rows: (sizes.append(rows.subscriptions.num_rows), write(folder, rows)),
    )
    index, most = Index.create(memory_folder), 0
    for number in range(300):
        index.add(compile_numbered(number, number + 1))
        index.merge()
        index.collect(keep_versions=1)
        most = max(most, index.segments)
    assert index.size == 300
    assert most <= 5
    assert sum(sizes) < 12 * 300


def test_remove_few_subscriptions_writes_small_files(tmp_path: Path) -> None:
    index = Index.create(tmp_path)
    index.add(compile_numbered(0, 5000))
    for number in range(100):
        index.remove([f"s{number}"])
        index.collect(keep_versions=1)
    [part] = index._now.parts
    assert (part.dead, index.size) == (100, 4900)
    assert len(part.marks) <= 4
    assert sum(path.stat().st_size for path in tmp_path.glob("dead-*")) < 2000
    assert Index.open(tmp_path).size == 4900
    assert matched_ids(Index.open(tmp_path), {"n": [3]}) == {f"s{n}" for n in range(100, 5000) if n % 7 == 3}


def test_merge_rewrites_mostly_dead_segment(tmp_path: Path) -> None:
    index = Index.create(tmp_path)
    index.add(compile_numbered(0, 100))
    index.remove([f"s{number}" for number in range(25)])
    assert index.merge() == index.version == 3
    index.remove(["s25"])
    index.merge()
    assert [(each.subscriptions, each.removed) for each in index.describe()] == [(74, 0)]


def test_compaction_worker_merges_while_index_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "SMALLEST", 1)
    monkeypatch.setattr(compaction, "SMALL_MERGE", 10)
    index = Index.create(tmp_path)
    index.add(compile_numbered(0, 40))
    index.add(compile_numbered(40, 80))
    worker = CompactionWorker(index)
    worker.step()
    index.remove(["s3"])
    index.add(compile_numbered(80, 82))
    index.add(compile_texts(s10="n = 100"))
    worker.step()
    index.collect(keep_versions=1)
    worker.finish()
    assert sorted((each.subscriptions, each.removed) for each in index.describe()) == [(3, 0), (80, 2)]
    expected = {f"s{n}" for n in range(82) if n % 7 == 3 and n not in (3, 10)}
    assert matched_ids(index, {"n": [3, 100]}) == expected | {"s10"}
    assert matched_ids(Index.open(tmp_path), {"n": [3, 100]}) == expected | {"s10"}


def test_match_batch_uses_one_version_during_concurrent_changes(memory_folder: Path) -> None:
    """A subscription that is replaced repeatedly matches exactly once at any time."""
    index = Index.create(memory_folder)
    index.add(compile_numbered(0, 50))
    expected = matched_ids(index, {"n": [1]})

    def replace_repeatedly() -> None:
        for number in range(60):
            index.change([], compile_texts(s1=f"n = 1 or n = {100 + number}"), absorb=number % 3 * 20)
            index.collect(keep_versions=1)

    with ThreadPoolExecutor(1) as thread:
        writer = thread.submit(replace_repeatedly)
        while not writer.done():
            assert matched_ids(index, {"n": [1]}) == expected
        writer.result()
    assert "s1" in expected and matched_ids(index, {"n": [159]}) == {"s1"}


def test_compaction_worker_raises_error_of_merge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "SMALL_MERGE", 0)
    index = Index.create(tmp_path)
    index.add(compile_texts(a="n = 1"))
    index.add(compile_texts(b="n = 2"))

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(compaction, "write_segment", full)
    worker = CompactionWorker(index)
    worker.step()
    with pytest.raises(OSError, match="no space left"):
        worker.finish()
    assert matched_ids(index, {"n": [1, 2]}) == {"a", "b"}
    monkeypatch.undo()
    worker.step()
    worker.finish()
    assert len(index.describe()) == 1
    assert matched_ids(index, {"n": [1, 2]}) == {"a", "b"}


def test_matches_remain_valid_after_segments_are_deleted(tmp_path: Path) -> None:
    index = Index.create(tmp_path)
    index.add(compile_texts(a="n = 1"))
    matches = index.match([{"n": [1]}])
    index.add(compile_texts(b="n = 1"))
    index.compact()
    index.collect(keep_versions=1)
    assert matches.subscriptions() == [Subscription("a", "ana", "predicates", "n = 1")]


def test_open_index_of_other_format_is_rejected(tmp_path: Path) -> None:
    Index.create(tmp_path)
    (tmp_path / "manifest-00000001.json").write_text('{"segments": []}')
    with pytest.raises(SetupError, match="incompatible version of Tidings"):
        Index.open(tmp_path)
