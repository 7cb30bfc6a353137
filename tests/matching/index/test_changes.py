"""An index that changes: whatever is added, removed, merged, reopened, it answers as a dictionary of plans would."""

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
"""Where thousands of changes are not waiting for a disk."""

ids = st.sampled_from([f"s{number}" for number in range(9)])
several = st.dictionaries(ids, plans, max_size=4)
Held = Mapping[str, Plan]


def answers(held: Held, event: Event) -> set[str]:
    return {id for id, plan in held.items() if satisfies(plan, event)}


def found(index: Index, event: Event) -> set[str]:
    pairs = list(index.match([event]).pairs())
    assert len(pairs) == len(set(pairs)), "a pair was found twice"
    return {id for _, id in pairs}


class Changes(RuleBasedStateMachine):
    """The index beside a dictionary; earlier versions and readers beside copies of it."""

    merges = Bundle("merges")

    @initialize(event=events)
    def begin(self, event: Event) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(compaction, "SMALLEST", 1)  # or all segments of a test would be of one size
        self.folder = Path(tempfile.mkdtemp(prefix="tidings-test-", dir=MEMORY))
        self.index, self.held, self.event = Index.create(self.folder), dict[str, Plan](), event
        self.copies: dict[int, Held] = {}
        self.readers: list[tuple[Index, Held]] = []

    @rule(more=several, loose=st.booleans())
    def add(self, more: Held, loose: bool) -> None:
        self.index.add(loosened(compiled_of(more)) if loose else compiled_of(more))
        self.held |= more

    @rule(gone=st.lists(ids, max_size=4))
    def remove(self, gone: list[str]) -> None:
        known = set(gone) & self.held.keys()
        assert self.index.remove(gone) == len(known)
        self.held = {id: plan for id, plan in self.held.items() if id not in known}

    @rule(gone=st.lists(ids, max_size=3), more=several, absorb=st.sampled_from([0, 4, 100]))
    def change(self, gone: list[str], more: Held, absorb: int) -> None:
        self.index.change(gone, compiled_of(more), absorb)
        self.held = {id: plan for id, plan in self.held.items() if id not in gone} | dict(more)

    @rule()
    def merge(self) -> None:
        self.index.merge()
        assert self.index.plan_merge() is None

    @rule(most=st.integers(1, 3))
    def compact(self, most: int) -> None:
        self.index.compact(most)  # a merge that is under way then finds nothing left that it could replace
        assert self.index.segments <= most

    @rule(target=merges)
    def begin_a_merge(self) -> Merge | None:
        return self.index.plan_merge()

    @rule(planned=consumes(merges))
    def end_a_merge(self, planned: Merge | None) -> None:
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
    def remember(self) -> None:
        self.copies[self.index.version] = dict(self.held)
        self.readers.append((Index.open(self.folder), dict(self.held)))
        assert found(self.readers[-1][0], self.event) == answers(self.held, self.event)

    @rule(event=events)
    def another_event(self, event: Event) -> None:
        self.event = event

    @rule()
    def look_back(self) -> None:
        for version, held in self.copies.items():
            assert found(Index.open(self.folder, version), self.event) == answers(held, self.event)
        for reader, held in self.readers:
            assert found(reader, self.event) == answers(held, self.event)

    @invariant()
    def it_answers_as_the_dictionary(self) -> None:
        assert found(self.index, self.event) == answers(self.held, self.event)
        assert self.index.size == len(self.held)

    def teardown(self) -> None:
        self.patch.undo()
        shutil.rmtree(self.folder)


TestChanges = Changes.TestCase
TestChanges.settings = share(3, stateful_step_count=25)


def compiled(**texts: str) -> Compiled:
    return compile_many([Subscription(id, "ana", "predicates", text) for id, text in texts.items()])


def numbered(first: int, last: int) -> Compiled:
    return compiled(**{f"s{number}": f"n = {number % 7}" for number in range(first, last)})


def test_removing_and_adding_in_one_step_is_one_version(tmp_path: Path) -> None:
    index = Index.create(tmp_path)
    before = index.add(compiled(a="n = 1", b="n = 1"))
    assert index.change(["a", "unknown"], compiled(c="n = 1")) == before + 1
    assert found(index, {"n": [1]}) == {"b", "c"}
    assert index.change(["unknown"], compiled()) == index.version == before + 1


@pytest.fixture
def in_memory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tidings-test-", dir=MEMORY) as folder:
        yield Path(folder)


def test_change_absorbs_small_segments(tmp_path: Path) -> None:
    index = Index.create(tmp_path)
    index.add(numbered(0, 10))
    index.add(numbered(10, 20))
    before = index.change(["s3"], numbered(20, 30), absorb=28)
    assert index.segments == 3, "29 would be more than 28"
    assert index.change(["s10"], compiled(s4="n = 100"), absorb=28) == before + 1
    assert [(each.subscriptions, each.removed) for each in index.describe()] == [(28, 0)]
    assert found(index, {"n": [3, 4, 100]}) == {f"s{n}" for n in (4, 11, 17, 18, 24, 25)}


