"""Linear paths and tag paths: their pieces, which match, and where their branching points stand."""

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
def test_pieces(path, prefix, postfix, middle):
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
    ("/a//@y", "/a/@y", True),  # attributes count as what stands below their element
    ("//text()", "/a/text()", True),
    ("//*", "/a/text()", False),
    ("//{urn:n}*", "/a/{urn:n}b", True),
    ("//{urn:n}*", "/a/b", False),
    ("//*", "/a/{urn:n}b", True),
]


@pytest.mark.parametrize(("linear", "tag", "expected"), MATCHES)
def test_fits(linear, tag, expected):
    assert LinearPath.of(linear).fits(steps_of(tag)) is expected


names = st.sampled_from("ab")
tags = st.lists(names, min_size=1, max_size=5).map(lambda found: "/" + "/".join(found))
linears = st.lists(
    st.builds(LinearStep, st.sampled_from(Axis), st.just(NodeKind.ELEMENT), st.sampled_from("ab*")),
    min_size=1,
    max_size=4,
).map(show_steps)


def ways(linear, tag):
    """All ways to put the steps of a linear path on those of a tag path: the definition."""
    asked, steps = steps_of(linear), steps_of(tag)

    def further(step, before):
        if step == len(asked):
            return [()] if before == len(steps) else []
        last = len(steps) if asked[step].axis is Axis.DESCENDANT else min(before + 1, len(steps))
        found = [at for at in range(before, last) if is_named(asked[step].name, steps[at].name)]
        return [(at + 1, *rest) for at in found for rest in further(step + 1, at + 1)]

    return further(0, 0)


@given(linears, tags)
def test_matching_is_putting_steps_on_steps(linear, tag):
    assert LinearPath.of(linear).fits(steps_of(tag)) is bool(ways(linear, tag))


@given(linears, tags, st.data())
def test_positions_are_those_of_all_ways(linear, tag, data):
    every = st.sets(st.integers(1, len(steps_of(linear))))
    points = tuple(sorted(data.draw(every)))
    expected = sorted({tuple(way[point - 1] for point in points) for way in ways(linear, tag)})
    assert list(positions(linear, tag, points)) == expected


def test_both_position_arrays_of_a_repeated_tag():
    """The case of section 3.5.1."""
    assert positions("/a//b/x/@y", "/a/b/b/x/@y", (2, 3)) == ((3, 4),)
    assert positions("/a//b//x/@y", "/a/b/b/x/@y", (2, 3)) == ((2, 4), (3, 4))


def test_many_ways_between_branching_points_are_followed_once():
    """Ten steps anywhere in a path of 200 can stand in 10^16 ways; where the last one stands, in one."""
    assert positions("//*" * 10, "/a" * 200, (10,)) == ((200,),)


@given(st.lists(linears, unique=True, max_size=6), st.lists(tags, unique=True, max_size=6), st.randoms())
def test_the_relation_is_the_same_in_whatever_order_paths_come(linear, tag, random):
    arrivals = [*((path, True) for path in linear), *((path, False) for path in tag)]
    random.shuffle(arrivals)
    relation, found = PathMatch(), set()
    for path, is_linear in arrivals:
        if is_linear:
            found |= {(other, path) for other in relation.add_linear(path)}
        else:
            found |= {(path, other) for other in relation.add_tag(path)}
    assert found == {(t, p) for t in tag for p in linear if LinearPath.of(p).fits(steps_of(t))}
