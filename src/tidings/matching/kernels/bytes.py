"""Bytes of texts: hashing, eight bytes at a time, and lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tidings.matching.kernels.compiled import allocating_kernel, inlined

FNV_BASIS = np.uint64(0xCBF29CE484222325)
FNV_PRIME = np.uint64(0x100000001B3)


@inlined
def hash_bytes(data: Any, start: int, length: int) -> Any:
    """Hash bytes with FNV-1a, mixed once more at the end."""
    h = FNV_BASIS
    for i in range(start, start + length):
        h = (h ^ np.uint64(data[i])) * FNV_PRIME
    return finish_hash(h)


@inlined
def finish_hash(h: Any) -> Any:
    """Return the hash of bytes that were added one by one."""
    return h ^ (h >> np.uint64(29))


# Eight bytes of a text as one number, whose lowest byte is the first.
#
# A word in which some bytes are *flagged* has the highest bit of those bytes set, and no other; scanners ask for the
# number of bytes before the first flagged one. Tests of bytes may borrow from or carry into later bytes, so flags
# after the first one mean nothing.


BYTES = 8
ONES = np.uint64(0x0101010101010101)
HIGH = np.uint64(0x8080808080808080)
POWERS = 10 ** np.arange(BYTES + 1, dtype=np.uint64)
WHOLE = np.array([(1 << 8 * count) - 1 for count in range(BYTES + 1)], np.uint64)
"""Powers of ten, and masks that keep the first bytes."""

_SPACES = ONES * np.uint64(32)
_QUOTES, _BACKSLASHES = ONES * np.uint64(34), ONES * np.uint64(92)
_ZEROS, _BEYOND_NINE = ONES * np.uint64(48), ONES * np.uint64(0x80 - 10)
_PAIR, _FOUR = np.uint64(0x000000FF000000FF), np.uint64(0x000F424000000064)
_EIGHT, _10, _8, _16, _32, _64 = np.uint64(0x0000271000000001), *map(np.uint64, (10, 8, 16, 32, 64))


@intrinsic  # type: ignore[untyped-decorator]
def load_word(typing: Any, text: Any, at: Any) -> Any:
    """Load the eight bytes at a place, aligned or not; all of them must exist."""

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        address = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(64).as_pointer())
        return builder.load(address, align=1)

    return types.uint64(text, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def store_word(typing: Any, out: Any, at: Any, word: Any) -> Any:
    """Store eight bytes at a place."""

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        address = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(64).as_pointer())
        builder.store(args[2], address, align=1)
        return context.get_dummy_value()

    return types.void(out, types.int64, types.uint64), generate


@inlined
def copy_bytes(text: Any, start: int, length: int, out: Any, at: int) -> None:
    """Copy bytes of a text to a place. Up to seven bytes after them are overwritten as well, if `out` has them."""
    done = 0
    while done < length and start + done + BYTES <= len(text) and at + done + BYTES <= len(out):
        store_word(out, at + done, load_word(text, start + done))
        done += BYTES
    while done < length:
        out[at + done] = text[start + done]
        done += 1


@intrinsic  # type: ignore[untyped-decorator]
def count_before_first(typing: Any, flagged: Any) -> Any:
    """Count the bytes before the first flagged one: eight if there is none."""

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        place = builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))
        return builder.lshr(place, ir.Constant(ir.IntType(64), 3))

    return types.int64(types.uint64), generate


@inlined
def flag_zeros(word: Any) -> Any:
    """Flag zero bytes."""
    return (word - ONES) & ~word & HIGH


@inlined
def flag_special(word: Any) -> Any:
    """Flag the bytes that end or interrupt a JSON string: quotes, backslashes, controls, non-ASCII."""
    control = (word - _SPACES) & ~word & HIGH
    return flag_zeros(word ^ _QUOTES) | flag_zeros(word ^ _BACKSLASHES) | control | (word & HIGH)


@inlined
def flag_non_digits(word: Any) -> Any:
    """Flag the bytes that are not digits."""
    values = word ^ _ZEROS
    return ((values + _BEYOND_NINE) | values) & HIGH


@inlined
def parse_digits(word: Any, digits: int) -> Any:
    """Return the number in the first bytes, one to eight digits: pairs, then fours, then all of them at once."""
    values = (word ^ _ZEROS) << (_64 - _8 * np.uint64(digits))
    pairs = values * _10 + (values >> _8)
    return ((pairs & _PAIR) * _FOUR + ((pairs >> _16) & _PAIR) * _EIGHT) >> _32


@inlined
def byte_at(text: Any, at: int, end: int) -> int:
    """Return the byte at a place, or 0 beyond the end: no token begins with it."""
    return int(text[at]) if at < end else 0


@inlined
def skip_space(text: Any, at: int, end: int) -> int:
    """Return the place of the next byte that is not JSON or XML whitespace."""
    while at < end and text[at] <= 32:
        c = text[at]
        if c != 32 and c != 10 and c != 13 and c != 9:
            break
        at += 1
    return at


_LF, _CR = 10, 13
_LINE_FEEDS = ONES * np.uint64(_LF)


@allocating_kernel
def find_lines(text: Any, words: Any) -> Any:
    """Return starts, ends and numbers (from one) of the lines that are not blank, and the number of line
    ends.

    A line ends with \\n or \\r\\n, the last one also with the text. `words` is the same text as whole 64-bit
    words: most of them contain no line end and are skipped.
    """
    breaks = 0
    for i in range(len(text)):
        breaks += text[i] == _LF
    places = np.empty(breaks + 1, np.int64)
    found, rest = 0, 8 * len(words)
    for w in range(len(words)):
        if flag_zeros(words[w] ^ _LINE_FEEDS):
            found = _find_line_feeds(text, 8 * w, 8 * w + 8, places, found)
    _find_line_feeds(text, rest, len(text), places, found)
    places[breaks] = len(text)
    return (*_split_at(text, places), breaks)


@inlined
def _find_line_feeds(text: Any, first: int, end: int, places: Any, found: int) -> int:
    """Append the places of line feeds; return how many there are so far."""
    for i in range(first, end):
        if text[i] == _LF:
            places[found] = i
            found += 1
    return found


@allocating_kernel
def _split_at(text: Any, places: Any) -> Any:
    """Return the lines that end at these places."""
    starts, ends = np.empty(len(places), np.int64), np.empty(len(places), np.int64)
    numbers = np.empty(len(places), np.int64)
    lines, start = 0, 0
    for number in range(len(places)):
        i = places[number]
        end = i - 1 if i > start and i < len(text) and text[i - 1] == _CR else i
        if skip_space(text, start, end) < end:
            starts[lines], ends[lines], numbers[lines] = start, end, number + 1
            lines += 1
        start = i + 1
    return starts[:lines], ends[:lines], numbers[:lines]


@allocating_kernel
def gather(text: Any, starts: Any, lengths: Any) -> Any:
    """Concatenate pieces of a text; return offsets and bytes. A negative length means no piece."""
    offsets = np.zeros(len(starts) + 1, np.int64)
    for i in range(len(starts)):
        offsets[i + 1] = offsets[i] + max(0, lengths[i])
    data = np.empty(offsets[-1], np.uint8)
    for i in range(len(starts)):
        copy_bytes(text, starts[i], max(0, lengths[i]), data, offsets[i])
    return offsets, data
