"""Files of a segment beside its arrays: the table of ids and the clauses; the choice of merges."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.contracts.test_matchers import FEWER
from tests.support.oracles.index_algorithm import compiled_of, loosened
from tests.support.strategies.plans import ROOMS, plans
from tidings.matching.compiler.blocks import join_irregular, take, take_irregular, unpack
from tidings.matching.compiler.plan import Compiled, Plan
from tidings.matching.index.arrays import IdTable, write_ids
from tidings.matching.index.clause_file import read_clauses, write_clauses
from tidings.matching.index.compaction import DEAD_SHARE, RATIO, SMALLEST, choose_merge, choose_merge_to
from tidings.matching.index.versions import Marks, Part

texts = st.text(st.characters(codec="utf-8"), max_size=6)


@given(stored_ids=st.lists(texts, unique=True, min_size=1, max_size=60), asked=st.lists(texts, max_size=20))
def test_find_rows_returns_rows_of_known_ids(stored_ids: list[str], asked: list[str]) -> None:
    asked = [*asked, *stored_ids[::2]]
    with tempfile.TemporaryDirectory() as folder:
        write_ids(Path(folder), pa.array(stored_ids, pa.string()))
        rows = IdTable(Path(folder), pa.array(stored_ids, pa.string())).find_rows(
            pa.array(asked, pa.string())
        )
    assert rows.tolist() == [stored_ids.index(id) for id in asked if id in stored_ids]


def test_find_rows_of_slice_counts_from_start(tmp_path: Path) -> None:
    many = pa.array([f"subscription {number}" for number in range(1000)])
    write_ids(tmp_path, many.slice(200, 500))
    table = IdTable(tmp_path, many.slice(200, 500))
    assert table.find_rows(many).tolist() == list(range(500))
    assert table.find_rows(many.slice(690, 20)).tolist() == list(range(490, 500))


def sorted_clauses(compiled: Compiled) -> list[list[list[str]]]:
    """Return the clauses of each subscription in an order that does not depend on their storage."""
    return [sorted(sorted(map(repr, clause)) for clause in plan.clauses) for plan in unpack(compiled)]


@pytest.mark.parametrize("arrange", [lambda compiled: compiled, loosened], ids=["in blocks", "irregular"])
@FEWER
@given(stored_plans=st.lists(plans, min_size=1, max_size=12))
def test_read_clauses_of_write_clauses_is_same(
    arrange: Callable[[Compiled], Compiled], stored_plans: list[Plan]
) -> None:
    compiled = compiled_of({f"s{number}": plan for number, plan in enumerate(stored_plans)})
    with tempfile.TemporaryDirectory() as folder:
        write_clauses(Path(folder), arrange(compiled))
        stored = read_clauses(Path(folder))
        restored = Compiled(
            compiled.subscriptions,
            tuple(stored.blocks),
            tuple(stored.domains),
            (),
            stored.irregular,
            stored.twigs,
        )
        assert sorted_clauses(restored) == sorted_clauses(compiled)
    assert stored.domains == [ROOMS]


@FEWER
@given(stored_plans=st.lists(plans, min_size=1, max_size=12), data=st.data())
def test_join_irregular_of_parts_is_same(stored_plans: list[Plan], data: st.DataObject) -> None:
    compiled = loosened(compiled_of({f"s{number}": plan for number, plan in enumerate(stored_plans)}))
    kept = np.array([data.draw(st.booleans()) for _ in compiled.irregular.rows], bool)
    halves = [take_irregular(compiled.irregular, mask) for mask in (kept, ~kept)]
    assert sorted_clauses(replace(compiled, irregular=join_irregular(halves))) == sorted_clauses(compiled)


@FEWER
@given(stored_plans=st.lists(plans, min_size=1, max_size=12), data=st.data())
def test_take_selects_clauses_of_block(stored_plans: list[Plan], data: st.DataObject) -> None:
    compiled = compiled_of({f"s{number}": plan for number, plan in enumerate(stored_plans)})
    kept = {row for row in range(len(stored_plans)) if data.draw(st.booleans())}
    blocks = [take(block, np.flatnonzero(np.isin(block.rows, list(kept)))) for block in compiled.blocks]
    taken_plans = unpack(Compiled(compiled.subscriptions, tuple(blocks), compiled.domains, ()))
    expected = unpack(compiled)
    assert [plan.clauses for plan in taken_plans] == [
        expected[row].clauses if row in kept else () for row in range(len(stored_plans))
    ]


def part(alive: int, dead: int = 0) -> Part:
    return Part(f"of {alive}", alive + dead, (Marks("file", dead),) if dead else ())


def sizes(parts: list[Part]) -> list[int]:
    return [each.alive for each in parts]


def test_choose_merge_leaves_sizes_beyond_ratio() -> None:
    first = 10 * SMALLEST
    rising = [first, (RATIO + 1) * first, (RATIO + 1) ** 2 * first * 2]
    assert choose_merge([part(size) for size in rising]) == []
    assert sizes(choose_merge([part(size) for size in [*rising, first]])) == [first, first, rising[1]]


def test_choose_merge_treats_smallest_segments_as_equal() -> None:
    assert sizes(choose_merge([part(1), part(SMALLEST - 1), part(RATIO * SMALLEST + SMALLEST)])) == [
        1,
        SMALLEST - 1,
        RATIO * SMALLEST + SMALLEST,
    ]
    assert choose_merge([part(1), part(RATIO * SMALLEST + 1)]) == []


@pytest.mark.parametrize("more, expected", [(0, []), (1, [300_000])])
def test_choose_merge_rewrites_segments_with_many_dead_rows(more: int, expected: list[int]) -> None:
    dead = round(300_000 * DEAD_SHARE / (1 - DEAD_SHARE)) + more
    assert sizes(choose_merge([part(10_000_000), part(300_000, dead)])) == expected


def test_choose_merge_to_leaves_requested_number() -> None:
    parts = [part(100), part(5), part(1_000_000, 1), part(20, 15)]
    assert sizes(choose_merge_to(parts, 2)) == [20, 5, 100]
    assert sizes(choose_merge_to(parts, 4)) == [1_000_000, 20]
    assert choose_merge_to([part(7)], 1) == []
