"""Codes: every value that a predicate can test, as one int32 in the order of values.

The constants that subscriptions mention at a column are sorted. Constant number i has the code 2i + 1, and
all values between constants i - 1 and i share the code 2i. So each comparison is exactly an interval of
codes: two values share a code only if no predicate distinguishes them. Each kind of value has its own range,
so a number is never less than a string.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidings.matching.kernels.bytes import hash_bytes
from tidings.matching.kernels.compiled import F64, I32, I64, U8, inlined, kernel


@inlined
def lower_bound(values: Any, value: int, low: int, high: int) -> int:
    """Return the first place in values[low:high], which is sorted, whose value is not less."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def upper_bound(values: Any, value: int, low: int, high: int) -> int:
    """Return the first place in values[low:high], which is sorted, whose value is greater."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low


NUMBER_CODES = 0
STRING_CODES = 1 << 30
BOOLEAN_CODES = STRING_CODES + (1 << 29)
INSTANT_CODES = STRING_CODES
LAST_CODE = (1 << 31) - 1
OTHER_CODE = 0
"""The code, in an INSTANT column, of a value that is not an instant."""

NO_NUMBERS, DENSE_NUMBERS, RANKED_NUMBERS = 0, 1, 2


class NumberCodec(NamedTuple):
    """Numeric constants by column. Dense columns have all integers from `low` on; ranked ones a sorted list.

    A ranked column has a grid: cell k points to its first constant, so a search reads only a few constants.
    """

    mode: U8
    start: I64
    count: I64
    low: I64
    nearest: F64
    rest: I64
    grid_start: I64
    grid_cells: I64
    grid_low: F64
    grid_scale: F64
    grid: I32


class StringCodec(NamedTuple):
    """String constants by column, sorted, with an open-addressing hash table.

    `longest` is the length of the longest constant: longer texts are not hashed. `ordered` columns have order
    comparisons; in the others a miss needs no search. Columns with `equals` are only tested for equality, so
    a miss has no code at all. Columns of documents share the strings of all twigs (`shared`): each text is
    looked up once.
    """

    start: I64
    count: I64
    longest: I64
    ordered: U8
    equals: U8
    shared: U8
    offsets: I64
    data: U8
    slot_start: I64
    slot_mask: I64
    slots: I32


class InstantCodec(NamedTuple):
    """Instant constants by column, sorted, in microseconds."""

    start: I64
    count: I64
    micros: I64


@inlined
def compare_bytes(a: Any, a_start: int, a_length: int, b: Any, b_start: int, b_length: int) -> int:
    """Return -1, 0 or 1. The order of UTF-8 bytes is that of code points."""
    for i in range(min(a_length, b_length)):
        x, y = a[a_start + i], b[b_start + i]
        if x != y:
            return -1 if x < y else 1
    return 0 if a_length == b_length else (-1 if a_length < b_length else 1)


@inlined
def grid_cell(value: float, low: float, scale: float, cells: int) -> int:
    """Return the cell of a value. Monotone despite rounding: a smaller value never gets a later cell."""
    x = (value - low) * scale
    if not x > 0.0:
        return 0
    return cells - 1 if x >= cells - 1 else int(x)


@inlined
def number_code(codec: NumberCodec, column: int, nearest: float, rest: int) -> Any:
    mode, count = codec.mode[column], codec.count[column]
    if mode == DENSE_NUMBERS:
        # Not by the distance from the lowest: 1e-31 is as far from -1 as 0 is, as doubles go.
        low = codec.low[column]
        if nearest < low:
            return 0
        if nearest > low + count - 1:
            return 2 * count
        below = np.floor(nearest)
        return 2 * (np.int64(below) - low) + (1 if below == nearest else 2)
    if mode == NO_NUMBERS:
        return 0
    first = codec.start[column]
    cells = codec.grid_cells[column]
    cell = codec.grid_start[column] + grid_cell(
        nearest, codec.grid_low[column], codec.grid_scale[column], cells
    )
    low, high = codec.grid[cell], codec.grid[cell + 1]
    while low < high:
        middle = (low + high) >> 1
        other = codec.nearest[first + middle]
        if other < nearest or (other == nearest and codec.rest[first + middle] < rest):
            low = middle + 1
        else:
            high = middle
    found = low < count and codec.nearest[first + low] == nearest and codec.rest[first + low] == rest
    return 2 * low + (1 if found else 0)


@inlined
def dense_code(low: int, count: int, integer: int) -> Any:
    """Return the code of an integer in a dense column with `count` constants from `low` on."""
    if integer < low:
        return np.int64(0)
    if integer > low + count - 1:
        return 2 * count
    return 2 * (integer - low) + 1


@inlined
def find_string(codec: StringCodec, column: int, text: Any, start: int, length: int) -> int:
    """Return the number of the constant equal to the text, or -1."""
    if length > codec.longest[column]:
        return -1
    return find_hashed(codec, column, text, start, length, hash_bytes(text, start, length))


@inlined
def find_hashed(codec: StringCodec, column: int, text: Any, start: int, length: int, hashed: Any) -> int:
    """Return the number of the constant equal to a text with a known hash, or -1. The bytes decide, not the hash."""
    if length > codec.longest[column]:
        return -1
    mask = codec.slot_mask[column]
    base = codec.slot_start[column]
    first = codec.start[column]
    slot = np.int64(hashed & np.uint64(mask))
    while True:
        number = codec.slots[base + slot]
        if number < 0:
            return -1
        at = codec.offsets[first + number]
        if codec.offsets[first + number + 1] - at == length:
            same = True
            for i in range(length):
                if codec.data[at + i] != text[start + i]:
                    same = False
                    break
            if same:
                return int(number)
        slot = (slot + 1) & mask


@kernel
def fill_slots(codec: StringCodec, column: int) -> None:
    """Enter the constants of a column into its empty hash table."""
    first, base, mask = codec.start[column], codec.slot_start[column], codec.slot_mask[column]
    for number in range(codec.count[column]):
        at = codec.offsets[first + number]
        length = codec.offsets[first + number + 1] - at
        slot = np.int64(hash_bytes(codec.data, at, length) & np.uint64(mask))
        while codec.slots[base + slot] >= 0:
            slot = (slot + 1) & mask
        codec.slots[base + slot] = number


@inlined
def string_code(codec: StringCodec, column: int, text: Any, start: int, length: int, hashed: Any) -> int:
    number = find_hashed(codec, column, text, start, length, hashed)
    if number >= 0:
        return STRING_CODES + 2 * number + 1
    if not codec.ordered[column]:
        return STRING_CODES
    low, high, first = 0, codec.count[column], codec.start[column]
    while low < high:
        middle = (low + high) >> 1
        at = codec.offsets[first + middle]
        size = codec.offsets[first + middle + 1] - at
        if compare_bytes(codec.data, at, size, text, start, length) < 0:
            low = middle + 1
        else:
            high = middle
    return STRING_CODES + 2 * low


@inlined
def instant_code(codec: InstantCodec, column: int, ticks: int) -> int:
    """Return the code of an instant; constants are whole microseconds, of two ticks each."""
    low, high, first = 0, codec.count[column], codec.start[column]
    while low < high:
        middle = (low + high) >> 1
        if 2 * codec.micros[first + middle] < ticks:
            low = middle + 1
        else:
            high = middle
    found = low < codec.count[column] and 2 * codec.micros[first + low] == ticks
    return INSTANT_CODES + 2 * low + (1 if found else 0)
