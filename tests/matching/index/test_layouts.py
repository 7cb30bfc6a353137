"""Every layout of clauses answers as the definition does, and the cost model chooses between them as it says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.contracts.test_matchers import FEWER
from tidings import Subscription, compile_many
from tidings.atoms import Event
from tidings.events.explanation import matches
from tidings.events.predicate_compiler import parse_and_check
from tidings.matching.compiler.plan import Compiled
from tidings.matching.index.builder import access_paths, bitmap_tiles, clustering, cost
from tidings.matching.index.index import Index
from tidings.values import show


def index_of(texts: Sequence[str]) -> Index:
    index = Index.create()
    index.add(compiled(texts))
    return index


def compiled(texts: Sequence[str]) -> Compiled:
    return compile_many(Subscription(f"s{n}", "ana", "predicates", text) for n, text in enumerate(texts))


def layouts(index: Index) -> set[str]:
    return {cluster.layout for segment in index.describe() for cluster in segment.clusters}


def found(index: Index, published: Sequence[Event]) -> set[tuple[int, str]]:
    pairs = list(index.match(published).pairs())
    assert len(pairs) == len(set(pairs)), "a pair was found twice"
    return set(pairs)


def defined(texts: Sequence[str], published: Sequence[Event]) -> set[tuple[int, str]]:
    refused = {reject.id for reject in compiled(texts).rejects}
    trees = {f"s{n}": parse_and_check(text) for n, text in enumerate(texts) if f"s{n}" not in refused}
    return {
        (place, id)
        for place, event in enumerate(published)
        for id, tree in trees.items()
        if matches(tree, event)
    }


OTHERS = (
    *(
        "a > 1",
        "b <= 'x'",
        "c between 1 and 2",
        "d < 3",
        "a in (1, 'x')",
        "not b = 2",
        "c != 'y'",
        "exists a",
    ),
    *("b contains 'x'", "c starts with 'x'", "d >= 'x'", "not (a between 1 and 2)", "c in (2, 3, 'y')"),
)
values = st.sampled_from([1, 2, 3, 2.5, "x", "xy", "y", True])
tests = st.one_of(
    st.builds(lambda path, value: f"{path} = {show(value)}", st.sampled_from("abcd"), values),
    st.sampled_from(OTHERS),
)
clauses = st.lists(tests, min_size=1, max_size=4).map(" and ".join)
texts = st.lists(st.one_of(clauses, st.tuples(clauses, clauses).map(" or ".join)), min_size=1, max_size=40)
events = st.dictionaries(st.sampled_from("abcd"), st.lists(values, min_size=1, max_size=3), max_size=4)


@contextmanager
def moved_limits(layout: str) -> Iterator[None]:
    """A few clauses are laid out as very many would be."""
    limits: dict[str, list[tuple[object, str, float]]] = {
        "tiles": [
            (access_paths, "TILES_FROM", 1),
            (cost, "BITMAP_ROW", 0.0),
            (cost, "CANDIDATE", 0.0),
            (bitmap_tiles, "TILE_ROWS", 4),
        ],
        "fixed width": [
            (access_paths, "UNIFORM_FROM", 1000),
            (cost, "VISIT", 0.0),
            (access_paths, "ALIKE_FROM", 1),
        ],
        "pairs": [(access_paths, "UNIFORM_FROM", 1000), (cost, "VISIT", 0.0)],
        "as chosen": [],
    }
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in limits[layout]:
            patch.setattr(module, name, value)
        yield


@FEWER
@pytest.mark.parametrize("layout", ["tiles", "fixed width", "pairs", "as chosen"])
@given(held=texts, published=st.lists(events, min_size=1, max_size=8))
def test_every_layout_answers_as_the_definition(layout: str, held: list[str], published: list[Event]) -> None:
    with moved_limits(layout):
        index = index_of(held)
    assert found(index, published) == defined(held, published)
    if layout == "tiles":
        assert layouts(index) <= {"tiles"}


def intervals(rows: int, attributes: int, tests: int, rng: np.random.Generator) -> list[str]:
    """Several ranges on any attributes: thousands of shapes."""
    made = []
    for _ in range(rows):
        chosen = rng.choice(attributes, tests, replace=False)
        low = rng.integers(0, 700, tests)
        made.append(" and ".join(f"a{a} between {b} and {b + 300}" for a, b in zip(chosen, low, strict=True)))
    return made


def test_many_ranges_are_filtered_through_bitmaps() -> None:
    rng = np.random.default_rng(7)
    held = intervals(1500, 12, 5, rng)
    index = index_of(held)
    assert layouts(index) == {"tiles"}
    published: list[Event] = [
        {f"a{k}": [int(v)] for k, v in enumerate(rng.integers(0, 1000, 12))} for _ in range(30)
    ]
    published += [{}, {"a1": [500]}, {f"a{k}": [200, 800] for k in range(12)}, {"other": [1]}]
    expected = defined(held, published)
    assert len(expected) > 30
    assert found(index, published) == expected
    assert {
        pair for n, event in enumerate(published) for pair in placed(found(index, [event]), n)
    } == expected


def placed(pairs: set[tuple[int, str]], place: int) -> set[tuple[int, str]]:
    return {(place, id) for _, id in pairs}


def test_more_publications_than_go_down_the_tree_together() -> None:
    rng = np.random.default_rng(8)
    held = intervals(1200, 12, 5, rng)
    index = index_of(held)
    assert layouts(index) == {"tiles"}
    single = [{f"a{k}": [int(v)] for k, v in enumerate(rng.integers(0, 1000, 12))} for _ in range(20)]
    once = found(index, single)
    many = found(index, single * 150)
    assert many == {(20 * n + place, id) for n in range(150) for place, id in once}


def test_bitmap_filter_with_too_many_candidates_halves_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(9)
    held = intervals(1200, 12, 5, rng)
    index = index_of(held)
    published = [{f"a{k}": [int(v)] for k, v in enumerate(rng.integers(0, 1000, 12))} for _ in range(64)]
    assert layouts(index) == {"tiles"}
    expected = found(index, published)
    assert expected
    monkeypatch.setattr("tidings.matching.index.matcher.MOST_CANDIDATES", 10)
    assert found(index, published) == expected


def equalities(rows: int, rng: np.random.Generator) -> list[str]:
    """Three equalities of six attributes with forty values each."""
    made = []
    for _ in range(rows):
        chosen = rng.choice(6, 3, replace=False)
        made.append(" and ".join(f"a{a} = {v}" for a, v in zip(chosen, rng.integers(0, 40, 3), strict=True)))
    return made


def test_equalities_are_reached_through_pairs() -> None:
    rng = np.random.default_rng(10)
    held = equalities(5000, rng)
    index = index_of(held)
    clusters = index.describe()[0].clusters
    assert {c.layout for c in clusters} <= {"equalities", "general"}
    assert sum(c.clauses for c in clusters if c.layout == "equalities" and c.second) > 4000
    assert len(clusters) < 15
    published: list[Event] = [
        {f"a{k}": [int(v)] for k, v in enumerate(rng.integers(0, 40, 6))} for _ in range(30)
    ]
    published += [{f"a{k}": list(range(40)) for k in range(6)}, {f"a{k}": [1, 2, 3] for k in range(5)}]
    expected = defined(held, published)
    assert {(30, f"s{n}") for n in range(5000)} <= expected
    assert found(index, published) == expected


@pytest.mark.parametrize(("shapes", "layout"), [(1, "uniform"), (20, "equalities")])
def test_columns_are_for_few_shapes(shapes: int, layout: str) -> None:
    """Each shape in columns is a visit: what is best for one of them is not for twenty."""
    rng, chosen = np.random.default_rng(3), list(combinations(range(6), 3))[:shapes]
    values = rng.integers(0, 8, (6000, 3)).tolist()
    held = [
        " and ".join(f"a{at} = {value}" for at, value in zip(chosen[n % shapes], row, strict=True))
        for n, row in enumerate(values)
    ]
    index = index_of(held)
    assert {c.layout for c in index.describe()[0].clusters} == {layout}
    published: list[Event] = [
        {f"a{k}": [int(v)] for k, v in enumerate(rng.integers(0, 8, 6))} for _ in range(20)
    ]
    assert found(index, published) == defined(held, published)


def test_more_visits_than_are_prepared_together() -> None:
    """A text with hundreds of patterns in it leads to as many buckets."""
    words = [f"w{n:03d}" for n in range(300)]
    held = [f"text contains '{word}' and kind = 'k{n % 3}'" for n, word in enumerate(words)] * 3
    index = index_of(held)
    published: list[Event] = [
        {"text": [" ".join(words)], "kind": ["k0", "k1"]},
        {"text": ["w001 w002"], "kind": ["k1"]},
    ]
    assert found(index, published) == defined(held, published)


def test_a_repeated_equality_asks_for_two_values() -> None:
    held = ["a = 1 and a = 2", "a = 2 and a = 3 and b = 1"] * 40
    published: list[Event] = [
        {"a": [1, 2]},
        {"a": [1]},
        {"a": [2, 3, 4], "b": [1]},
        {"a": [1, 2, 3], "b": [1, 2]},
    ]
    assert found(index_of(held), published) == defined(held, published)


def test_access_paths_prefer_the_cheaper_layout() -> None:
    few_and_wide = cost.tiles_estimate(100_000, 0.5).cost, cost.columns_estimate(100_000, 1.0, 0.5, 1).cost
    assert few_and_wide[0] > few_and_wide[1]
    many_and_narrow = cost.tiles_estimate(100_000, 1e-6).cost, cost.lists_estimate(100_000, 0.3, 1.4).cost
    assert many_and_narrow[0] < many_and_narrow[1]


def test_pairs_that_serve_too_few_clauses_are_not_worth_a_visit() -> None:
    """A hundred attributes with a thousand values: one equality leaves next to nothing, a second would save nothing."""
    rng = np.random.default_rng(11)
    held = []
    for _ in range(2000):
        a, b = rng.choice(100, 2, replace=False)
        held.append(f"a{a} = {rng.integers(1000)} and a{b} = {rng.integers(1000)}")
    clusters = index_of(held).describe()[0].clusters
    assert all(c.second is None for c in clusters)
    assert len(clusters) <= 200


def test_a_sample_is_enough_to_choose_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(12)
    held = equalities(3000, rng)
    whole = index_of(held)
    monkeypatch.setattr(clustering, "SAMPLE", 500)
    published: list[Event] = [
        {f"a{k}": [int(v)] for k, v in enumerate(rng.integers(0, 40, 6))} for _ in range(300)
    ]
    from_sample = index_of(held)
    assert all(cluster.second for cluster in from_sample.describe()[0].clusters)
    assert found(from_sample, published) == found(whole, published)


def test_clauses_of_very_many_equalities_are_paired_by_their_best() -> None:
    """All pairs of a hundred equalities would be thousands for each clause."""
    held = [" and ".join(f"a{k} = {(n * k) % 7}" for k in range(100)) for n in range(300)]
    index = index_of(held)
    published: list[Event] = [{f"a{k}": [(n * k) % 7] for k in range(100)} for n in range(10)]
    assert found(index, published) == defined(held, published)


def test_codes_too_far_apart_for_narrow_rows() -> None:
    """Numbers far apart in one column, so that a code needs more than 16 bits."""
    rng = np.random.default_rng(13)
    far = [f"a{a} = {int(v)} and b{a} = {int(w)} and c = {int(x)}" for a, v, w, x in zip(
        rng.integers(0, 3, 600), rng.integers(0, 5, 600), rng.integers(0, 5, 600), rng.choice([0, 3, 200_000], 600),
        strict=True,
    )]  # fmt: skip
    with moved_limits("fixed width"):
        index = index_of(far)
    assert "equalities" in layouts(index)
    published: list[Event] = [
        {**{f"{n}{a}": [int(v)] for n in "ab" for a, v in enumerate(rng.integers(0, 5, 3))}, "c": [c]}
        for c in (0, 3, 200_000, 65_536 + 3, 4)
        for _ in range(10)
    ]
    published += [{"a0": [0, 1, 2, 3, 4], "b0": [0, 1, 2, 3, 4], "c": [3, 200_000]}]
    expected = defined(far, published)
    assert len(expected) > 100
    assert found(index, published) == expected


@FEWER
@given(held=texts, published=st.lists(events, min_size=1, max_size=8))
def test_one_at_a_time_and_all_at_once_are_the_same(held: list[str], published: list[Event]) -> None:
    index = index_of(held)
    many = published * 3  # more than a few
    together = {place % len(published) for place, _ in found(index, many)}
    one_by_one = {pair for n, event in enumerate(published) for pair in placed(found(index, [event]), n)}
    assert found(index, many) == {
        (place + n * len(published), id) for n in range(3) for place, id in one_by_one
    }
    assert together == {place for place, _ in one_by_one}


def test_a_publication_that_outgrows_the_room_for_a_few() -> None:
    """More matches, and then more atoms, than a call for a few publications has room for."""
    held = [f"price > {n % 7}" for n in range(3000)] + ["tag = 't5' and price < 3"]
    index = index_of(held)
    assert len(found(index, [{"price": [10]}])) == 3000
    many_tags: Event = {"price": [1], **{f"x{n}": [n] for n in range(3000)}, "tag": ["t5"]}
    assert found(index, [many_tags]) == defined(held, [many_tags])
    assert found(index, [{"price": [2], "tag": [f"t{n}" for n in range(2000)]}]) == defined(
        held, [{"price": [2], "tag": ["t5"]}]
    )


def test_publications_with_other_paths_one_after_the_other() -> None:
    held = ["a = 1", "b = 1", "a = 1 and b = 1", "c contains 'x'"]
    index = index_of(held)
    for event in (
        {"a": [1]},
        {"b": [1]},
        {"b": [1], "a": [1]},
        {"c": ["ox"]},
        {"c": ["oxx"], "a": [2]},
        {"a": [1]},
    ):
        assert found(index, [event]) == defined(held, [event])


def test_threads_share_an_index() -> None:
    held = [
        f"symbol = 'S{n % 50}' and price > {n % 20} and (kind = 'a' or size > {n % 5})" for n in range(2000)
    ]
    index = index_of(held)
    published: list[Event] = [
        {"symbol": [f"S{n % 50}"], "price": [n % 23], "size": [n % 7], "kind": ["ab"[n % 2]]}
        for n in range(200)
    ]
    expected = [found(index, [event]) for event in published]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda event: found(index, [event]), published * 5))
    assert answers == expected * 5
