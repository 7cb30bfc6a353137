"""The index: uniform clusters, versions on disk, growth, removal and compaction."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.events.evaluation import satisfies
from tests.contracts.test_matchers import FEWER
from tests.support.oracles.index_algorithm import compiled_of
from tests.support.strategies.plans import a_test, events, plans
from tidings.atoms import Aspect, AtomKind, Atoms, Column, Event
from tidings.errors import InputError, SetupError
from tidings.events.predicate_compiler import parse_and_check
from tidings.events.reference_matcher import matches
from tidings.matching.compiler.compilation import compile_many
from tidings.matching.compiler.plan import Compiled, Plan, Relation
from tidings.matching.index.builder import access_paths
from tidings.matching.index.index import Index
from tidings.matching.kernels import encode
from tidings.model import Subscription
from tidings.values import parse_instant, show


def compile_texts(**texts: str) -> Compiled:
    return compile_many([Subscription(id, "ana", "predicates", text) for id, text in texts.items()])


def matched_pairs(index: Index, *published: Event) -> set[tuple[int, str]]:
    pairs = list(index.match(published).pairs())
    assert len(pairs) == len(set(pairs)), "a pair was found twice"
    return set(pairs)


@FEWER
@given(
    stored_plans=st.lists(plans, min_size=1, max_size=20), published=st.lists(events, min_size=1, max_size=8)
)
def test_match_uniform_clusters_agree_with_specification(
    stored_plans: list[Plan], published: list[Event]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(access_paths, "UNIFORM_FROM", 1)
        patch.setattr(access_paths, "SPARSE_BELOW", 0)
        index = Index.create()
        index.add(compiled_of({f"s{number}": plan for number, plan in enumerate(stored_plans)}))
    expected = {
        (place, f"s{number}")
        for place, event in enumerate(published)
        for number, plan in enumerate(stored_plans)
        if satisfies(plan, event)
    }
    assert matched_pairs(index, *published) == expected


values = st.sampled_from([1, 2, 2.5, "x", "y", True])
equalities = st.builds(lambda path, value: f"{path} = {show(value)}", st.sampled_from("abc"), values)
others = st.sampled_from(
    ["a > 1", "b <= 'x'", "c between 1 and 2", "a in (1, 'x')", "not b = 2", "c != 'y'", "exists a"]
)
mixtures = st.lists(equalities, min_size=1, max_size=3).flatmap(
    lambda held: st.lists(others, max_size=2).map(lambda more: " and ".join(held + more))
)
small_events = st.dictionaries(st.sampled_from("abc"), st.lists(values, min_size=1, max_size=2), max_size=3)


@pytest.mark.parametrize("uniform_from, sparse_below", [(64, 4.0), (1, 0.0), (2, 0.5)])
@given(
    texts=st.lists(mixtures, min_size=1, max_size=40),
    published=st.lists(small_events, min_size=1, max_size=6),
)
def test_match_mixtures_of_equalities_in_every_layout_agree_with_specification(
    uniform_from: int, sparse_below: float, texts: list[str], published: list[Event]
) -> None:
    rows = compile_texts(**{f"s{number}": text for number, text in enumerate(texts)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(access_paths, "UNIFORM_FROM", uniform_from)
        patch.setattr(access_paths, "SPARSE_BELOW", sparse_below)
        index = Index.create()
        index.add(rows)
    rejected = {reject.id for reject in rows.rejects}
    trees = {f"s{n}": parse_and_check(t) for n, t in enumerate(texts) if f"s{n}" not in rejected}
    assert matched_pairs(index, *published) == {
        (place, id)
        for place, event in enumerate(published)
        for id, tree in trees.items()
        if matches(tree, event)
    }


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_match_many_clauses_of_one_shape_are_complete(seed: int) -> None:
    """Buckets longer than a tile, results longer than the first buffer, batches large enough to sort."""
    rng = np.random.default_rng(seed)
    rows = 6000
    symbol, low, high = (rng.integers(0, top, rows) for top in (3, 1000, 1000))
    index = Index.create()
    index.add(
        compile_texts(
            **{
                f"s{i}": f"symbol = 'S{symbol[i]}' and price > {low[i]} and open <= {high[i]}"
                for i in range(rows)
            }
        )
    )
    assert [cluster.layout for cluster in index.describe()[0].clusters] == ["uniform"]
    published = [
        {
            "symbol": [f"S{rng.integers(0, 4)}"],
            "price": [int(rng.integers(0, 1000))],
            "open": [float(rng.uniform(0, 1000))],
        }
        for _ in range(300)
    ]
    expected = {
        (place, f"s{i}")
        for place, event in enumerate(published)
        for i in np.flatnonzero(
            (symbol == int(event["symbol"][0][1:])) & (low < event["price"][0]) & (high >= event["open"][0])
        )
    }
    assert matched_pairs(index, *published) == expected


def test_match_value_with_many_codes_grows_buffer() -> None:
    patterns = [f"{i:b}" for i in range(1, 400)]
    index = Index.create()
    index.add(compile_texts(**{p: f"text contains '{p}'" for p in patterns}))
    text = "1011011100010010" * 3
    assert {id for _, id in matched_pairs(index, {"text": [text]})} == {p for p in patterns if p in text}


def test_match_text_full_of_patterns_takes_linear_time() -> None:
    """At each of 300,000 positions up to 2,000 patterns end: visiting each of them would be 600 million hits."""
    patterns = ["a" * (i + 1) for i in range(2000)]
    index = Index.create()
    index.add(compile_texts(**{f"s{i}": f"text contains '{p}' and n > 0" for i, p in enumerate(patterns)}))
    event = {"text": ["a" * 300_000, "ab" * 1000], "n": [1]}
    assert len(index.match([event, {"text": ["ba"], "n": [1]}])) == 2001


def test_match_many_values_use_search_instead_of_scan() -> None:
    """Fifty thousand values at two paths and twenty thousand clauses: scanning would be a billion steps."""
    size, rows = 50_000, 20_000
    index = Index.create()
    index.add(compile_texts(**{f"s{i}": f"a = {3 * i} and b > {i} and c != 7" for i in range(rows)}))
    event = {"a": list(range(size)), "b": list(range(10_000)), "c": [7, 7, 8]}
    expected = {f"s{i}" for i in range(rows) if 3 * i < size and i < 9_999}
    assert {id for _, id in matched_pairs(index, event)} == expected


def test_match_empty_pattern_is_in_every_string() -> None:
    tests = {
        aspect.name: a_test(Column("a", aspect), Relation.EQ, "") for aspect in Aspect if 2 <= aspect <= 4
    }
    index = Index.create()
    index.add(compiled_of({name: Plan(((test,),)) for name, test in tests.items()}))
    assert {id for _, id in matched_pairs(index, {"a": ["", "xx"]})} == set(tests)
    assert matched_pairs(index, {"a": [7]}) == set()


def test_open_restores_index(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "index")
    index.add(compile_texts(cheap="price < 200", toy="kind = 'toy'"))
    index.remove(["toy"])
    reopened = Index.open(tmp_path / "index")
    assert (reopened.version, reopened.size) == (index.version, 1)
    assert reopened.paths == ("kind", "price")
    assert matched_pairs(reopened, {"price": [5], "kind": ["toy"]}) == {(0, "cheap")}


def test_open_reader_keeps_version_during_writes(tmp_path: Path) -> None:
    writer = Index.create(tmp_path / "index")
    writer.add(compile_texts(cheap="price < 200"))
    reader = Index.open(tmp_path / "index")
    writer.add(compile_texts(cheap="price < 100", dear="price > 1000"))
    writer.compact()
    assert matched_pairs(reader, {"price": [150]}) == {(0, "cheap")}
    assert matched_pairs(Index.open(tmp_path / "index", reader.version), {"price": [150]}) == {(0, "cheap")}
    assert matched_pairs(writer, {"price": [150]}) == set()
    assert matched_pairs(Index.open(tmp_path / "index"), {"price": [2000]}) == {(0, "dear")}


def test_compact_keeps_matches_and_drops_dead_rows(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "index")
    for number in range(10):
        index.add(compile_texts(**{f"s{number}": f"price > {number}", f"t{number}": "kind in ('a', 'b')"}))
    index.remove([f"t{number}" for number in range(9)])
    before = matched_pairs(index, {"price": [5], "kind": ["b"]})
    index.compact(most=4)
    assert len(index.describe()) <= 4
    assert matched_pairs(index, {"price": [5], "kind": ["b"]}) == before
    index.compact()
    assert [(s.subscriptions, s.removed) for s in index.describe()] == [(11, 0)]
    assert matched_pairs(index, {"price": [5], "kind": ["b"]}) == before


def test_compact_single_segment_changes_nothing(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "index")
    assert index.compact() == index.version
    index.add(compile_texts(cheap="price < 200"))
    assert index.compact() == index.version


def test_remove_all_leaves_empty_index(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "index")
    index.add(compile_texts(a="price < 200", b="price > 5"))
    assert index.remove(["a", "b", "unknown"]) == 2
    assert (index.size, index.paths, matched_pairs(index, {"price": [7]})) == (0, (), set())
    assert index.remove(["a"]) == 0


def test_collect_deletes_only_files_of_dropped_versions(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    index = Index.create(folder)
    for number in range(4):
        index.add(compile_texts(**{f"s{number}": f"price > {number}"}))
    index.remove(["s0"])
    index.compact()
    index.collect(keep_versions=1)
    files = sorted(path.name.split("-")[0] for path in folder.iterdir())
    assert files == ["CURRENT", "manifest", "segment"]
    assert matched_pairs(Index.open(folder), {"price": [9]}) == {(0, f"s{number}") for number in (1, 2, 3)}
    with pytest.raises(SetupError, match="version 2 of the index no longer exists"):
        Index.open(folder, 2)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux lists what a process has mapped")
def test_collect_unmaps_deleted_files(tmp_path: Path) -> None:
    """A mapped file occupies the disk after it was deleted, and a stream runs for months."""
    folder = tmp_path / "index"
    index = Index.create(folder)
    for number in range(6):
        index.add(compile_texts(**{f"s{number}": f"price > {number}", f"t{number}": "exists price"}))
        index.remove([f"t{number}"])
        assert len(index.match([{"price": [100]}])) == number + 1
        index.collect(keep_versions=1)
    index.compact()
    index.collect(keep_versions=1)
    assert len(index.match([{"price": [100]}])) == 6
    mapped = [line for line in Path("/proc/self/maps").read_text().splitlines() if str(folder) in line]
    assert mapped
    assert not [line for line in mapped if line.endswith("(deleted)")]


def test_add_after_crashed_writer_succeeds(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    Index.create(folder).add(compile_texts(cheap="price < 200"))
    old = Index.open(folder).version
    Index.open(folder).add(compile_texts(dear="price > 1000"))
    (folder / "segment-half.unfinished").mkdir()
    index = Index.open(folder, old)
    index.add(compile_texts(toy="kind = 'toy'"))
    assert matched_pairs(Index.open(folder), {"price": [5, 2000], "kind": ["toy"]}) == {
        (0, "cheap"),
        (0, "toy"),
    }


def test_create_in_folder_with_index_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="no index in this folder"):
        Index.open(tmp_path)
    Index.create(tmp_path)
    with pytest.raises(SetupError, match="the folder already contains an index"):
        Index.create(tmp_path)


def test_match_result_has_subscriptions() -> None:
    index = Index.create()
    index.add(compile_texts(cheap="price < 200"))
    both = index.match([{"price": [500]}, {"price": [5]}])
    assert both.subscriptions() == [Subscription("cheap", "ana", "predicates", "price < 200")]
    assert both.publication.tolist() == [1]
    empty = Index.create().match([{"price": [5]}])
    assert (len(empty), empty.subscriptions(), empty.ids().to_pylist()) == (0, [], [])


def test_clusters_key_is_chosen_by_statistics() -> None:
    rows = {f"s{i}": f"color = 'c{i % 3}' and symbol = 'S{i % 10}' and price > {i}" for i in range(3000)}
    index = Index.create()
    index.add(compile_texts(**rows))
    assert [(c.layout, c.key, c.cut) for c in index.describe()[0].clusters] == [
        ("uniform", "symbol", "color")
    ]


def test_clusters_many_shapes_share_few_clusters() -> None:
    """Two equalities out of five attributes in any combination, and one other test."""
    rng = np.random.default_rng(5)
    rows = {}
    for i in range(2000):
        a, b, c = rng.choice(5, 3, replace=False)
        rows[f"s{i}"] = (
            f"a{a} = {rng.integers(20)} and a{b} = {rng.integers(20)} and a{c} > {rng.integers(20)}"
        )
    compiled_rows = compile_texts(**rows)
    index = Index.create()
    index.add(compiled_rows)
    assert len(compiled_rows.blocks) > 20 and len(compiled_rows.irregular.rows) > 100
    clusters = index.describe()[0].clusters
    assert len(clusters) <= 10
    assert all(c.key and c.second for c in clusters)
    published = [{f"a{k}": [int(rng.integers(20))] for k in range(5)} for _ in range(50)]
    trees = {id: parse_and_check(text) for id, text in rows.items()}
    expected = {
        (place, id)
        for place, event in enumerate(published)
        for id, tree in trees.items()
        if matches(tree, event)
    }
    assert matched_pairs(index, *published) == expected
    assert expected


def test_clusters_equalities_of_several_kinds_share_cluster() -> None:
    index = Index.create()
    index.add(
        compile_texts(
            text="a = 'x' and n = 'y'",
            number="a = 1 and n = 2",
            both="a = 'x' and n = 2",
            true="a = true and n = true",
        )
    )
    alone = Index.create()
    alone.add(compile_texts(text="a = 'x'", number="a = 1", true="a = true"))
    assert len(alone.describe()[0].clusters) == 1
    assert matched_pairs(alone, {"a": ["x"]}, {"a": [1]}, {"a": [True]}) == {
        (0, "text"),
        (1, "number"),
        (2, "true"),
    }
    for event, expected in {
        ("x", "y"): "text",
        (1, 2): "number",
        ("x", 2): "both",
        (True, True): "true",
    }.items():
        assert matched_pairs(index, {"a": [event[0]], "n": [event[1]]}) == {(0, expected)}


def test_match_empty_batch_and_publications_without_values() -> None:
    index = Index.create()
    index.add(compile_texts(cheap="price < 200", without="not exists price"))
    assert matched_pairs(index) == set()
    assert matched_pairs(index, {}, {"other": [1]}) == {(0, "without"), (1, "without")}


@pytest.mark.parametrize("most", [1, 700, 10**6])
def test_match_parts_together_equal_match(most: int) -> None:
    index = Index.create()
    index.add(compile_texts(**{f"s{i}": f"price > {i}" for i in range(20)}, without="not exists price"))
    atoms = Atoms.of([{"price": [i % 30]} if i % 7 else {} for i in range(500)])
    parts = [
        (first + place, id) for first, part in index.match_parts(atoms, most) for place, id in part.pairs()
    ]
    assert sorted(parts) == sorted(index.match(atoms).pairs())
    assert len(parts) > 5000


def test_encode_constants_equal_those_of_atoms() -> None:
    aspects = (Aspect.VALUE, Aspect.INSTANT, Aspect.PREFIX, Aspect.SUFFIX, Aspect.SUBSTRING)
    kinds = (AtomKind.INTEGER, AtomKind.DOUBLE, AtomKind.STRING, AtomKind.BOOLEAN)
    assert aspects == (encode.VALUE, encode.INSTANT, encode.PREFIX, encode.SUFFIX, encode.SUBSTRING)
    assert kinds == (encode.INTEGER, encode.DOUBLE, encode.STRING, encode.BOOLEAN)


digits = st.text("0123456789-:.TtZz+ ", min_size=8, max_size=45)
moments = st.builds(
    lambda day, rest: day + rest,
    st.sampled_from(
        ["2004-02-29", "2005-02-29", "0001-01-01", "0000-01-01", "9999-12-31", "2004-13-01", "2016-12-31"]
    ),
    st.sampled_from(
        [
            *("", "T00:00", "T23:59:59", " 12:30:00.123456789", "T12:30:00.", "T24:00:00", "T1:00"),
            *(
                "t12:30:00",
                "T12:30:00.1234560000",
                "T12:30:00.0000000000001",
                "T23:59:60",
                "T21:59:60.5",
                "T03:29:60",
            ),
        ]
    ).flatmap(
        lambda time: st.sampled_from(
            ["", "Z", "z", "+02:00", "-02:00", "+0330", "-0330", "+24:00", "+2:00", "Zx"]
        ).map(time.__add__)
    ),
)


@given(text=digits | moments)
def test_read_instant_agrees_with_parse_instant(text: str) -> None:
    data = np.frombuffer(text.encode(), np.uint8)
    read = encode.read_instant(data, 0, len(data))
    expected = parse_instant(text)
    assert (None if read == encode.NO_INSTANT else read) == (expected and expected.ticks)


def test_atoms_of_given_paths_only() -> None:
    atoms = Atoms.of([{"a": [1, "x"], "b": [2.5]}, {"b": [True]}], paths=("b",))
    assert (atoms.paths, atoms.count, atoms.starts.tolist()) == (("b",), 2, [0, 1, 2])


@pytest.mark.parametrize(
    "values", [[None], [float("nan")], [float("inf")], ["\ud800"], [10**400], [b"x"], 1, "text"]
)
def test_match_invalid_value_is_rejected(values: object) -> None:
    index = Index.create()
    index.add(compile_texts(cheap="price < 200"))
    with pytest.raises(InputError, match="price"):
        index.match([{"price": values}])  # type: ignore[dict-item]


def test_match_integer_beyond_64_bits_is_nearest_double() -> None:
    index = Index.create()
    index.add(compile_texts(huge="n > 1e20", exact="n = 9223372036854775807"))
    assert matched_pairs(index, {"n": [2**70]}, {"n": [2**63 - 1]}) == {(0, "huge"), (1, "exact")}


@pytest.mark.parametrize("value", [1e-31, -1e-31, 5e-324, 2 - 2**-52, -1 - 2**-52, -0.0, 0, 1.0, -2])
def test_match_value_next_to_integer_is_exact(value: float) -> None:
    """Consecutive constants -1, 0, 1 are their own codes: relative to -1, 1e-31 and 0 are the same double."""
    operators = ("=", "!=", "<", "<=", ">", ">=")
    texts = [f"n {operator} {constant}" for operator in operators for constant in (-1, 0, 1)]
    index = Index.create()
    index.add(compile_texts(**{text: text for text in texts}))
    event: Event = {"n": [value]}
    assert matched_pairs(index, event) == {
        (0, text) for text in texts if matches(parse_and_check(text), event)
    }
