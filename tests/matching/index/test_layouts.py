"""Layouts of clauses agree with the specification, and the cost model chooses between them."""

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
from tidings.events.predicate_compiler import parse_and_check
from tidings.events.reference_matcher import matches
from tidings.matching.compiler.plan import Compiled
from tidings.matching.index.builder import access_paths, bitmap_tiles, clustering, cost
from tidings.matching.index.index import Index
from tidings.values import show


def index_of(texts: Sequence[str]) -> Index:
    index = Index.create()
    index.add(compile_texts(texts))
    return index


def compile_texts(texts: Sequence[str]) -> Compiled:
    return compile_many(Subscription(f"s{n}", "ana", "predicates", text) for n, text in enumerate(texts))


def layouts(index: Index) -> set[str]:
    return {cluster.layout for segment in index.describe() for cluster in segment.clusters}


def matched_pairs(index: Index, published: Sequence[Event]) -> set[tuple[int, str]]:
    pairs = list(index.match(published).pairs())
    assert len(pairs) == len(set(pairs)), "a pair was found twice"
    return set(pairs)


def expected_pairs(texts: Sequence[str], published: Sequence[Event]) -> set[tuple[int, str]]:
    rejected = {reject.id for reject in compile_texts(texts).rejects}
    trees = {f"s{n}": parse_and_check(text) for n, text in enumerate(texts) if f"s{n}" not in rejected}
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
def layout_limits(layout: str) -> Iterator[None]:
    """Change limits so that few clauses get the layout of very many."""
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
@given(stored_texts=texts, published=st.lists(events, min_size=1, max_size=8))
def test_match_every_layout_agrees_with_specification(
    layout: str, stored_texts: list[str], published: list[Event]
) -> None:
    with layout_limits(layout):
        index = index_of(stored_texts)
    assert matched_pairs(index, published) == expected_pairs(stored_texts, published)
    if layout == "tiles":
        assert layouts(index) <= {"tiles"}


def intervals(rows: int, attributes: int, tests: int, rng: np.random.Generator) -> list[str]:
    """Generate texts of several ranges on any attributes, with thousands of shapes."""
    generated = []
    for _ in range(rows):
        chosen = rng.choice(attributes, tests, replace=False)
        low = rng.integers(0, 700, tests)
        generated.append(
            " and ".join(f"a{a} between {b} and {b + 300}" for a, b in zip(chosen, low, strict=True))
        )
    return generated


def test_match_many_ranges_use_bitmap_tiles() -> None:
    rng = np.random.default_rng(7)
    stored_texts = intervals(1500, 12, 5, rng)
    index = index_of(stored_texts)
    assert layouts(index) == {"tiles"}
    published: list[Event] = [
        {f"a{k}": [int(v)] for k, v in enumerate(rng.integers(0, 1000, 12))} for _ in range(30)
    ]
    published += [{}, {"a1": [500]}, {f"a{k}": [200, 800] for k in range(12)}, {"other": [1]}]
    expected = expected_pairs(stored_texts, published)
    assert len(expected) > 30
    assert matched_pairs(index, published) == expected
    assert {
        pair for n, event in enumerate(published) for pair in at_place(matched_pairs(index, [event]), n)
    } == expected


def at_place(pairs: set[tuple[int, str]], place: int) -> set[tuple[int, str]]:
    return {(place, id) for _, id in pairs}


def test_match_more_publications_than_one_pass_agrees_with_single() -> None:
    rng = np.random.default_rng(8)
    stored_texts = intervals(1200, 12, 5, rng)
    index = index_of(stored_texts)
    assert layouts(index) == {"tiles"}
    single = [{f"a{k}": [int(v)] for k, v in enumerate(rng.integers(0, 1000, 12))} for _ in range(20)]
    once = matched_pairs(index, single)
    many = matched_pairs(index, single * 150)
    assert many == {(20 * n + place, id) for n in range(150) for place, id in once}


def test_match_bitmap_filter_with_too_many_candidates_halves_portions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(9)
    stored_texts = intervals(1200, 12, 5, rng)
    index = index_of(stored_texts)
    published = [{f"a{k}": [int(v)] for k, v in enumerate(rng.integers(0, 1000, 12))} for _ in range(64)]
    assert layouts(index) == {"tiles"}
    expected = matched_pairs(index, published)
    assert expected
    monkeypatch.setattr("tidings.matching.index.matcher.MOST_CANDIDATES", 10)
    assert matched_pairs(index, published) == expected


