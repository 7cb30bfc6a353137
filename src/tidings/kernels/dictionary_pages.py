"""Numbers that stand for strings, as a page of a Parquet column holds them: in runs, or packed into few bits.

The layout is that of Parquet's encoding RLE, the hybrid of runs and bit-packing. A page here is wholly the one or
wholly the other. `first` is what has to be added to the numbers of a page.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.compiled import reading
from tidings.kernels.words import copy

_WORD = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@reading
def mark(numbers: Any, used: Any) -> None:
    """Note which numbers occur."""
    for i in range(len(numbers)):
        used[numbers[i]] = 1


@reading
def rank(used: Any, ranks: Any) -> int:
    """Number what is used from zero on, in its order; how many there are."""
    count = 0
    for i in range(len(used)):
        ranks[i] = count
        count += used[i]
    return count


@reading
def replace(numbers: Any, ranks: Any, out: Any) -> None:
    for i in range(len(numbers)):
        out[i] = ranks[numbers[i]]


@reading
def count_runs(numbers: Any) -> int:
    """How many runs of equal numbers there are. Without a branch, for then the loop is vectorised."""
    runs = 1
    for i in range(1, len(numbers)):
        runs += numbers[i] != numbers[i - 1]
    return runs


@reading
def write_runs(numbers: Any, first: int, width: int, out: Any) -> int:
    """Each run as its length (twice, in groups of seven bits) and its number in `width` bytes; the bytes written."""
    at, i = 0, 0
    while i < len(numbers):
        same, begin = numbers[i], i
        while i < len(numbers) and numbers[i] == same:
            i += 1
        number, twice = first + same, (i - begin) << 1
        while twice >= 128:
            out[at] = (twice & 127) | 128
            twice >>= 7
            at += 1
        out[at] = twice
        at += 1
        for byte in range(width):
            out[at] = (number >> (8 * byte)) & 255
            at += 1
    return at


@reading
def pack(numbers: Any, first: int, bits: int, words: Any) -> None:
    """Numbers of so many bits one after the other, the lowest bit first, into words of 32 bits."""
    held, size, at = np.uint64(0), np.uint64(0), 0
    for i in range(len(numbers)):
        held |= np.uint64(first + numbers[i]) << size
        size += np.uint64(bits)
        if size >= _WORD:
            words[at] = held & _LOW
            held >>= _WORD
            size -= _WORD
            at += 1
    words[at] = held


@reading
def write_strings(text: Any, starts: Any, ends: Any, out: Any) -> int:
    """Strings one after the other, each after its length in four bytes (Parquet's encoding PLAIN); the bytes."""
    at = 0
    for i in range(len(starts)):
        length = ends[i] - starts[i]
        for byte in range(4):
            out[at + byte] = (length >> (8 * byte)) & 255
        copy(text, starts[i], length, out, at + 4)
        at += 4 + length
    return at
