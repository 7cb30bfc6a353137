"""Linear paths and tag paths: pieces, matches, positions of branching points."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.documents.model import Axis, LinearStep, NodeKind, is_named, show_steps, steps_of
from tidings.relational.linear_match import LinearPath, PathMatch, positions

PIECES = [
    ("/a/b", "/a/b", None, None),
    ("//b", "", "b", None),
    ("/a//b//c/d/text()", "/a", "text()/d/c", "b"),
    ("/a//b/p//q/text()", "/a", "text()/q", "b/p"),
    ("/a//b/x/@y", "/a", "@y/x/b", None),
    ("//a//b//c", "", "c", "a//b"),
    ("/{http://x/y}a//{http://x/y}*", "/{http://x/y}a", "{http://x/y}*", None),
]


@pytest.mark.parametrize(("path", "prefix", "postfix", "middle"), PIECES)
def test_linear_path_show_has_prefix_postfix_and_middle(path, prefix, postfix, middle):
    assert LinearPath.of(path).show() == (prefix, postfix, middle)


MATCHES = [
    ("/a/b", "/a/b", True),
    ("/a/b", "/a/b/c", False),
    ("/a/b", "/a", False),
    ("//b", "/a/b", True),
    ("//b", "/b", True),
    ("/a//b", "/a/c/c/b", True),
    ("/a//b", "/b", False),
    ("/a//a", "/a", False),  # prefix and postfix may not share a step
    ("/a//b//b", "/a/b", False),
    ("/a//b/c//c", "/a/b/b/c/c", True),
    ("/a//b/c//c", "/a/b/b/c", False),
    ("//*/@y", "/a/@y", True),
    ("//*/@*", "/a/b/text()", False),
    ("/a//@y", "/a/@y", True),  # attributes count as descendants of their element
    ("//text()", "/a/text()", True),
    ("//*", "/a/text()", False),
    ("//{urn:n}*", "/a/{urn:n}b", True),
    ("//{urn:n}*", "/a/b", False),
    ("//*", "/a/{urn:n}b", True),
]


@pytest.mark.parametrize(("linear", "tag", "expected"), MATCHES)
def test_linear_path_fits_tag_path(linear, tag, expected):
    assert LinearPath.of(linear).fits(steps_of(tag)) is expected


names = st.sampled_from("ab")
tags = st.lists(names, min_size=1, max_size=5).map(lambda found: "/" + "/".join(found))
linears = st.lists(
    st.builds(LinearStep, st.sampled_from(Axis), st.just(NodeKind.ELEMENT), st.sampled_from("ab*")),
    min_size=1,
    max_size=4,
).map(show_steps)


def assignments(linear, tag):
    """Return all assignments of the steps of a linear path to those of a tag path: the specification."""
    linear_steps, steps = steps_of(linear), steps_of(tag)

    def assign(step, before):
        if step == len(linear_steps):
            return [()] if before == len(steps) else []
        last = len(steps) if linear_steps[step].axis is Axis.DESCENDANT else min(before + 1, len(steps))
        candidates = [at for at in range(before, last) if is_named(linear_steps[step].name, steps[at].name)]
        return [(at + 1, *rest) for at in candidates for rest in assign(step + 1, at + 1)]

    return assign(0, 0)


@given(linears, tags)
def test_linear_path_fits_if_assignment_exists(linear, tag):
    assert LinearPath.of(linear).fits(steps_of(tag)) is bool(assignments(linear, tag))


@given(linears, tags, st.data())
def test_positions_agree_with_all_assignments(linear, tag, data):
    every = st.sets(st.integers(1, len(steps_of(linear))))
    points = tuple(sorted(data.draw(every)))
    expected = sorted(
        {tuple(assignment[point - 1] for point in points) for assignment in assignments(linear, tag)}
    )
    assert list(positions(linear, tag, points)) == expected


def test_positions_of_repeated_tag_has_both_arrays():
    """The example of section 3.5.1."""
    assert positions("/a//b/x/@y", "/a/b/b/x/@y", (2, 3)) == ((3, 4),)
    assert positions("/a//b//x/@y", "/a/b/b/x/@y", (2, 3)) == ((2, 4), (3, 4))


def test_positions_many_assignments_are_not_enumerated():
    """Ten steps in a path of 200 have 10^16 assignments, but the last step has only one position."""
    assert positions("//*" * 10, "/a" * 200, (10,)) == ((200,),)


@given(st.lists(linears, unique=True, max_size=6), st.lists(tags, unique=True, max_size=6), st.randoms())
def test_path_match_is_independent_of_order_of_additions(linear, tag, random):
    additions = [*((path, True) for path in linear), *((path, False) for path in tag)]
    random.shuffle(additions)
    relation, pairs = PathMatch(), set()
    for path, is_linear in additions:
        if is_linear:
            pairs |= {(other, path) for other in relation.add_linear(path)}
        else:
            pairs |= {(path, other) for other in relation.add_tag(path)}
    assert pairs == {(t, p) for t in tag for p in linear if LinearPath.of(p).fits(steps_of(t))}
