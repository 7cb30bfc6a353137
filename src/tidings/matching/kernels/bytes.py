"""The hash that leads to strings and keys: FNV-1a over the bytes, mixed once more at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tidings.matching.kernels.compiled import inlined

FNV_BASIS = np.uint64(0xCBF29CE484222325)
FNV_PRIME = np.uint64(0x100000001B3)


@inlined
def hash_bytes(data: Any, start: int, length: int) -> Any:
    h = FNV_BASIS
    for i in range(start, start + length):
        h = (h ^ np.uint64(data[i])) * FNV_PRIME
    return finished(h)


@inlined
def finished(h: Any) -> Any:
    """The hash of bytes that were taken in one by one."""
    return h ^ (h >> np.uint64(29))


# Eight bytes of a text at once, as a number whose lowest byte is the first of them.
#
# A word in which some bytes are *flagged* has the highest bit of those bytes set, and no other; how many bytes come
# before the first flagged one is what the scanners want to know. Tests of bytes may borrow from or carry into bytes
# behind the first flagged one, so nothing may be read from those.


BYTES = 8
ONES = np.uint64(0x0101010101010101)
HIGH = np.uint64(0x8080808080808080)
POWERS = 10 ** np.arange(BYTES + 1, dtype=np.uint64)
WHOLE = np.array([(1 << 8 * count) - 1 for count in range(BYTES + 1)], np.uint64)
"""Powers of ten; and masks that keep so many of the first bytes."""

_SPACES = ONES * np.uint64(32)
_QUOTES, _BACKSLASHES = ONES * np.uint64(34), ONES * np.uint64(92)
_ZEROS, _BEYOND_NINE = ONES * np.uint64(48), ONES * np.uint64(0x80 - 10)
_PAIR, _FOUR = np.uint64(0x000000FF000000FF), np.uint64(0x000F424000000064)
_EIGHT, _10, _8, _16, _32, _64 = np.uint64(0x0000271000000001), *map(np.uint64, (10, 8, 16, 32, 64))


@intrinsic  # type: ignore[untyped-decorator]
def word_at(typing: Any, text: Any, at: Any) -> Any:
    """The eight bytes from a place on, wherever it is; they have to be there."""

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        address = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(64).as_pointer())
        return builder.load(address, align=1)

    return types.uint64(text, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def put_word(typing: Any, out: Any, at: Any, word: Any) -> Any:
    """Write eight bytes from a place on."""

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        address = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(64).as_pointer())
        builder.store(args[2], address, align=1)
        return context.get_dummy_value()

    return types.void(out, types.int64, types.uint64), generate


@inlined
def copy(text: Any, start: int, length: int, out: Any, at: int) -> None:
    """Copy bytes of a text to a place. Up to seven bytes behind them are written as well, if `out` has them."""
    done = 0
    while done < length and start + done + BYTES <= len(text) and at + done + BYTES <= len(out):
        put_word(out, at + done, word_at(text, start + done))
        done += BYTES
    while done < length:
        out[at + done] = text[start + done]
        done += 1


@intrinsic  # type: ignore[untyped-decorator]
def before_first(typing: Any, flagged: Any) -> Any:
    """How many bytes come before the first flagged one; eight if there is none."""

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        place = builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))
        return builder.lshr(place, ir.Constant(ir.IntType(64), 3))

    return types.int64(types.uint64), generate


@inlined
def zeros(word: Any) -> Any:
    """Flag the bytes that are zero."""
    return (word - ONES) & ~word & HIGH


@inlined
def not_plain(word: Any) -> Any:
    """Flag what ends or interrupts a string of JSON: quotes, backslashes, control characters, what is not ASCII."""
    control = (word - _SPACES) & ~word & HIGH
    return zeros(word ^ _QUOTES) | zeros(word ^ _BACKSLASHES) | control | (word & HIGH)


@inlined
def not_digits(word: Any) -> Any:
    """Flag the bytes that are no digits."""
    values = word ^ _ZEROS
    return ((values + _BEYOND_NINE) | values) & HIGH


@inlined
def number_in(word: Any, digits: int) -> Any:
    """The number that the first bytes, one to eight digits, are: pairs, then fours, then all of them at once."""
    values = (word ^ _ZEROS) << (_64 - _8 * np.uint64(digits))
    pairs = values * _10 + (values >> _8)
    return ((pairs & _PAIR) * _FOUR + ((pairs >> _16) & _PAIR) * _EIGHT) >> _32
