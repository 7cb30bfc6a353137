"""Dictionary-encoded Parquet pages: numbers that refer to strings, as runs or packed into few bits.

The format is Parquet's encoding RLE, a hybrid of runs and bit packing. A page here uses one of them
throughout. `first` is added to all numbers of a page.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.matching.kernels.bytes import BYTES, copy_bytes, store_word
from tidings.matching.kernels.codes import compare_bytes
from tidings.matching.kernels.compiled import inlined, kernel
from tidings.matching.kernels.vectors import LANES, compare_neighbours, find_first_one

SPARE = BYTES


@kernel
def mark_numbers(numbers: Any, used: Any) -> None:
    """Mark the numbers that occur."""
    for i in range(len(numbers)):
        used[numbers[i]] = 1


@kernel
def rank_used(used: Any, ranks: Any) -> int:
    """Number the used ones from zero on, in order; return how many there are."""
    count = 0
    for i in range(len(used)):
        ranks[i] = count
        count += used[i]
    return count


@kernel
def apply_ranks(numbers: Any, ranks: Any, out: Any) -> None:
    """Replace numbers by their ranks."""
    for i in range(len(numbers)):
        out[i] = ranks[numbers[i]]


@kernel
def count_runs(numbers: Any) -> int:
    """Count the runs of equal numbers. Branch-free, so that the loop is vectorised."""
    runs = 1
    for i in range(1, len(numbers)):
        runs += numbers[i] != numbers[i - 1]
    return runs


@inlined
def _write_run(out: Any, at: int, number: int, length: int, width: int) -> int:
    """Write twice the length of a run as a varint, and its number in `width` bytes; return the next place."""
    twice = length << 1
    while twice >= 128:
        out[at] = (twice & 127) | 128
        twice >>= 7
        at += 1
    store_word(out, at, np.uint64(twice) | np.uint64(number) << np.uint64(8))
    return at + 1 + width


@inlined
def _find_run_starts(numbers: Any, at: int) -> Any:
    """Return a bit for each of up to LANES numbers from a place on: whether it begins a run."""
    if at + LANES <= len(numbers):
        return compare_neighbours(numbers, at)
    mask = np.uint64(0)
    for i in range(at, len(numbers)):
        mask |= np.uint64(numbers[i] != numbers[i - 1]) << np.uint64(i - at)
    return mask


@kernel
def write_runs(numbers: Any, first: int, width: int, out: Any) -> int:
    """Write the runs into bytes with SPARE more than needed; return how many are used."""
    at, begin = 0, 0
    for i in range(1, len(numbers), LANES):
        mask = _find_run_starts(numbers, i)
        while mask:
            end = i + find_first_one(mask)
            mask &= mask - np.uint64(1)
            at = _write_run(out, at, first + numbers[begin], end - begin, width)
            begin = end
    return _write_run(out, at, first + numbers[begin], len(numbers) - begin, width)


@kernel
def pack_bits(numbers: Any, first: int, bits: int, out: Any) -> None:
    """Pack numbers of `bits` bits each, lowest bit first, into zeroed bytes with SPARE more than needed.

    `bits` is a multiple of four: two numbers are whole bytes, and each pair is written independently.
    """
    even = len(numbers) // 2 * 2
    for i in range(0, even, 2):
        low, high = np.uint64(first + numbers[i]), np.uint64(first + numbers[i + 1])
        store_word(out, i // 2 * (bits // 4), low | high << np.uint64(bits))
    if even < len(numbers):
        store_word(out, even // 2 * (bits // 4), np.uint64(first + numbers[even]))


@kernel
def write_strings(text: Any, starts: Any, ends: Any, out: Any) -> int:
    """Write strings, each after its length in four bytes (Parquet's encoding PLAIN); return the number of bytes."""
    at = 0
    for i in range(len(starts)):
        length = ends[i] - starts[i]
        for byte in range(4):
            out[at + byte] = (length >> (8 * byte)) & 255
        copy_bytes(text, starts[i], length, out, at + 4)
        at += 4 + length
    return at


@inlined
def _compare(text: Any, starts: Any, ends: Any, a: int, b: int) -> int:
    return compare_bytes(text, starts[a], ends[a] - starts[a], text, starts[b], ends[b] - starts[b])


@kernel
def find_extremes(text: Any, starts: Any, ends: Any) -> Any:
    """Return the numbers of the smallest and of the largest string."""
    smallest, largest = 0, 0
    for i in range(1, len(starts)):
        if _compare(text, starts, ends, i, smallest) < 0:
            smallest = i
        elif _compare(text, starts, ends, i, largest) > 0:
            largest = i
    return smallest, largest
