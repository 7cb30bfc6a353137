"""The branch check: relations from branching points to nodes, their natural join, and the definition."""

from __future__ import annotations

import operator
from itertools import product
from math import isnan

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.relational.corpus import is_taken
from tests.support.strategies.xpaths import documents, expressions
from tidings.documents.explanation import matches
from tidings.documents.model import steps_of
from tidings.documents.xml_decoder import decode
from tidings.documents.xpath import xpath_parser
from tidings.relational.branch_check import BpPosition, BranchNode, Relation, bp_position, brpred
from tidings.relational.branches import alternatives_of
from tidings.relational.linear_match import LinearPath
from tidings.relational.reader import WantedPaths, rows_of

SHOWN = ["{bp#1},{2}", "{bp#1,bp#2},{2,4},{3,4}", "{},{}", "{bp#12},{1},{200}"]


@pytest.mark.parametrize("text", SHOWN)
def test_positions_are_written_as_in_the_paper(text):
    assert BpPosition.read(text).show() == text


def test_an_id_path_gives_a_tuple_for_each_array():
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
def test_natural_join(left, right):
    """All pairs of rows that agree where they speak of the same point."""
    columns = (*left.points, *(p for p in right.points if p not in left.points))
    joined = set()
    for mine, theirs in product(left.rows, right.rows):
        a, b = dict(zip(left.points, mine, strict=True)), dict(zip(right.points, theirs, strict=True))
        if all(a[p] == b[p] for p in a.keys() & b.keys()):
            joined.add(tuple((a | b)[p] for p in columns))
    assert left.join(right) == Relation(columns, frozenset(joined))


def test_one_of_the_nodes_of_each_branch_is_enough():
    """The second branch has found two nodes; only one of them is in the element of the first."""
    known = {(7, 50): BpPosition((1,), ((2,),)), (8, 51): BpPosition((1,), ((2,),))}
    here, there = BranchNode(8, "1.2.5"), BranchNode(8, "1.9.10")
    assert brpred([50, 51], [[BranchNode(7, "1.2.3")], [there, here]], known)
    assert not brpred([50, 51], [[BranchNode(7, "1.2.3")], [there]], known)


def test_branches_without_points_meet_anyway():
    known = {(7, 50): BpPosition((), ((),)), (8, 51): BpPosition((), ((),))}
    assert brpred([50, 51], [[BranchNode(7, "1.2")], [BranchNode(8, "1.3")]], known)


ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def passes(row, op, literal):
    """What is asked of a node's value."""
    if op.startswith("not "):
        return not passes(row, op.removeprefix("not "), literal)
    if op == "exists":
        return True
    if op in ORDERS:
        return row.number is not None and ORDERS[op](row.number, literal)
    if op in ("=", "!="):
        value = row.value if isinstance(literal, str) else row.number
        return (value == literal) is (op == "=")
    return literal in row.value if op == "contains" else row.value.startswith(literal)


def holds(alternative, rows):
    """Whether nodes satisfy all branches and meet."""
    found, known = [], {}
    for number, branch in enumerate(alternative.branches):
        path = LinearPath.of(branch.path)
        nodes = [
            row
            for row in rows
            if path.fits(steps_of(row.tagpath)) and passes(row, branch.operator, branch.literal)
        ]
        if not nodes:
            return False
        for row in nodes:
            known[hash(row.tagpath), number] = bp_position(branch.path, branch.info, row.tagpath)
        found.append([BranchNode(hash(row.tagpath), row.idpath) for row in nodes])
    return brpred(range(len(found)), found, known)


texts = expressions().map(xpath_parser.show).filter(is_taken)


@given(documents(), st.lists(texts, min_size=5, max_size=10))
@example("<a><b><c/><b><x y='v3'/></b></b></a>", ["/a//b[c]/x/@y = 'v3'", "/a//b[c]//x/@y = 'v3'"])
def test_alternatives_find_what_the_definition_finds(document, asked):
    node = decode(document.encode())
    rows = list(rows_of("d", node, WantedPaths(["//*", "//@*", "//text()"])))
    assert all(row.number is None or not isnan(row.number) for row in rows)
    for text in asked:
        alternatives = alternatives_of(text)
        expected = matches(xpath_parser.parse(text), node)
        found = [holds(each, rows) for each in alternatives]
        certain = [held for held, each in zip(found, alternatives, strict=True) if each.exact]
        # Whatever is exact is right; whatever is not may be too much, never too little.
        assert any(certain) <= expected <= any(found), text
        if len(certain) == len(found):
            assert any(found) is expected, text
