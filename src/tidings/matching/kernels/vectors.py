"""Vector operations that LLVM does not derive from loops by itself.

Each is an LLVM vector operation, which every processor executes in its own width: one comparison of 64
numbers is four instructions with AVX-512, eight with AVX2, sixteen on ARM. A mask has one bit per place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 64
"""Rows per comparison; compared arrays have as many places more than rows."""

TILE_WORDS = 32
TILE_ROWS = 64 * TILE_WORDS
"""The rows of a bitmap tile, one bit each."""

_BIT, _I16, _I32, _I64 = ir.IntType(1), ir.IntType(16), ir.IntType(32), ir.IntType(64)
_Made = tuple[Any, Callable[..., Any]]


def _place(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    """Return the address of an array element."""
    return builder.gep(context.make_array(kind)(context, builder, array).data, [at])


def _load(builder: Any, address: Any, vector: Any, align: int) -> Any:
    return builder.load(builder.bitcast(address, ir.PointerType(vector)), align=align)


def _splat(builder: Any, value: Any, vector: Any) -> Any:
    nothing = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(nothing, value, ir.Constant(_I32, 0))
    places = ir.VectorType(_I32, vector.count)
    return builder.shuffle_vector(first, nothing, ir.Constant(places, [0] * vector.count))


def _comparison(bounds: Any, relation: str) -> _Made:
    """Compare LANES numbers from a place on with a code: `bound relation code`."""

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        vector = ir.VectorType(_I32, LANES)
        address = _place(context, builder, signature.args[0], args[0], args[1])
        read, code = _load(builder, address, vector, 4), _splat(builder, args[2], vector)
        return builder.bitcast(builder.icmp_signed(relation, read, code), _I64)

    return types.uint64(bounds, types.int64, types.int32), generate


@intrinsic  # type: ignore[untyped-decorator]
def at_most(typing: Any, bounds: Any, at: Any, code: Any) -> _Made:
    """Return which of bounds[at : at + LANES] are at most the code."""
    return _comparison(bounds, "<=")


@intrinsic  # type: ignore[untyped-decorator]
def at_least(typing: Any, bounds: Any, at: Any, code: Any) -> _Made:
    """Return which of bounds[at : at + LANES] are at least the code."""
    return _comparison(bounds, ">=")


@intrinsic  # type: ignore[untyped-decorator]
def equal(typing: Any, bounds: Any, at: Any, code: Any) -> _Made:
    """Return which of bounds[at : at + LANES] equal the code."""
    return _comparison(bounds, "==")


@intrinsic  # type: ignore[untyped-decorator]
def compare_neighbours(typing: Any, numbers: Any, at: Any) -> _Made:
    """Return which of numbers[at : at + LANES] differ from the number before them."""

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        vector, before = ir.VectorType(_I32, LANES), builder.sub(args[1], ir.Constant(_I64, 1))
        places = (_place(context, builder, signature.args[0], args[0], at) for at in (args[1], before))
        here, previous = (_load(builder, place, vector, 4) for place in places)
        return builder.bitcast(builder.icmp_signed("!=", here, previous), _I64)

    return types.uint64(numbers, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def compress(typing: Any, source: Any, at: Any, mask: Any, out: Any, place: Any) -> _Made:
    """Write those of source[at : at + 16] whose bit is set in the lowest 16 bits of a mask, without gaps."""

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        vector, bits = ir.VectorType(_I32, 16), ir.VectorType(_BIT, 16)
        read = _load(builder, _place(context, builder, signature.args[0], args[0], args[1]), vector, align=4)
        target = _place(context, builder, signature.args[3], args[3], args[4])
        called = ir.FunctionType(ir.VoidType(), [vector, target.type, bits])
        store = cgutils.get_or_insert_function(builder.module, called, "llvm.masked.compressstore.v16i32")
        builder.call(store, [read, target, builder.bitcast(builder.trunc(args[2], _I16), bits)])
        return context.get_dummy_value()

    return types.void(source, types.int64, types.uint64, out, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def count_ones(typing: Any, mask: Any) -> _Made:
    """Count the bits that are set."""

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), generate


@intrinsic  # type: ignore[untyped-decorator]
def find_first_one(typing: Any, mask: Any) -> _Made:
    """Return the place of the lowest bit that is set."""

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        return builder.cttz(args[0], ir.Constant(_BIT, 0))

    return types.int64(types.uint64), generate


@intrinsic  # type: ignore[untyped-decorator]
def prefetch(typing: Any, array: Any, at: Any) -> _Made:
    """Prefetch an array element."""

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        address = _place(context, builder, signature.args[0], args[0], args[1])
        address = builder.bitcast(address, ir.IntType(8).as_pointer())
        called = ir.FunctionType(ir.VoidType(), [address.type, _I32, _I32, _I32])
        ask = cgutils.get_or_insert_function(builder.module, called, "llvm.prefetch.p0")
        builder.call(ask, [address, *(ir.Constant(_I32, number) for number in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def intersect(typing: Any, kept: Any, lines: Any, starts: Any, first: Any, last: Any) -> _Made:
    """Leave in `kept` (TILE_WORDS words) the bits that are set in each of several lines of `lines`.

    Line i begins at starts[i], for i from `first` up to but excluding `last`. Returns zero if no bit is left.
    The bits stay in registers from the first line to the last.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        vector, zero = ir.VectorType(_I64, TILE_WORDS), ir.Constant(_I64, 0)
        address = _place(context, builder, signature.args[0], args[0], zero)
        held = cgutils.alloca_once_value(builder, _load(builder, address, vector, 8))
        step = ir.Constant(_I64, 1)
        with cgutils.for_range_slice(builder, args[3], args[4], step, _I64) as (i, _):
            start = builder.load(_place(context, builder, signature.args[2], args[2], i))
            line = _place(context, builder, signature.args[1], args[1], start)
            builder.store(builder.and_(builder.load(held), _load(builder, line, vector, 8)), held)
        left = builder.load(held)
        builder.store(left, builder.bitcast(address, ir.PointerType(vector)), align=8)
        called = ir.FunctionType(_I64, [vector])
        name = f"llvm.vector.reduce.or.v{TILE_WORDS}i64"
        return builder.call(cgutils.get_or_insert_function(builder.module, called, name), [left])

    return types.uint64(kept, lines, starts, types.int64, types.int64), generate
