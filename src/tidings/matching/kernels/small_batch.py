"""A few publications, matched in one call: what takes a microsecond should not be prepared for twenty.

The kernels for many, `encode` and `match`, are compiled into it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tidings.matching.kernels.bitmap_filter import FilteredCandidates
from tidings.matching.kernels.clusters import Clusters, Pairs, Scratch
from tidings.matching.kernels.compiled import I32, I64, U8, U32, reading
from tidings.matching.kernels.encode import AtomArrays, Codecs, Coded, Marks, encode, sort_codes
from tidings.matching.kernels.handles import opener
from tidings.matching.kernels.match import match

TRY_AGAIN = -1
"""In place of a number of pairs: these publications need more room, or have several values somewhere."""


class Paths(NamedTuple):
    """Of `AtomArrays`, what belongs to the paths."""

    column_start: I64
    columns: U32
    dense_low: I64
    dense_count: I64


class Buffers(NamedTuple):
    """What a call writes to, kept for the next one: codes, and marks with their tick.

    `meets` says whether codes are to be in order.
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
    meets: U8


class SmallBatch(NamedTuple):
    """Everything but the publications."""

    paths: Paths
    codecs: Codecs
    clusters: Clusters
    room: Buffers
    scratch: Scratch


open_few = opener(SmallBatch, changing=(Paths, Buffers, Scratch))


@reading
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
    """Match publications, with the handle of a `Few`; how many pairs were found, or TRY_AGAIN."""
    few = open_few(handle)
    paths, room = few.paths, few.room
    count, tick = len(starts) - 1, room.tick[0]
    if count >= len(room.starts) or starts[count] - starts[0] >= len(room.code):
        return TRY_AGAIN
    room.tick[0] += count
    atoms = AtomArrays(
        starts, path, kind, payload, double, string, length, text,
        paths.column_start, paths.columns, paths.dense_low, paths.dense_count,
    )  # fmt: skip
    coded = Coded(room.starts[: count + 1], room.column, room.code)
    done, several = encode(atoms, few.codecs, Marks(room.node_marks, room.column_marks, tick), coded, 0)
    if done < count or several:
        return TRY_AGAIN
    if room.meets[0]:
        sort_codes(coded)
    nothing, out = FilteredCandidates(room.no_starts, room.no_rows, 0), Pairs(publication, subscription)
    done, found = match(coded, room.order[:count], few.clusters, nothing, few.scratch, tick, out, 0)
    return found if done == count else TRY_AGAIN
