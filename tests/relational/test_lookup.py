"""Look-ups of a small batch in large tables: the same matches, without reading whole tables."""

from __future__ import annotations

import random

import pytest

from tests.relational import corpus
from tests.relational.test_plans import BODIES, CASES, matched_pairs, subscription_table
from tests.support.spark_reads import count_file_reads
from tidings.relational import lookup
from tidings.relational.lookup import Counted, collect_values, count_keys, unite_keys
from tidings.relational.table_store import TableStore, compact
from tidings.relational.tables import Layout, Plan

pytestmark = pytest.mark.spark

SEED = random.randrange(1_000_000)
LAYOUTS = [
    Layout(Plan.SHARE),
    Layout(Plan.UNROLL, unroll=1),
    pytest.param(Layout(Plan.SHARE_BUCKET, buckets=4), marks=pytest.mark.long),
]
ODD_TEXTS = {
    "quotes": """//a = "it's" """,
    "backslash": r"//a = '\n'",
    "letters": "//a = 'größe ☃'",
    "large": "//a = 10000000000 and //b = 1",
    "small": "//a = 0.00001",
    "text": "//a = '10000000000.0'",
    "empty": "//a = ''",
}
ODD_BODIES = {
    "d0": "<r><a>it's</a><a>\\n</a><a>größe ☃</a></r>".encode(),
    "d1": b"<r><a>10000000000.0</a><b>1.0</b></r>",
    "d2": b"<r><a>.00001</a><a/></r>",
}


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: f"{layout.plan.value}-{layout.unroll}")
@pytest.mark.parametrize("most", [lookup.MAX_KEYS, pytest.param(3, marks=pytest.mark.long)])
def test_matching_pruned_tables_agrees_with_specification(session, tmp_path, monkeypatch, layout, most):
    """With the keys of the batch as filters, and with too many keys for that."""
    monkeypatch.setattr(lookup, "PRUNED_FROM", 0)
    monkeypatch.setattr(lookup, "MAX_KEYS", most)
    quotes, ranges = corpus.draw_quotes(3, 40, SEED)
    bodies, texts = quotes | BODIES | ODD_BODIES, ranges | CASES | ODD_TEXTS
    store = TableStore.create(tmp_path / "tables", layout)
    half = len(texts) // 2
    for some in (list(texts.items())[:half], list(texts.items())[half:]):
        assert store.add(session, subscription_table(dict(some))).rejects == ()
    expected = corpus.expected_pairs(bodies, texts)
    assert matched_pairs(session, store, bodies) == expected, f"seed {SEED}"
    removed = list(texts)[::3]
    store.remove(removed)
    left = {pair for pair in expected if pair[1] not in removed}
    assert matched_pairs(session, store, bodies) == left, f"seed {SEED}"


SIZE = 20_000


@pytest.mark.parametrize("plan", [Plan.UNROLL, Plan.SHARE])
def test_matching_small_batch_does_not_read_whole_tables(session, tmp_path, monkeypatch, plan):
    """Before and after compaction; without the filters it reads each table of a look-up once or more."""
    texts = {f"s{n}": f"/q/s = 'S{n // 2:05d}' and /q/p > {n % 7} and /q/e = 'X'" for n in range(SIZE)}
    store = TableStore.create(tmp_path / "tables", Layout(plan, unroll=3))
    store.add(None, subscription_table(texts))
    bodies = {"d": b"<q><s>S01234</s><p>9</p><e>X</e><o>S07777</o></q>"}
    expected = {("d", f"s{n}") for n in (2_468, 2_469)}
    matched_pairs(session, store, bodies)

    def count_rows():
        with count_file_reads(session) as reads:
            assert matched_pairs(session, store, bodies) == expected
        return reads.rows

    whole = count_rows()
    assert whole >= 2 * SIZE
    monkeypatch.setattr(lookup, "PRUNED_FROM", SIZE)
    assert count_rows() < whole / 3
    compact(session, store)
    assert count_rows() < whole / 3


def test_count_keys_collects_few_keys_only(session, monkeypatch):
    frame = session.createDataFrame([(bytearray(b"a"),), (bytearray(b"a"),), (bytearray(b"b"),)], "k binary")
    assert count_keys(frame, "k") == Counted(3, frozenset({b"a", b"b"}))
    assert count_keys(frame, "k", collects=False) == Counted(3)
    monkeypatch.setattr(lookup, "MAX_KEYS", 1)
    assert count_keys(frame, "k") == Counted(3)
    assert unite_keys([Counted(1, frozenset({b"a"})), Counted(2, frozenset({b"a"}))]) == Counted(
        3, frozenset({b"a"})
    )
    assert unite_keys([Counted(1, frozenset({b"a"})), Counted(2, frozenset({b"b"}))]) == Counted(3)
    assert unite_keys([Counted(1, frozenset({b"a"})), Counted(2)]) == Counted(3)


def test_collect_values_writes_numbers_as_the_tables_do(session, monkeypatch):
    rows = [(1, "1.0E10", True), (1, "1.0E10", False), (2, "x", False)]
    frame = session.createDataFrame(rows, "linearpath_id long, value string, numeric boolean")
    assert collect_values(frame, 3) == {1: {"10000000000.0", "1.0E10"}, 2: {"x"}}
    assert collect_values(frame, 1_000_000) is None
    monkeypatch.setattr(lookup, "MAX_KEYS", 2)
    assert collect_values(frame, 3) is None