def equalities(rows: int, rng: np.random.Generator) -> list[str]:
    """Generate texts of three equalities on six attributes with forty values each."""
    generated = []
    for _ in range(rows):
        chosen = rng.choice(6, 3, replace=False)
        generated.append(
            " and ".join(f"a{a} = {v}" for a, v in zip(chosen, rng.integers(0, 40, 3), strict=True))
        )
    return generated


def test_clusters_equalities_use_pairs() -> None:
    rng = np.random.default_rng(10)
    stored_texts = equalities(5000, rng)
    index = index_of(stored_texts)
    clusters = index.describe()[0].clusters
    assert {c.layout for c in clusters} <= {"equalities", "general"}
    assert sum(c.clauses for c in clusters if c.layout == "equalities" and c.second) > 4000
    assert len(clusters) < 15
    published: list[Event] = [
        {f"a{k}": [int(v)] for k, v in enumerate(rng.integers(0, 40, 6))} for _ in range(30)
    ]
    published += [{f"a{k}": list(range(40)) for k in range(6)}, {f"a{k}": [1, 2, 3] for k in range(5)}]
    expected = expected_pairs(stored_texts, published)
    assert {(30, f"s{n}") for n in range(5000)} <= expected
    assert matched_pairs(index, published) == expected


@pytest.mark.parametrize(("shapes", "layout"), [(1, "uniform"), (20, "equalities")])
def test_clusters_columns_are_for_few_shapes(shapes: int, layout: str) -> None:
    """Each shape in columns needs a visit: the best layout for one shape is not the best for twenty."""
    rng, chosen = np.random.default_rng(3), list(combinations(range(6), 3))[:shapes]
    values = rng.integers(0, 8, (6000, 3)).tolist()
    stored_texts = [
        " and ".join(f"a{at} = {value}" for at, value in zip(chosen[n % shapes], row, strict=True))
        for n, row in enumerate(values)
    ]
    index = index_of(stored_texts)
    assert {c.layout for c in index.describe()[0].clusters} == {layout}
    published: list[Event] = [
        {f"a{k}": [int(v)] for k, v in enumerate(rng.integers(0, 8, 6))} for _ in range(20)
    ]
    assert matched_pairs(index, published) == expected_pairs(stored_texts, published)


def test_match_more_visits_than_one_portion_agrees_with_specification() -> None:
    """A text that contains hundreds of patterns leads to hundreds of buckets."""
    words = [f"w{n:03d}" for n in range(300)]
    stored_texts = [f"text contains '{word}' and kind = 'k{n % 3}'" for n, word in enumerate(words)] * 3
    index = index_of(stored_texts)
    published: list[Event] = [
        {"text": [" ".join(words)], "kind": ["k0", "k1"]},
        {"text": ["w001 w002"], "kind": ["k1"]},
    ]
    assert matched_pairs(index, published) == expected_pairs(stored_texts, published)


def test_match_two_equalities_on_path_require_two_values() -> None:
    stored_texts = ["a = 1 and a = 2", "a = 2 and a = 3 and b = 1"] * 40
    published: list[Event] = [
        {"a": [1, 2]},
        {"a": [1]},
        {"a": [2, 3, 4], "b": [1]},
        {"a": [1, 2, 3], "b": [1, 2]},
    ]
    assert matched_pairs(index_of(stored_texts), published) == expected_pairs(stored_texts, published)


def test_access_paths_prefer_cheaper_layout() -> None:
    few_and_wide = cost.tiles_estimate(100_000, 0.5).cost, cost.columns_estimate(100_000, 1.0, 0.5, 1).cost
    assert few_and_wide[0] > few_and_wide[1]
    many_and_narrow = cost.tiles_estimate(100_000, 1e-6).cost, cost.lists_estimate(100_000, 0.3, 1.4).cost
    assert many_and_narrow[0] < many_and_narrow[1]


def test_clusters_pairs_with_few_clauses_are_not_used() -> None:
    """A hundred attributes with a thousand values: after one equality few clauses remain, so a second saves nothing."""
    rng = np.random.default_rng(11)
    stored_texts = []
    for _ in range(2000):
        a, b = rng.choice(100, 2, replace=False)
        stored_texts.append(f"a{a} = {rng.integers(1000)} and a{b} = {rng.integers(1000)}")
    clusters = index_of(stored_texts).describe()[0].clusters
    assert all(c.second is None for c in clusters)
    assert len(clusters) <= 200


