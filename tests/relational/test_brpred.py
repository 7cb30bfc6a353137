"""The branch check: relations from branching points to nodes, and their natural join."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.relational.branch_check import BpPosition, BranchNode, Relation, brpred

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
