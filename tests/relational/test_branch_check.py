"""The branch check: relations from branching points to nodes, their natural join, and the specification."""

from __future__ import annotations

import operator
from itertools import product
from math import isnan

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.relational.corpus import can_compile
from tests.support.strategies.xpaths import documents, expressions
from tidings.documents.model import steps_of
from tidings.documents.reference_matcher import matches
from tidings.documents.xml_decoder import decode
from tidings.documents.xpath import xpath_parser
from tidings.relational.branch_check import BpPosition, BranchNode, Relation, bp_position, brpred
from tidings.relational.branches import alternatives_of
from tidings.relational.linear_match import LinearPath
from tidings.relational.reader import WantedPaths, rows_of

SHOWN = ["{bp#1},{2}", "{bp#1,bp#2},{2,4},{3,4}", "{},{}", "{bp#12},{1},{200}"]


@pytest.mark.parametrize("text", SHOWN)
def test_bp_position_show_is_notation_of_paper(text):
    assert BpPosition.read(text).show() == text


def test_bp_position_relation_has_tuple_for_each_array():
    relation = BpPosition((1, 2), ((2, 4), (3, 4))).relation("1.16.17.18.19")
    assert relation == Relation((1, 2), frozenset({("16", "18"), ("17", "18")}))


ids = st.sampled_from("12")
points = st.lists(st.sampled_from((1, 2, 3)), unique=True, max_size=3).map(tuple)


@st.composite
def relations(draw):
    columns = draw(points)
    rows = st.frozensets(st.tuples(*(ids for _ in columns)), max_size=4)
    return Relation(columns, draw(rows))


@given(relations(), relations())
def test_relation_join_is_natural_join(left, right):
    """The join has all pairs of rows that agree on common points."""
    columns = (*left.points, *(p for p in right.points if p not in left.points))
    joined = set()
    for left_row, right_row in product(left.rows, right.rows):
        a, b = dict(zip(left.points, left_row, strict=True)), dict(zip(right.points, right_row, strict=True))
        if all(a[p] == b[p] for p in a.keys() & b.keys()):
            joined.add(tuple((a | b)[p] for p in columns))
    assert left.join(right) == Relation(columns, frozenset(joined))


def test_brpred_one_matching_node_of_each_branch_suffices():
    """The second branch has two nodes; only one of them is in the element of the first."""
    known = {(7, 50): BpPosition((1,), ((2,),)), (8, 51): BpPosition((1,), ((2,),))}
    inside, outside = BranchNode(8, "1.2.5"), BranchNode(8, "1.9.10")
    assert brpred([50, 51], [[BranchNode(7, "1.2.3")], [outside, inside]], known)
    assert not brpred([50, 51], [[BranchNode(7, "1.2.3")], [outside]], known)


def test_brpred_branches_without_points_always_match():
    known = {(7, 50): BpPosition((), ((),)), (8, 51): BpPosition((), ((),))}
    assert brpred([50, 51], [[BranchNode(7, "1.2")], [BranchNode(8, "1.3")]], known)


ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def satisfies(row, op, literal):
    """Return whether the value of a node satisfies a test."""
    if op.startswith("not "):
        return not satisfies(row, op.removeprefix("not "), literal)
    if op == "exists":
        return True
    if op in ORDERS:
        return row.number is not None and ORDERS[op](row.number, literal)
    if op in ("=", "!="):
        value = row.value if isinstance(literal, str) else row.number
        return (value == literal) is (op == "=")
    return literal in row.value if op == "contains" else row.value.startswith(literal)


def alternative_matches(alternative, rows):
    """Return whether nodes satisfy all branches and have common branching points."""
    branch_nodes, known = [], {}
    for number, branch in enumerate(alternative.branches):
        path = LinearPath.of(branch.path)
        nodes = [
            row
            for row in rows
            if path.fits(steps_of(row.tagpath)) and satisfies(row, branch.operator, branch.literal)
        ]
        if not nodes:
            return False
        for row in nodes:
            known[hash(row.tagpath), number] = bp_position(branch.path, branch.info, row.tagpath)
        branch_nodes.append([BranchNode(hash(row.tagpath), row.idpath) for row in nodes])
    return brpred(range(len(branch_nodes)), branch_nodes, known)


texts = expressions().map(xpath_parser.show).filter(can_compile)


@given(documents(), st.lists(texts, min_size=5, max_size=10))
@example("<a><b><c/><b><x y='v3'/></b></b></a>", ["/a//b[c]/x/@y = 'v3'", "/a//b[c]//x/@y = 'v3'"])
def test_alternatives_agree_with_specification(document, examples):
    node = decode(document.encode())
    rows = list(rows_of("d", node, WantedPaths(["//*", "//@*", "//text()"])))
    assert all(row.number is None or not isnan(row.number) for row in rows)
    for text in examples:
        alternatives = alternatives_of(text)
        expected = matches(xpath_parser.parse(text), node)
        results = [alternative_matches(each, rows) for each in alternatives]
        certain = [result for result, each in zip(results, alternatives, strict=True) if each.exact]
        # An exact alternative is right; another one may match too much, never too little.
        assert any(certain) <= expected <= any(results), text
        if len(certain) == len(results):
            assert any(results) is expected, text
