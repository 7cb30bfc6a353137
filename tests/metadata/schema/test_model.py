"""How rules call classes and properties."""

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
def test_the_end_of_an_iri_is_its_name(iri: str, name: str | None) -> None:
    assert assign_short_names([iri]) == {iri: name}


def test_two_with_one_end_have_prefixes_and_a_third_has_none() -> None:
    servers, disks, other = (f"http://example.org/{end}" for end in ("servers#size", "disks/size", "s#name"))
    assert assign_short_names([servers, disks, other]) == {
        servers: "servers:size",
        disks: "disks:size",
        other: "name",
    }


def test_prefixes_are_as_long_as_they_have_to_be() -> None:
    one, two = "http://a.org/s/1.1/size", "http://b.org/s/1.1/size"
    assert assign_short_names([one, two]) == {one: "a_org_s:size", two: "b_org_s:size"}


def test_what_no_prefix_tells_apart_has_no_name() -> None:
    assert set(assign_short_names(["http://x.org/s#size", "http://x.org/s/size"]).values()) == {None}


words = st.sampled_from(["a", "b", "1", "x-y", "x.y", "x_y", "", "a_b", "é"])
iris = st.builds("urn:{}/{}#{}".format, words, words, words)


@given(st.lists(iris, unique=True, max_size=8))
def test_names_are_words_each_of_one_iri_and_do_not_depend_on_the_order(iris: list[str]) -> None:
    found = assign_short_names(iris)
    names = [name for name in found.values() if name is not None]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"([^\W\d][\w-]*:)?[^\W\d][\w-]*", name) for name in names)
    assert list(found) == sorted(found, key=iris.index)
    assert assign_short_names(iris[::-1]) == found
