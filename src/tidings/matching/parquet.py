"""Matches as a Parquet file: columns of strings, each a dictionary and the numbers of its entries.

    publication    e1 e1 e1 e2 e2      dictionary e1 e2            three times 0, twice 1
    subscription   s7 s2 s9 s2 s4      dictionary s2 s4 s7 s9      2 0 3 0 1, in two bits each

Matching answers in numbers, and numbers are what such a column consists of: no string is looked at but those of the
dictionaries. A general writer takes the strings, or hashes a dictionary that it is given, and needs several times
as long (docs/decisions/0006-batch-output.md has the figures). Every reader of Parquet reads the result: pages of
version 1, not compressed, encodings PLAIN and RLE_DICTIONARY.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from tidings.kernels import dictionary_pages as kernel
from tidings.matching.thrift import Encoded, binary, i32, i64, many, struct, varint
from tidings.publications.json_lines import documents_of

PAGE = 1 << 17
"""Rows of a page. A multiple of eight: numbers are packed in groups of eight."""

SAMPLE = 4096

MAGIC = b"PAR1"
_BYTE_ARRAY, _REQUIRED, _UTF8 = 6, 0, 0
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_PLAIN, _RLE, _RLE_DICTIONARY = 0, 3, 8
_UNCOMPRESSED = 0

Numbers = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]


class Sink(Protocol):
    def write(self, data: Any, /) -> Any: ...


class Part(NamedTuple):
    """Numbers of strings, counted from the one with the number `first`."""

    numbers: Numbers
    first: int = 0


class Dictionary:
    """Strings, of which columns hold the numbers. It may serve many row groups.

    With `bounded`, a column says between which strings it lies, so that readers who look for one can skip it.
    """

    def __init__(self, strings: Any, bounded: bool = False) -> None:
        self.size = len(strings)
        self.bounds = tuple(pc.min_max(strings).as_py().values()) if bounded else None
        self._text, self._starts, self._ends = documents_of(strings)

    @cached_property
    def page(self) -> Bytes:
        """All strings, as a page."""
        return self._page(self._starts, self._ends)

    def used_in(self, parts: Sequence[Part]) -> tuple[int, Bytes, Numbers]:
        """The strings that occur: how many, as a page, and for each of all strings its place among them."""
        used, ranks = np.zeros(self.size, np.uint8), np.empty(self.size, np.int32)
        for part in parts:
            kernel.mark(part.numbers, part.first, used)
        count, where = kernel.rank(used, ranks), np.flatnonzero(used.view(np.bool_))
        return count, self._page(self._starts[where], self._ends[where]), ranks

    def _page(self, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> Bytes:
        out = np.empty(int((ends - starts).sum()) + 4 * len(starts), np.uint8)
        kernel.write_strings(self._text, starts, ends, out)
        return out


class Column(NamedTuple):
    """A column of a row group: numbers of strings, part after part."""

    dictionary: Dictionary
    parts: Sequence[Part]


class _Chunk(NamedTuple):
    """Where a column of a row group stands in the file, and between which strings it lies."""

    name: str
    rows: int
    start: int
    first_page: int
    end: int
    bounds: tuple[str, ...] | None


class ParquetFile:
    """Writes row groups to a sink, and the footer when it is closed. The columns are strings, and never null."""

    def __init__(self, sink: Sink, names: Sequence[str]) -> None:
        self._sink = sink
        self._names = names
        self._at = 0
        self._groups: list[list[_Chunk]] = []
        self._write(MAGIC)

    def write(self, columns: Sequence[Column]) -> None:
        """Add a row group: a column for each name, all of one length."""
        self._groups.append([self._column(*each) for each in zip(self._names, columns, strict=True)])

    def close(self) -> None:
        footer = _file_metadata(self._names, self._groups).data
        self._write(footer, len(footer).to_bytes(4, "little"), MAGIC)

    def _column(self, name: str, column: Column) -> _Chunk:
        size, page, parts = _coded(column)
        start = self._at
        self._write(_dictionary_header(size, len(page)), page)
        first_page, rows = self._at, 0
        bits = max(1, (size - 1).bit_length())
        for part in parts:
            self._write(*_data_page(part, bits))
            rows += len(part.numbers)
        return _Chunk(name, rows, start, first_page, self._at, column.dictionary.bounds)

    def _write(self, *parts: Any) -> None:
        for part in parts:
            self._sink.write(part)
            self._at += len(part)


def _coded(column: Column) -> tuple[int, Bytes, Iterator[Part]]:
    """The size of a column's dictionary, the dictionary as a page, and the numbers page by page.

    Where there are fewer strings than rows, all of them make the dictionary; sorting out those that do not occur
    would cost more than writing them.
    """
    dictionary, parts = column
    pages = [
        Part(numbers[at : at + PAGE], first)
        for numbers, first in parts
        for at in range(0, len(numbers), PAGE)
    ]
    if dictionary.size <= sum(len(part.numbers) for part in parts):
        return dictionary.size, dictionary.page, iter(pages)
    size, page, ranks = dictionary.used_in(parts)
    return size, page, (_replaced(part, ranks) for part in pages)


def _replaced(part: Part, ranks: Numbers) -> Part:
    out = np.empty(len(part.numbers), np.int32)
    kernel.replace(part.numbers, part.first, ranks, out)
    return Part(out)


def _data_page(part: Part, bits: int) -> tuple[bytes, Bytes]:
    """A page of numbers: its header, with all that comes before the body, and the body.

    The first numbers tell whether runs are shorter. If the others are different the page is longer, and right.
    """
    (numbers, first), width = part, (bits + 7) // 8
    rows, sample = len(numbers), numbers[:SAMPLE]
    if 8 * (1 + width) * kernel.count_runs(sample) < bits * len(sample):
        out = np.empty(rows * (1 + width), np.uint8)
        before, body = b"", out[: kernel.write_runs(numbers, first, width, out)]
    else:
        groups = -(-rows // 8)
        words = np.zeros(bits * groups // 4 + 1, np.uint32)
        kernel.pack(numbers, first, bits, words)
        before, body = varint(groups << 1 | 1), words.view(np.uint8)[: groups * bits]
    before = bytes([bits]) + before
    return _data_header(rows, len(before) + len(body)) + before, body


def _data_header(rows: int, size: int) -> bytes:
    page = {1: i32(rows), 2: i32(_RLE_DICTIONARY), 3: i32(_RLE), 4: i32(_RLE)}
    return struct({1: i32(_DATA_PAGE), 2: i32(size), 3: i32(size), 5: struct(page)}).data


def _dictionary_header(strings: int, size: int) -> bytes:
    page = struct({1: i32(strings), 2: i32(_PLAIN)})
    return struct({1: i32(_DICTIONARY_PAGE), 2: i32(size), 3: i32(size), 7: page}).data


def _file_metadata(names: Sequence[str], groups: Sequence[Sequence[_Chunk]]) -> Encoded:
    root = struct({4: binary(b"schema"), 5: i32(len(names))})
    rows = sum(group[0].rows for group in groups)
    by_bytes = struct({1: struct({})})  # how bounds compare: as the type of the column says
    return struct(
        {
            1: i32(2),
            2: many([root, *map(_column_schema, names)]),
            3: i64(rows),
            4: many([_group_metadata(group) for group in groups]),
            6: binary(b"tidings"),
            7: many([by_bytes] * len(names)),
        }
    )


def _column_schema(name: str) -> Encoded:
    text = struct({1: struct({})})
    return struct({1: i32(_BYTE_ARRAY), 3: i32(_REQUIRED), 4: binary(name.encode()), 6: i32(_UTF8), 10: text})


def _group_metadata(chunks: Sequence[_Chunk]) -> Encoded:
    size = sum(chunk.end - chunk.start for chunk in chunks)
    columns = many([struct({2: i64(0), 3: _column_metadata(chunk)}) for chunk in chunks])
    return struct({1: columns, 2: i64(size), 3: i64(chunks[0].rows), 6: i64(size)})


def _column_metadata(chunk: _Chunk) -> Encoded:
    size = chunk.end - chunk.start
    described = {
        1: i32(_BYTE_ARRAY),
        2: many([i32(encoding) for encoding in (_PLAIN, _RLE, _RLE_DICTIONARY)]),
        3: many([binary(chunk.name.encode())]),
        4: i32(_UNCOMPRESSED),
        5: i64(chunk.rows),
        6: i64(size),
        7: i64(size),
        9: i64(chunk.first_page),
        11: i64(chunk.start),
    }
    if chunk.bounds is not None:
        smallest, largest = (binary(bound.encode()) for bound in chunk.bounds)
        described[12] = struct({3: i64(0), 5: largest, 6: smallest})
    return struct(described)
