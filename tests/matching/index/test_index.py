"""The index: its uniform clusters, its versions on disk, and how it grows and shrinks."""

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
from tidings.events.explanation import matches
from tidings.events.predicate_compiler import parse_and_check
from tidings.matching.compiler.compilation import compile_many
from tidings.matching.compiler.plan import Compiled, Plan, Relation
from tidings.matching.index.builder import access_paths
from tidings.matching.index.index import Index
from tidings.matching.kernels import encode
from tidings.model import Subscription
from tidings.values import parse_instant, show


def compiled(**texts: str) -> Compiled:
    return compile_many([Subscription(id, "ana", "predicates", text) for id, text in texts.items()])


def found(index: Index, *published: Event) -> set[tuple[int, str]]:
    pairs = list(index.match(published).pairs())
    assert len(pairs) == len(set(pairs)), "a pair was found twice"
    return set(pairs)


@FEWER
@given(held=st.lists(plans, min_size=1, max_size=20), published=st.lists(events, min_size=1, max_size=8))
def test_uniform_clusters_answer_as_the_definition(held: list[Plan], published: list[Event]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(access_paths, "UNIFORM_FROM", 1)
        patch.setattr(access_paths, "SPARSE_BELOW", 0)
        index = Index.create()
        index.add(compiled_of({f"s{number}": plan for number, plan in enumerate(held)}))
    expected = {
        (place, f"s{number}")
        for place, event in enumerate(published)
        for number, plan in enumerate(held)
        if satisfies(plan, event)
    }
    assert found(index, *published) == expected


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
def test_mixtures_of_equalities_in_every_layout(
    uniform_from: int, sparse_below: float, texts: list[str], published: list[Event]
) -> None:
    rows = compiled(**{f"s{number}": text for number, text in enumerate(texts)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(access_paths, "UNIFORM_FROM", uniform_from)
        patch.setattr(access_paths, "SPARSE_BELOW", sparse_below)
        index = Index.create()
        index.add(rows)
    refused = {reject.id for reject in rows.rejects}
    trees = {f"s{n}": parse_and_check(t) for n, t in enumerate(texts) if f"s{n}" not in refused}
    assert found(index, *published) == {
        (place, id)
        for place, event in enumerate(published)
        for id, tree in trees.items()
        if matches(tree, event)
    }


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_many_clauses_of_one_shape(seed: int) -> None:
    """Buckets longer than a tile, results longer than the first buffer, batches worth sorting."""
    rng = np.random.default_rng(seed)
    rows = 6000
    symbol, low, high = (rng.integers(0, top, rows) for top in (3, 1000, 1000))
    index = Index.create()
    index.add(
        compiled(
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
    assert found(index, *published) == expected


def test_one_value_may_have_more_codes_than_there_was_room_for() -> None:
    patterns = [f"{i:b}" for i in range(1, 400)]
    index = Index.create()
    index.add(compiled(**{p: f"text contains '{p}'" for p in patterns}))
    text = "1011011100010010" * 3
    assert {id for _, id in found(index, {"text": [text]})} == {p for p in patterns if p in text}


def test_a_text_that_is_full_of_patterns_costs_no_more_than_its_length() -> None:
    """Each of 300,000 places ends up to 2,000 patterns; without looking twice at any that is 600 million hits."""
    patterns = ["a" * (i + 1) for i in range(2000)]
    index = Index.create()
    index.add(compiled(**{f"s{i}": f"text contains '{p}' and n > 0" for i, p in enumerate(patterns)}))
    event = {"text": ["a" * 300_000, "ab" * 1000], "n": [1]}
    assert len(index.match([event, {"text": ["ba"], "n": [1]}])) == 2001


def test_many_values_are_sought_not_walked_through() -> None:
    """Fifty thousand values at two paths and twenty thousand clauses on them: walking would be a billion steps."""
    size, rows = 50_000, 20_000
    index = Index.create()
    index.add(compiled(**{f"s{i}": f"a = {3 * i} and b > {i} and c != 7" for i in range(rows)}))
    event = {"a": list(range(size)), "b": list(range(10_000)), "c": [7, 7, 8]}
    expected = {f"s{i}" for i in range(rows) if 3 * i < size and i < 9_999}
    assert {id for _, id in found(index, event)} == expected


def test_an_empty_pattern_is_in_every_string() -> None:
    tests = {
        aspect.name: a_test(Column("a", aspect), Relation.EQ, "") for aspect in Aspect if 2 <= aspect <= 4
    }
    index = Index.create()
    index.add(compiled_of({name: Plan(((test,),)) for name, test in tests.items()}))
    assert {id for _, id in found(index, {"a": ["", "xx"]})} == set(tests)
    assert found(index, {"a": [7]}) == set()


def test_an_index_is_opened_again(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "index")
    index.add(compiled(cheap="price < 200", toy="kind = 'toy'"))
    index.remove(["toy"])
    again = Index.open(tmp_path / "index")
    assert (again.version, again.size) == (index.version, 1)
    assert again.paths == ("kind", "price")
    assert found(again, {"price": [5], "kind": ["toy"]}) == {(0, "cheap")}


def test_a_reader_is_not_disturbed_by_a_writer(tmp_path: Path) -> None:
    writer = Index.create(tmp_path / "index")
    writer.add(compiled(cheap="price < 200"))
    reader = Index.open(tmp_path / "index")
    writer.add(compiled(cheap="price < 100", dear="price > 1000"))
    writer.compact()
    assert found(reader, {"price": [150]}) == {(0, "cheap")}
    assert found(Index.open(tmp_path / "index", reader.version), {"price": [150]}) == {(0, "cheap")}
    assert found(writer, {"price": [150]}) == set()
    assert found(Index.open(tmp_path / "index"), {"price": [2000]}) == {(0, "dear")}


def test_compaction_keeps_the_answers_and_drops_what_is_dead(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "index")
    for number in range(10):
        index.add(compiled(**{f"s{number}": f"price > {number}", f"t{number}": "kind in ('a', 'b')"}))
    index.remove([f"t{number}" for number in range(9)])
    before = found(index, {"price": [5], "kind": ["b"]})
    index.compact(most=4)
    assert len(index.describe()) <= 4
    assert found(index, {"price": [5], "kind": ["b"]}) == before
    index.compact()
    assert [(s.subscriptions, s.removed) for s in index.describe()] == [(11, 0)]
    assert found(index, {"price": [5], "kind": ["b"]}) == before


def test_compacting_what_is_compact_changes_nothing(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "index")
    assert index.compact() == index.version
    index.add(compiled(cheap="price < 200"))
    assert index.compact() == index.version


def test_removing_everything_leaves_an_empty_index(tmp_path: Path) -> None:
    index = Index.create(tmp_path / "index")
    index.add(compiled(a="price < 200", b="price > 5"))
    assert index.remove(["a", "b", "never was"]) == 2
    assert (index.size, index.paths, found(index, {"price": [7]})) == (0, (), set())
    assert index.remove(["a"]) == 0


def test_collecting_deletes_only_what_no_kept_version_uses(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    index = Index.create(folder)
    for number in range(4):
        index.add(compiled(**{f"s{number}": f"price > {number}"}))
    index.remove(["s0"])
    index.compact()
    index.collect(keep_versions=1)
    kept = sorted(path.name.split("-")[0] for path in folder.iterdir())
    assert kept == ["CURRENT", "manifest", "segment"]
    assert found(Index.open(folder), {"price": [9]}) == {(0, f"s{number}") for number in (1, 2, 3)}
    with pytest.raises(SetupError, match="version 2 of the index no longer exists"):
        Index.open(folder, 2)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux lists what a process has mapped")
def test_an_index_lets_go_of_what_it_no_longer_uses(tmp_path: Path) -> None:
    """A mapped file keeps its place on the disk after it was deleted; a stream runs for months."""
    folder = tmp_path / "index"
    index = Index.create(folder)
    for number in range(6):
        index.add(compiled(**{f"s{number}": f"price > {number}", f"t{number}": "exists price"}))
        index.remove([f"t{number}"])
        assert len(index.match([{"price": [100]}])) == number + 1
        index.collect(keep_versions=1)
    index.compact()
    index.collect(keep_versions=1)
    assert len(index.match([{"price": [100]}])) == 6
    mapped = [line for line in Path("/proc/self/maps").read_text().splitlines() if str(folder) in line]
    assert mapped
    assert not [line for line in mapped if line.endswith("(deleted)")]


def test_index_after_a_crashed_writer_accepts_changes(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    Index.create(folder).add(compiled(cheap="price < 200"))
    old = Index.open(folder).version
    Index.open(folder).add(compiled(dear="price > 1000"))
    (folder / "segment-half.unfinished").mkdir()
    index = Index.open(folder, old)
    index.add(compiled(toy="kind = 'toy'"))
    assert found(Index.open(folder), {"price": [5, 2000], "kind": ["toy"]}) == {(0, "cheap"), (0, "toy")}


def test_create_in_a_folder_with_an_index_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="no index in this folder"):
        Index.open(tmp_path)
    Index.create(tmp_path)
    with pytest.raises(SetupError, match="the folder already contains an index"):
        Index.create(tmp_path)


def test_matches_know_their_subscriptions() -> None:
    index = Index.create()
    index.add(compiled(cheap="price < 200"))
    both = index.match([{"price": [500]}, {"price": [5]}])
    assert both.subscriptions() == [Subscription("cheap", "ana", "predicates", "price < 200")]
    assert both.publication.tolist() == [1]
    empty = Index.create().match([{"price": [5]}])
    assert (len(empty), empty.subscriptions(), empty.ids().to_pylist()) == (0, [], [])


def test_statistics_choose_the_key_not_the_text() -> None:
    rows = {f"s{i}": f"color = 'c{i % 3}' and symbol = 'S{i % 10}' and price > {i}" for i in range(3000)}
    index = Index.create()
    index.add(compiled(**rows))
    assert [(c.layout, c.key, c.cut) for c in index.describe()[0].clusters] == [
        ("uniform", "symbol", "color")
    ]


def test_many_shapes_share_few_clusters() -> None:
    """Two equalities out of five attributes in any combination, with other tests beside them."""
    rng = np.random.default_rng(5)
    rows = {}
    for i in range(2000):
        a, b, c = rng.choice(5, 3, replace=False)
        rows[f"s{i}"] = (
            f"a{a} = {rng.integers(20)} and a{b} = {rng.integers(20)} and a{c} > {rng.integers(20)}"
        )
    compiled_rows = compiled(**rows)
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
    assert found(index, *published) == expected
    assert expected


def test_equalities_of_several_kinds_share_a_cluster() -> None:
    index = Index.create()
    index.add(
        compiled(
            text="a = 'x' and n = 'y'",
            number="a = 1 and n = 2",
            both="a = 'x' and n = 2",
            true="a = true and n = true",
        )
    )
    alone = Index.create()
    alone.add(compiled(text="a = 'x'", number="a = 1", true="a = true"))
    assert len(alone.describe()[0].clusters) == 1
    assert found(alone, {"a": ["x"]}, {"a": [1]}, {"a": [True]}) == {(0, "text"), (1, "number"), (2, "true")}
    for event, expected in {
        ("x", "y"): "text",
        (1, 2): "number",
        ("x", 2): "both",
        (True, True): "true",
    }.items():
        assert found(index, {"a": [event[0]], "n": [event[1]]}) == {(0, expected)}


def test_a_batch_of_no_publications_and_publications_of_no_values() -> None:
    index = Index.create()
    index.add(compiled(cheap="price < 200", without="not exists price"))
    assert found(index) == set()
    assert found(index, {}, {"other": [1]}) == {(0, "without"), (1, "without")}


@pytest.mark.parametrize("most", [1, 700, 10**6])
def test_parts_of_a_batch_are_the_batch(most: int) -> None:
    index = Index.create()
    index.add(compiled(**{f"s{i}": f"price > {i}" for i in range(20)}, without="not exists price"))
    atoms = Atoms.of([{"price": [i % 30]} if i % 7 else {} for i in range(500)])
    parts = [
        (first + place, id) for first, found in index.match_parts(atoms, most) for place, id in found.pairs()
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


def test_atoms_of_some_paths_only() -> None:
    atoms = Atoms.of([{"a": [1, "x"], "b": [2.5]}, {"b": [True]}], paths=("b",))
    assert (atoms.paths, atoms.count, atoms.starts.tolist()) == (("b",), 2, [0, 1, 2])


@pytest.mark.parametrize(
    "values", [[None], [float("nan")], [float("inf")], ["\ud800"], [10**400], [b"x"], 1, "text"]
)
def test_match_of_an_invalid_value_is_refused(values: object) -> None:
    index = Index.create()
    index.add(compiled(cheap="price < 200"))
    with pytest.raises(InputError, match="price"):
        index.match([{"price": values}])  # type: ignore[dict-item]


def test_an_integer_beyond_64_bits_is_the_nearest_double() -> None:
    index = Index.create()
    index.add(compiled(huge="n > 1e20", exact="n = 9223372036854775807"))
    assert found(index, {"n": [2**70]}, {"n": [2**63 - 1]}) == {(0, "huge"), (1, "exact")}


@pytest.mark.parametrize("value", [1e-31, -1e-31, 5e-324, 2 - 2**-52, -1 - 2**-52, -0.0, 0, 1.0, -2])
def test_match_of_a_value_next_to_an_integer_is_exact(value: float) -> None:
    """Constants without gaps are codes by themselves: -1, 0, 1. Seen from -1, 1e-31 is as far away as 0."""
    operators = ("=", "!=", "<", "<=", ">", ">=")
    texts = [f"n {operator} {constant}" for operator in operators for constant in (-1, 0, 1)]
    index = Index.create()
    index.add(compiled(**{text: text for text in texts}))
    event: Event = {"n": [value]}
    assert found(index, event) == {(0, text) for text in texts if matches(parse_and_check(text), event)}
