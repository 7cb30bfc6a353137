"""Short names of classes and properties in rules."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.metadata.schema.model import assign_short_names


@pytest.mark.parametrize(
    ("iri", "name"),
    [
        ("http://example.org/servers#memory", "memory"),
        ("http://example.org/servers/memory", "memory"),
        ("urn:servers:memory", "memory"),
        ("http://example.org/servers#host-name", "host-name"),
        ("http://example.org/servers#host.name", "host_name"),
        ("http://example.org/servers#été", "été"),
        ("http://example.org/servers#_x", "_x"),
        ("http://example.org/servers#2005", None),
        ("http://example.org/servers#", None),
    ],
)
def test_assign_short_names_uses_last_segment(iri: str, name: str | None) -> None:
    assert assign_short_names([iri]) == {iri: name}


def test_assign_short_names_adds_prefix_to_equal_segments() -> None:
    servers, disks, other = (f"http://example.org/{end}" for end in ("servers#size", "disks/size", "s#name"))
    assert assign_short_names([servers, disks, other]) == {
        servers: "servers:size",
        disks: "disks:size",
        other: "name",
    }


def test_assign_short_names_prefixes_are_as_short_as_possible() -> None:
    first, second = "http://a.org/s/1.1/size", "http://b.org/s/1.1/size"
    assert assign_short_names([first, second]) == {first: "a_org_s:size", second: "b_org_s:size"}


def test_assign_short_names_indistinguishable_iris_have_none() -> None:
    assert set(assign_short_names(["http://x.org/s#size", "http://x.org/s/size"]).values()) == {None}


words = st.sampled_from(["a", "b", "1", "x-y", "x.y", "x_y", "", "a_b", "é"])
iris = st.builds("urn:{}/{}#{}".format, words, words, words)


@given(st.lists(iris, unique=True, max_size=8))
def test_assign_short_names_are_unique_and_independent_of_order(iris: list[str]) -> None:
    short_names = assign_short_names(iris)
    names = [name for name in short_names.values() if name is not None]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"([^\W\d][\w-]*:)?[^\W\d][\w-]*", name) for name in names)
    assert list(short_names) == sorted(short_names, key=iris.index)
    assert assign_short_names(iris[::-1]) == short_names