def test_a_stream_of_small_additions_stays_in_few_segments(
    in_memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no subscription is written much more often than the logarithm of their number."""
    monkeypatch.setattr(compaction, "SMALLEST", 1)
    written: list[int] = []
    write = compaction.write_segment
    monkeypatch.setattr(
        compaction,
        "write_segment",
        lambda folder, rows: (written.append(rows.subscriptions.num_rows), write(folder, rows)),
    )
    index, most = Index.create(in_memory), 0
    for number in range(300):
        index.add(numbered(number, number + 1))
        index.merge()
        index.collect(keep_versions=1)
        most = max(most, index.segments)
    assert index.size == 300
    assert most <= 5
    assert sum(written) < 12 * 300


def test_removals_cost_files_as_small_as_they_are(tmp_path: Path) -> None:
    index = Index.create(tmp_path)
    index.add(numbered(0, 5000))
    for number in range(100):
        index.remove([f"s{number}"])
        index.collect(keep_versions=1)
    [part] = index._now.parts
    assert (part.dead, index.size) == (100, 4900)
    assert len(part.marks) <= 4
    assert sum(path.stat().st_size for path in tmp_path.glob("dead-*")) < 2000
    assert Index.open(tmp_path).size == 4900
    assert found(Index.open(tmp_path), {"n": [3]}) == {f"s{n}" for n in range(100, 5000) if n % 7 == 3}


def test_merge_rewrites_a_mostly_dead_segment(tmp_path: Path) -> None:
    index = Index.create(tmp_path)
    index.add(numbered(0, 100))
    index.remove([f"s{number}" for number in range(25)])
    assert index.merge() == index.version == 3
    index.remove(["s25"])
    index.merge()
    assert [(each.subscriptions, each.removed) for each in index.describe()] == [(74, 0)]


def test_a_large_merge_goes_on_while_the_index_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "SMALLEST", 1)
    monkeypatch.setattr(compaction, "SMALL_MERGE", 10)
    index = Index.create(tmp_path)
    index.add(numbered(0, 40))
    index.add(numbered(40, 80))
    beside = CompactionWorker(index)
    beside.step()
    index.remove(["s3"])
    index.add(numbered(80, 82))
    index.add(compiled(s10="n = 100"))
    beside.step()
    index.collect(keep_versions=1)
    beside.finish()
    assert sorted((each.subscriptions, each.removed) for each in index.describe()) == [(3, 0), (80, 2)]
    expected = {f"s{n}" for n in range(82) if n % 7 == 3 and n not in (3, 10)}
    assert found(index, {"n": [3, 100]}) == expected | {"s10"}
    assert found(Index.open(tmp_path), {"n": [3, 100]}) == expected | {"s10"}


def test_a_batch_is_matched_with_one_version_whatever_another_thread_changes(in_memory: Path) -> None:
    """A subscription that is replaced again and again is there at every moment, and once."""
    index = Index.create(in_memory)
    index.add(numbered(0, 50))
    expected = found(index, {"n": [1]})

    def replace_it() -> None:
        for number in range(60):
            index.change([], compiled(s1=f"n = 1 or n = {100 + number}"), absorb=number % 3 * 20)
            index.collect(keep_versions=1)

    with ThreadPoolExecutor(1) as thread:
        writing = thread.submit(replace_it)
        while not writing.done():
            assert found(index, {"n": [1]}) == expected
        writing.result()
    assert "s1" in expected and found(index, {"n": [159]}) == {"s1"}


def test_compaction_worker_raises_the_error_of_a_merge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "SMALL_MERGE", 0)
    index = Index.create(tmp_path)
    index.add(compiled(a="n = 1"))
    index.add(compiled(b="n = 2"))

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(compaction, "write_segment", full)
    beside = CompactionWorker(index)
    beside.step()
    with pytest.raises(OSError, match="no space left"):
        beside.finish()
    assert found(index, {"n": [1, 2]}) == {"a", "b"}
    monkeypatch.undo()
    beside.step()
    beside.finish()
    assert len(index.describe()) == 1
    assert found(index, {"n": [1, 2]}) == {"a", "b"}


def test_matches_outlive_the_segments_they_came_from(tmp_path: Path) -> None:
    index = Index.create(tmp_path)
    index.add(compiled(a="n = 1"))
    matches = index.match([{"n": [1]}])
    index.add(compiled(b="n = 1"))
    index.compact()
    index.collect(keep_versions=1)
    assert matches.subscriptions() == [Subscription("a", "ana", "predicates", "n = 1")]


def test_an_index_of_another_format_is_refused(tmp_path: Path) -> None:
    Index.create(tmp_path)
    (tmp_path / "manifest-00000001.json").write_text('{"segments": []}')
    with pytest.raises(SetupError, match="incompatible version of Tidings"):
        Index.open(tmp_path)
