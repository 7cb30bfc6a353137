"""Subscriptions as rows: shared chains, buckets, unrolled rows."""

from __future__ import annotations

from math import inf

import pytest

from tidings.relational.branches import Branch, Predicate, PredicateSet, predicate_sets_of
from tidings.relational.shred import Rows, bounds_of, edge_of
from tidings.relational.tables import ROOT, Layout, Plan, path_id, sub_id


def rows_of(texts, layout, bounds=None):
    rows = Rows(layout, 1, bounds or {})
    for id, text in texts.items():
        rows.add(id, text, predicate_sets_of(text))
    return rows


def predicate_chains(rows):
    """Return the chain of predicates from the root to each final predicate."""
    inner = {row[5]: row for row in rows.rows["query_predicate"] if not row[6]}
    result = []
    for row in rows.rows["query_predicate"]:
        if row[6]:
            chain = [row]
            while chain[0][0] in inner:
                chain.insert(0, inner[chain[0][0]])
            assert chain[0][0] in (ROOT, row[5])
            result.append([f"{each[2]} {each[3]}" for each in chain])
    return result


def test_rows_common_predicates_are_stored_once():
    texts = {"s1": "/a/b = 'v' and /a/c = 'w' and /a/d > 1", "s2": "/a/b = 'v' and /a/c = 'w' and /a/d > 2"}
    rows = rows_of(texts, Layout())
    assert len(rows.rows["query_predicate"]) == 4
    assert predicate_chains(rows) == [["= v", "= w", "> 1.0"], ["= v", "= w", "> 2.0"]]


def test_rows_last_predicates_are_not_shared():
    rows = rows_of({"s1": "/a/b = 'v'", "s2": "/a/b = 'v'", "s3": "/a/b = 'v' and /a/c = 'w'"}, Layout())
    assert len(rows.rows["query_predicate"]) == 4


def test_rows_number_and_string_are_different_predicates():
    rows = rows_of({"s1": "/a/b = '5.0' and /a/c > 1", "s2": "/a/b = 5 and /a/c > 1"}, Layout())
    assert len({row[5] for row in rows.rows["query_predicate"]}) == 4


BOUNDS = (10.0, 20.0, 30.0)
EDGES = [
    (">", 10.0, 10.0),
    (">", 15.0, 10.0),
    (">=", 20.0, 20.0),
    (">", 99.0, 30.0),
    (">", 9.0, -inf),
    ("<", 10.0, 10.0),
    ("<", 10.5, 20.0),
    ("<=", 20.0, 20.0),
    ("<", 30.5, inf),
    ("<", -5.0, 10.0),
]


@pytest.mark.parametrize(("op", "number", "edge"), EDGES)
def test_edge_of_bucket(op, number, edge):
    assert edge_of(op, number, BOUNDS) == edge


@pytest.mark.parametrize(("op", "number", "edge"), EDGES)
def test_edge_of_bucket_holds_for_all_values_within_bound(op, number, edge):
    compare = {">": float.__gt__, ">=": float.__ge__, "<": float.__lt__, "<=": float.__le__}[op]
    values = [value + shift for value in (*BOUNDS, number) for shift in (-1.0, -1e-9, 0.0, 1e-9, 1.0)]
    assert all(compare(value, edge) for value in values if compare(value, number))


def predicate(op, number):
    return Predicate.of(Branch("/a", op, number))


def test_bounds_of_buckets_have_equal_size():
    predicate_sets = [PredicateSet([predicate(op, float(n))], True) for n in range(100) for op in (">", "<")]
    bounds_by_operator = {op: bounds for _, op, bounds in bounds_of(predicate_sets, 4)}
    assert bounds_by_operator == {">": [0.0, 25.0, 50.0, 75.0], "<": [24.0, 49.0, 74.0, 99.0]}


def test_bounds_of_few_subscriptions_are_few():
    predicate_sets = [PredicateSet([predicate("<", 5.0), predicate("=", 5.0)], True)]
    assert list(bounds_of(predicate_sets, 20)) == [(path_id("/a"), "<", [5.0])]


def test_rows_bucket_precedes_other_predicates_and_range_is_last():
    bounds = {(path_id("/a/c"), ">"): [10.0, 20.0]}
    text = "/a/b = 'v' and /a/c > {} and /a/d < 3"
    rows = rows_of({"s1": text.format(11), "s2": text.format(12)}, Layout(Plan.SHARE_BUCKET), bounds)
    assert predicate_chains(rows) == [
        ["= v", "> 10.0", "< 3.0", "> 11.0"],
        ["= v", "> 10.0", "< 3.0", "> 12.0"],
    ]
    assert len(rows.rows["query_predicate"]) == 5


def test_rows_last_range_has_no_bucket():
    bounds = {(path_id("/a/c"), ">"): [10.0]}
    rows = rows_of({"s1": "/a/b = 'v' and /a/c > 11"}, Layout(Plan.SHARE_BUCKET), bounds)
    assert predicate_chains(rows) == [["= v", "> 11.0"]]


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_rows_unrolled_row_has_k_predicates_and_chain_has_others(k):
    rows = rows_of({"s1": "/a/b = 'v' and /a/c > 1 and /a/d"}, Layout(Plan.UNROLL, unroll=k))
    (row,) = rows.rows["predicate_unroll"]
    operators = [op for op in row[2:-1:4] if op is not None]
    assert row[0] == sub_id("s1", 1, 0)
    assert operators == ["=", ">", "exists"][:k]
    assert row[-1] is (k >= 3)
    rest = [each[2] for each in rows.rows.get("query_predicate", [])]
    assert operators + rest == ["=", ">", "exists"]
    assert rows.tables()["predicate_unroll"].num_columns == 4 * k + 2


def test_rows_verified_subscriptions_keep_text():
    rows = rows_of({"s1": "/a/b = 1", "s2": "/a/b = 1 and not(/a/c)", "s3": "not(/a/c)"}, Layout())
    assert [row[2:5] for row in rows.rows["query_branchpoint"]] == [
        ("s1", None, None),
        ("s2", None, "/a/b = 1 and not(/a/c)"),
    ]
    assert rows.rows["query_everywhere"] == [("s3", None, "not(/a/c)", 1)]
