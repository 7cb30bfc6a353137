"""Tables of the strings that subscriptions name, and what it costs to make them."""

from __future__ import annotations

import pyarrow as pa

from tests.support.executed_lines import count_executed_lines
from tidings.matching.index.builder import codecs
from tidings.matching.index.builder.codecs import string_codec


def codec_of(named: list[pa.Array]) -> codecs.code.StringCodec:
    nothing = [False] * len(named)
    return string_codec(named, nothing, nothing, nothing)


def test_string_codec_columns_with_one_array_share_its_table() -> None:
    first, second = pa.array([b"a", b"b"]), pa.array([b"a", b"b", b"long"])
    codec = codec_of([first, second, first])
    assert codec.start.tolist() == [0, 2, 0]
    assert codec.count.tolist() == [2, 3, 2]
    assert codec.longest.tolist() == [1, 4, 1]
    assert len(codec.data) == 1 + 1 + 1 + 1 + 4


def test_string_codec_twice_the_columns_twice_the_work() -> None:
    few, many = ([pa.array([f"{n}".encode()]) for n in range(count)] for count in (100, 200))
    work = [count_executed_lines(lambda: codec_of(named), codecs.__name__) for named in (few, many)]  # noqa: B023
    assert work[1] < 2.1 * work[0]
