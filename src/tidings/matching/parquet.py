"""Matches as a Parquet file: columns of strings, each a dictionary and the numbers of its entries.

    publication    e1 e1 e1 e2 e2      dictionary e1 e2            three times 0, twice 1
    subscription   s7 s2 s9 s2 s4      dictionary s2 s4 s7 s9      2 0 3 0 1, in two bits each

Matching returns numbers, and such a column consists of numbers: only the strings of the dictionaries are
read. A general writer takes the strings, or hashes a given dictionary, and needs several times as long
(docs/decisions/0006-batch-output.md has the figures). Pages are encoded as numbers arrive: the data held until
a row group is complete is a third of the numbers. Every Parquet reader reads the result: pages of version 1,
uncompressed, encodings PLAIN and RLE_DICTIONARY.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.errors import InputError
from tidings.events.json_batch_decoder import documents_of
from tidings.matching.kernels import dictionary_pages as kernel
from tidings.matching.parquet_format import ColumnChunk, data_header, dictionary_header, footer, varint

PAGE = 1 << 17
"""Rows of a page. A multiple of eight: numbers are packed in groups of eight."""

SAMPLE = 4096
MOST_BYTES = (1 << 31) - 1
"""The most bytes of a page: its header counts them in 32 bits."""

MAGIC = b"PAR1"

Numbers = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]
Page = tuple[bytes, Bytes]
"""The header and the body of a page."""


class Sink(Protocol):
    def write(self, data: Any, /) -> Any: ...


class EncodedColumn(NamedTuple):
    """A column of a row group, ready to be written; all its strings are between `bounds`."""

    rows: int
    pages: Sequence[Page]
    bounds: tuple[bytes, bytes] | None = None


class Dictionary:
    """Strings that columns refer to by number. It may serve many row groups."""

    def __init__(self, strings: Any) -> None:
        self.size = len(strings)
        self._text, self._starts, self._ends = documents_of(strings)

    @cached_property
    def page(self) -> Page:
        """The page of all strings."""
        return self._page(self._starts, self._ends)

    @property
    def bounds(self) -> tuple[bytes, bytes]:
        """The smallest and the largest string."""
        smallest, largest = kernel.find_extremes(self._text, self._starts, self._ends)
        return self._string(smallest), self._string(largest)

    def _string(self, number: int) -> bytes:
        return self._text[self._starts[number] : self._ends[number]].tobytes()

    def page_of(self, used: Bytes) -> Page:
        """Return the page of the marked strings."""
        where = np.flatnonzero(used.view(np.bool_))
        return self._page(self._starts[where], self._ends[where])

    def _page(self, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> Page:
        size = int((ends - starts).sum()) + 4 * len(starts)
        if size > MOST_BYTES:
            raise InputError(
                "the ids are too long for Parquet", received=f"{size:,} bytes of them in one column"
            )
        out = np.empty(size, np.uint8)
        kernel.write_strings(self._text, starts, ends, out)
        return dictionary_header(len(starts), len(out)), out


class KnownColumn:
    """A column of a row group whose strings are known in advance.

    While there are fewer rows than strings, the numbers wait: perhaps only the strings that occur are
    written. Once there are as many, the dictionary has all strings, since selecting them would cost more than
    writing them. With `places`, an added number i stands for the string `places[i]`.
    """

    def __init__(self, dictionary: Dictionary, places: Numbers | None = None) -> None:
        self.rows = 0
        self._dictionary, self._places = dictionary, places
        self._waiting: list[Numbers] = []
        self._pages: list[Page] = []

    def add(self, numbers: Numbers) -> None:
        self._waiting.append(numbers if self._places is None else _apply_ranks(numbers, self._places))
        self.rows += len(numbers)
        if self.rows >= self._dictionary.size:
            self._encode(self._waiting, self._dictionary.size)
            self._waiting = []

    def encode(self) -> EncodedColumn:
        if not self._waiting:
            return EncodedColumn(self.rows, [self._dictionary.page, *self._pages])
        used, ranks, count = _find_used(self._waiting, self._dictionary.size)
        self._encode((_apply_ranks(numbers, ranks) for numbers in self._waiting), count)
        return EncodedColumn(self.rows, [self._dictionary.page_of(used), *self._pages])

    def _encode(self, parts: Iterable[Numbers], size: int) -> None:
        for numbers in parts:
            self._pages.extend(_data_pages(numbers, 0, size))


class GrowingColumn:
    """A column of a row group whose strings arrive with the numbers, block by block."""

    def __init__(self) -> None:
        self.rows = 0
        self._size = 0
        self._block: Any = None
        self._strings: list[Any] = []
        self._pages: list[Page] = []

    def add(self, strings: Any, numbers: Numbers) -> None:
        """Add numbers of these strings. Of a block with fewer numbers than strings only those that occur are kept."""
        if len(numbers) < len(strings):
            used, ranks, _ = _find_used([numbers], len(strings))
            strings, numbers = strings.filter(pa.array(used.view(np.bool_))), _apply_ranks(numbers, ranks)
        if strings is not self._block:
            self._block = strings
            self._strings.append(strings)
            self._size += len(strings)
        self._pages.extend(_data_pages(numbers, self._size - len(strings), self._size))
        self.rows += len(numbers)

    def encode(self) -> EncodedColumn:
        dictionary = Dictionary(pa.concat_arrays(self._strings))
        return EncodedColumn(self.rows, [dictionary.page, *self._pages], dictionary.bounds)


class ParquetFile:
    """Writes row groups to a sink, and the footer when it is closed. Columns are strings, and never null."""

    def __init__(self, sink: Sink, names: Sequence[str]) -> None:
        self._sink = sink
        self._names = names
        self._at = 0
        self._groups: list[list[ColumnChunk]] = []
        self._write(MAGIC)

    def write(self, columns: Sequence[EncodedColumn]) -> None:
        """Add a row group: a column for each name, all of one length."""
        self._groups.append([self._column(*each) for each in zip(self._names, columns, strict=True)])

    def close(self) -> None:
        end = footer(self._names, self._groups)
        self._write(end, len(end).to_bytes(4, "little"), MAGIC)

    def _column(self, name: str, column: EncodedColumn) -> ColumnChunk:
        start, (dictionary, *pages) = self._at, column.pages
        self._write(*dictionary)
        first_page = self._at
        for page in pages:
            self._write(*page)
        return ColumnChunk(name, column.rows, start, first_page, self._at, column.bounds)

    def _write(self, *parts: Any) -> None:
        for part in parts:
            self._sink.write(part)
            self._at += len(part)


def _find_used(parts: Iterable[Numbers], size: int) -> tuple[Bytes, Numbers, int]:
    """Return which of `size` numbers occur, the rank of each among those, and how many there are."""
    used, ranks = np.zeros(size, np.uint8), np.empty(size, np.int32)
    for numbers in parts:
        kernel.mark_numbers(numbers, used)
    return used, ranks, kernel.rank_used(used, ranks)


def _apply_ranks(numbers: Numbers, ranks: Numbers) -> Numbers:
    out = np.empty(len(numbers), np.int32)
    kernel.apply_ranks(numbers, ranks, out)
    return out


def _data_pages(numbers: Numbers, first: int, size: int) -> Iterator[Page]:
    """Yield pages of numbers; with `first` added, they are below `size`."""
    bits = 4 * max(1, -(-(size - 1).bit_length() // 4))
    for start in range(0, len(numbers), PAGE):
        yield _data_page(numbers[start : start + PAGE], first, bits)


def _data_page(numbers: Numbers, first: int, bits: int) -> Page:
    """Return a page; its header has everything before the body.

    The first numbers tell whether runs are shorter. If the others differ, the page is longer, but correct.
    """
    rows, sample, width = len(numbers), numbers[:SAMPLE], (bits + 7) // 8
    if 8 * (1 + width) * kernel.count_runs(sample) < bits * len(sample):
        out = np.empty(rows * (1 + width) + kernel.SPARE, np.uint8)
        prefix, body = b"", out[: kernel.write_runs(numbers, first, width, out)].copy()
    else:
        groups = -(-rows // 8)
        out = np.zeros(groups * bits + kernel.SPARE, np.uint8)
        kernel.pack_bits(numbers, first, bits, out)
        prefix, body = varint(groups << 1 | 1), out[: groups * bits]
    prefix = bytes([bits]) + prefix
    return data_header(rows, len(prefix) + len(body)) + prefix, body