def test_clusters_pairs_are_chosen_from_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(12)
    stored_texts = equalities(3000, rng)
    whole = index_of(stored_texts)
    monkeypatch.setattr(clustering, "SAMPLE", 500)
    published: list[Event] = [
        {f"a{k}": [int(v)] for k, v in enumerate(rng.integers(0, 40, 6))} for _ in range(300)
    ]
    from_sample = index_of(stored_texts)
    assert all(cluster.second for cluster in from_sample.describe()[0].clusters)
    assert matched_pairs(from_sample, published) == matched_pairs(whole, published)


def test_clusters_clauses_of_many_equalities_use_best_pairs() -> None:
    """A clause of a hundred equalities has thousands of pairs."""
    stored_texts = [" and ".join(f"a{k} = {(n * k) % 7}" for k in range(100)) for n in range(300)]
    index = index_of(stored_texts)
    published: list[Event] = [{f"a{k}": [(n * k) % 7] for k in range(100)} for n in range(10)]
    assert matched_pairs(index, published) == expected_pairs(stored_texts, published)


def test_match_codes_wider_than_16_bits_agree_with_specification() -> None:
    """Numbers far apart in one column, so that a code needs more than 16 bits."""
    rng = np.random.default_rng(13)
    far = [f"a{a} = {int(v)} and b{a} = {int(w)} and c = {int(x)}" for a, v, w, x in zip(
        rng.integers(0, 3, 600), rng.integers(0, 5, 600), rng.integers(0, 5, 600), rng.choice([0, 3, 200_000], 600),
        strict=True,
    )]  # fmt: skip
    with layout_limits("fixed width"):
        index = index_of(far)
    assert "equalities" in layouts(index)
    published: list[Event] = [
        {**{f"{n}{a}": [int(v)] for n in "ab" for a, v in enumerate(rng.integers(0, 5, 3))}, "c": [c]}
        for c in (0, 3, 200_000, 65_536 + 3, 4)
        for _ in range(10)
    ]
    published += [{"a0": [0, 1, 2, 3, 4], "b0": [0, 1, 2, 3, 4], "c": [3, 200_000]}]
    expected = expected_pairs(far, published)
    assert len(expected) > 100
    assert matched_pairs(index, published) == expected


@FEWER
@given(stored_texts=texts, published=st.lists(events, min_size=1, max_size=8))
def test_match_single_publications_equal_batch(stored_texts: list[str], published: list[Event]) -> None:
    index = index_of(stored_texts)
    many = published * 3  # more than a few
    matched_places = {place % len(published) for place, _ in matched_pairs(index, many)}
    single_pairs = {
        pair for n, event in enumerate(published) for pair in at_place(matched_pairs(index, [event]), n)
    }
    assert matched_pairs(index, many) == {
        (place + n * len(published), id) for n in range(3) for place, id in single_pairs
    }
    assert matched_places == {place for place, _ in single_pairs}


def test_match_single_publication_grows_buffers() -> None:
    """First more matches, then more atoms than the buffers for few publications."""
    stored_texts = [f"price > {n % 7}" for n in range(3000)] + ["tag = 't5' and price < 3"]
    index = index_of(stored_texts)
    assert len(matched_pairs(index, [{"price": [10]}])) == 3000
    many_tags: Event = {"price": [1], **{f"x{n}": [n] for n in range(3000)}, "tag": ["t5"]}
    assert matched_pairs(index, [many_tags]) == expected_pairs(stored_texts, [many_tags])
    assert matched_pairs(index, [{"price": [2], "tag": [f"t{n}" for n in range(2000)]}]) == expected_pairs(
        stored_texts, [{"price": [2], "tag": ["t5"]}]
    )


def test_match_successive_publications_with_other_paths() -> None:
    stored_texts = ["a = 1", "b = 1", "a = 1 and b = 1", "c contains 'x'"]
    index = index_of(stored_texts)
    for event in (
        {"a": [1]},
        {"b": [1]},
        {"b": [1], "a": [1]},
        {"c": ["ox"]},
        {"c": ["oxx"], "a": [2]},
        {"a": [1]},
    ):
        assert matched_pairs(index, [event]) == expected_pairs(stored_texts, [event])


def test_match_from_several_threads_agrees_with_single() -> None:
    stored_texts = [
        f"symbol = 'S{n % 50}' and price > {n % 20} and (kind = 'a' or size > {n % 5})" for n in range(2000)
    ]
    index = index_of(stored_texts)
    published: list[Event] = [
        {"symbol": [f"S{n % 50}"], "price": [n % 23], "size": [n % 7], "kind": ["ab"[n % 2]]}
        for n in range(200)
    ]
    expected = [matched_pairs(index, [event]) for event in published]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda event: matched_pairs(index, [event]), published * 5))
    assert answers == expected * 5
