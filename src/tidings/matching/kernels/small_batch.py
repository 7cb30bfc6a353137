"""Matching of a few publications in one call, without the preparation that large batches need.

The kernels for large batches, `encode` and `match`, are compiled into it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tidings.matching.kernels.bitmap_filter import FilteredCandidates
from tidings.matching.kernels.clusters import Clusters, Pairs, Scratch
from tidings.matching.kernels.compiled import I32, I64, U8, U32, kernel, make_opener
from tidings.matching.kernels.encode import AtomArrays, Codecs, Coded, Marks, encode, sort_codes
from tidings.matching.kernels.match import match

TRY_AGAIN = -1
"""Instead of a number of pairs: the publications need larger buffers, or have several values in a column."""


class Paths(NamedTuple):
    """The part of `AtomArrays` that belongs to the paths."""

    column_start: I64
    columns: U32
    dense_low: I64
    dense_count: I64


class Buffers(NamedTuple):
    """Output buffers, kept from call to call: codes, and marks with their tick.

    `needs_order` tells whether codes must be sorted.
    """

    starts: I64
    column: U32
    code: I32
    order: I64
    node_marks: I64
    column_marks: I64
    tick: I64
    no_starts: I64
    no_rows: I32
    needs_order: U8


class SmallBatch(NamedTuple):
    """All arguments except the publications."""

    paths: Paths
    codecs: Codecs
    clusters: Clusters
    buffers: Buffers
    scratch: Scratch


open_small_batch = make_opener(SmallBatch, changing=(Paths, Buffers, Scratch))


@kernel
def match_small_batch(
    starts: Any,
    path: Any,
    kind: Any,
    payload: Any,
    double: Any,
    string: Any,
    length: Any,
    text: Any,
    handle: Any,
    publication: Any,
    subscription: Any,
) -> int:
    """Match publications, with the handle of a `SmallBatch`; return the number of pairs, or TRY_AGAIN."""
    batch = open_small_batch(handle)
    paths, buffers = batch.paths, batch.buffers
    count, tick = len(starts) - 1, buffers.tick[0]
    if count >= len(buffers.starts) or starts[count] - starts[0] >= len(buffers.code):
        return TRY_AGAIN
    buffers.tick[0] += count
    atoms = AtomArrays(
        starts, path, kind, payload, double, string, length, text,
        paths.column_start, paths.columns, paths.dense_low, paths.dense_count,
    )  # fmt: skip
    coded = Coded(buffers.starts[: count + 1], buffers.column, buffers.code)
    done, several = encode(
        atoms, batch.codecs, Marks(buffers.node_marks, buffers.column_marks, tick), coded, 0
    )
    if done < count or several:
        return TRY_AGAIN
    if buffers.needs_order[0]:
        sort_codes(coded)
    nothing, out = FilteredCandidates(buffers.no_starts, buffers.no_rows, 0), Pairs(publication, subscription)
    done, found = match(coded, buffers.order[:count], batch.clusters, nothing, batch.scratch, tick, out, 0)
    return found if done == count else TRY_AGAIN
