"""Limits on the number of values of a JSON text, checked before it is parsed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import DecodeProblem
from tidings.graphs.syndication.json_feed import JsonFeed
from tidings.parsers.strict_json import BATCHED, MOST_VALUES, has_more_values

LEAVES = st.none() | st.integers(0, 99) | st.text('a[{,"\\\\:]}', max_size=6)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=9) | st.dictionaries(st.text('ab[,"\\\\', max_size=3), inner, max_size=9)
    ),
    max_leaves=40,
)


def count_values(value: Any) -> tuple[int, int]:
    """Count all values, and the empty objects and arrays among them."""
    if not isinstance(value, dict | list):
        return 1, 0
    inner = [count_values(each) for each in (value.values() if isinstance(value, dict) else value)]
    return 1 + sum(n for n, _ in inner), sum(empty for _, empty in inner) + (not value)


@given(VALUES, st.integers(1, 40))
def test_has_more_values_agrees_with_count_of_values(value: Any, most: int) -> None:
    body = json.dumps(value, separators=(",", ":")).encode()
    values, empty = count_values(value)
    if values > most:
        assert has_more_values(body, most)
    if values + empty <= most:
        assert not has_more_values(body, most)


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 5_000_000,
        b"[" + b",".join([b"{}"] * 5_000_000) + b"]",
        b"{" + b",".join(b'"k%d":1' % n for n in range(1_000_000)) + b"}",
        b'["' + b'","' * 5_000_000 + b'"]',
    ],
    ids=["brackets", "empty objects", "keys", "strings"],
)
def test_has_more_values_small_values_in_large_number_is_true(body: bytes) -> None:
    assert has_more_values(body, MOST_VALUES)


def test_has_more_values_one_long_string_is_false() -> None:
    assert not has_more_values(b'{"a":"' + b'[{,\\\\\\"' * 1_000_000 + b'"}', MOST_VALUES)


def test_json_feed_with_too_many_values_is_rejected() -> None:
    body = b'{"version":"https://jsonfeed.org/version/1","items":[' + b"{}," * BATCHED * MOST_VALUES + b"{}]}"
    with pytest.raises(DecodeProblem, match="too many values"):
        JsonFeed(body, None)
