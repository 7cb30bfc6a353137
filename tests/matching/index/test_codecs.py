"""Tables of the strings in subscriptions, and the cost of building them."""

from __future__ import annotations

import pyarrow as pa

from tests.support.executed_lines import count_executed_lines
from tidings.matching.index.builder import codecs
from tidings.matching.index.builder.codecs import string_codec


def make_codec(columns: list[pa.Array]) -> codecs.code.StringCodec:
    nothing = [False] * len(columns)
    return string_codec(columns, nothing, nothing, nothing)


def test_string_codec_columns_with_same_array_share_table() -> None:
    first, second = pa.array([b"a", b"b"]), pa.array([b"a", b"b", b"long"])
    codec = make_codec([first, second, first])
    assert codec.start.tolist() == [0, 2, 0]
    assert codec.count.tolist() == [2, 3, 2]
    assert codec.longest.tolist() == [1, 4, 1]
    assert len(codec.data) == 1 + 1 + 1 + 1 + 4


def test_string_codec_work_is_linear_in_columns() -> None:
    few, many = ([pa.array([f"{n}".encode()]) for n in range(count)] for count in (100, 200))
    work = [count_executed_lines(lambda: make_codec(columns), codecs.__name__) for columns in (few, many)]  # noqa: B023
    assert work[1] < 2.1 * work[0]
