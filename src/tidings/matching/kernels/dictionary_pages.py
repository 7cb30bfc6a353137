"""Numbers that stand for strings, as a page of a Parquet column holds them: in runs, or packed into few bits.

The layout is that of Parquet's encoding RLE, the hybrid of runs and bit-packing. A page here is wholly the one or
wholly the other. `first` is what has to be added to the numbers of a page.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.matching.kernels.bytes import BYTES, copy, put_word
from tidings.matching.kernels.codes import compare_bytes
from tidings.matching.kernels.compiled import inlined, reading
from tidings.matching.kernels.vectors import LANES, differ, first_one

SPARE = BYTES


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


@inlined
def _run(out: Any, at: int, number: int, length: int, width: int) -> int:
    """Twice the length of a run, in groups of seven bits, and its number in `width` bytes; where the next begins."""
    twice = length << 1
    while twice >= 128:
        out[at] = (twice & 127) | 128
        twice >>= 7
        at += 1
    put_word(out, at, np.uint64(twice) | np.uint64(number) << np.uint64(8))
    return at + 1 + width


@inlined
def _beginnings(numbers: Any, at: int) -> Any:
    """Which of the numbers from a place on, up to LANES of them, begin a run; a bit for each."""
    if at + LANES <= len(numbers):
        return differ(numbers, at)
    mask = np.uint64(0)
    for i in range(at, len(numbers)):
        mask |= np.uint64(numbers[i] != numbers[i - 1]) << np.uint64(i - at)
    return mask


@reading
def write_runs(numbers: Any, first: int, width: int, out: Any) -> int:
    """The runs, into bytes of which there are SPARE more than needed; how many are used."""
    at, begin = 0, 0
    for i in range(1, len(numbers), LANES):
        mask = _beginnings(numbers, i)
        while mask:
            end = i + first_one(mask)
            mask &= mask - np.uint64(1)
            at = _run(out, at, first + numbers[begin], end - begin, width)
            begin = end
    return _run(out, at, first + numbers[begin], len(numbers) - begin, width)


@reading
def pack(numbers: Any, first: int, bits: int, out: Any) -> None:
    """Numbers of so many bits one after the other, the lowest bit first, into zeros of which SPARE bytes are spare.

    `bits` is a multiple of four, so that two numbers are whole bytes, and each two are written on their own.
    """
    even = len(numbers) // 2 * 2
    for i in range(0, even, 2):
        low, high = np.uint64(first + numbers[i]), np.uint64(first + numbers[i + 1])
        put_word(out, i // 2 * (bits // 4), low | high << np.uint64(bits))
    if even < len(numbers):
        put_word(out, even // 2 * (bits // 4), np.uint64(first + numbers[even]))


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


@inlined
def _compare(text: Any, starts: Any, ends: Any, a: int, b: int) -> int:
    return compare_bytes(text, starts[a], ends[a] - starts[a], text, starts[b], ends[b] - starts[b])


@reading
def extremes(text: Any, starts: Any, ends: Any) -> Any:
    """Which string is the smallest, and which the largest."""
    smallest, largest = 0, 0
    for i in range(1, len(starts)):
        if _compare(text, starts, ends, i, smallest) < 0:
            smallest = i
        elif _compare(text, starts, ends, i, largest) > 0:
            largest = i
    return smallest, largest
