"""Atoms become coded atoms: what the constants of a segment's columns make of a batch's values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from tidings.kernels.codes import (
    BOOLEAN_CODES,
    DENSE_NUMBERS,
    OTHER_CODE,
    RANKED_NUMBERS,
    STRING_CODES,
    InstantCodec,
    NumberCodec,
    StringCodec,
    dense_code,
    find_string,
    grid_cell,
    instant_code,
    ranked_code,
    string_rank,
)
from tidings.kernels.instants import NO_INSTANT, read_instant
from tidings.kernels.tries import Trie, child, step

# The numbers of atoms.Aspect and atoms.AtomKind; a test keeps them equal.
VALUE, INSTANT, PREFIX, SUFFIX, SUBSTRING = 0, 1, 2, 3, 4
INTEGER, DOUBLE, STRING, BOOLEAN = 0, 1, 2, 3


class AtomArrays(NamedTuple):
    """A batch's atoms (see `atoms.Atoms`), and for each of its paths the columns that look at it."""

    starts: Any
    path: Any
    kind: Any
    payload: Any
    length: Any
    text: Any
    column_start: Any
    columns: Any


class Codecs(NamedTuple):
    """Everything a segment knows about its columns' constants.

    For the order aspects, the strings of a column are the domain's values, and value number s of the column is
    related to the constants `related[related_offsets[related_start[column] + s]:...]`.
    """

    aspect: Any
    numbers: NumberCodec
    strings: StringCodec
    instants: InstantCodec
    trie_start: Any
    trie: Trie
    related_start: Any
    related_offsets: Any
    related: Any


class Coded(NamedTuple):
    """Coded atoms: those of publication i are starts[i] to starts[i + 1]."""

    starts: Any
    column: Any
    code: Any


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def encode(atoms: AtomArrays, codecs: Codecs, out: Coded, begin: int) -> int:
    """Code publications from `begin` on; the answer is the first that did not fit into `out` any more.

    Arrays are taken out of their groups once, up here, as in `match`.
    """
    starts, path, kind, length, text = atoms.starts, atoms.path, atoms.kind, atoms.length, atoms.text
    integers, doubles = atoms.payload, atoms.payload.view(np.float64)
    column_start, columns = atoms.column_start, atoms.columns
    aspects, numbers, strings, instants = codecs.aspect, codecs.numbers, codecs.strings, codecs.instants
    mode, number_start, number_count, number_low = numbers.mode, numbers.start, numbers.count, numbers.low
    constants, rests, grid = numbers.nearest, numbers.rest, numbers.grid
    grid_start, grid_cells, grid_low, grid_scale = (
        numbers.grid_start,
        numbers.grid_cells,
        numbers.grid_low,
        numbers.grid_scale,
    )
    string_start, string_count, ordered = strings.start, strings.count, strings.ordered
    string_offsets, string_data = strings.offsets, strings.data
    slot_start, slot_mask, slots = strings.slot_start, strings.slot_mask, strings.slots
    instant_start, instant_count, micros = instants.start, instants.count, instants.micros
    out_starts, out_column, out_code = out.starts, out.column, out.code
    count, room, at = len(starts) - 1, len(out_code), out_starts[begin]
    for row in range(begin, count):
        for a in range(starts[row], starts[row + 1]):
            for c in range(column_start[path[a]], column_start[path[a] + 1]):
                column = columns[c]
                aspect = aspects[column]
                if aspect > INSTANT:
                    if kind[a] == STRING:
                        at = _expand(atoms, codecs, column, a, out, at)
                        if at < 0:
                            return row
                    continue
                if at >= room:
                    return row
                code = np.int64(OTHER_CODE)
                if aspect == INSTANT:
                    if kind[a] == STRING:
                        moment = read_instant(text, integers[a], length[a])
                        if moment != NO_INSTANT:
                            code = instant_code(micros, instant_start[column], instant_count[column], moment)
                elif kind[a] == STRING:
                    code = np.int64(STRING_CODES)
                    if string_count[column] > 0:
                        number = find_string(
                            slots,
                            slot_start[column],
                            slot_mask[column],
                            string_offsets,
                            string_data,
                            string_start[column],
                            text,
                            integers[a],
                            length[a],
                        )
                        if number >= 0:
                            code += 2 * number + 1
                        elif ordered[column]:
                            code += 2 * string_rank(
                                string_offsets,
                                string_data,
                                string_start[column],
                                string_count[column],
                                text,
                                integers[a],
                                length[a],
                            )
                elif kind[a] == BOOLEAN:
                    code = np.int64(BOOLEAN_CODES + 2 * integers[a] + 1)
                else:
                    nearest = np.float64(integers[a]) if kind[a] == INTEGER else doubles[a]
                    if mode[column] == DENSE_NUMBERS:
                        code = dense_code(nearest - np.float64(number_low[column]), number_count[column])
                    elif mode[column] == RANKED_NUMBERS:
                        rest = _rest(integers[a], nearest) if kind[a] == INTEGER else 0
                        cell = grid_start[column] + grid_cell(
                            nearest, grid_low[column], grid_scale[column], grid_cells[column]
                        )
                        code = ranked_code(
                            constants,
                            rests,
                            number_start[column],
                            number_count[column],
                            np.int64(grid[cell]),
                            np.int64(grid[cell + 1]),
                            nearest,
                            rest,
                        )
                out_column[at] = column
                out_code[at] = code
                at += 1
        out_starts[row + 1] = at
    return count


@njit(cache=True, nogil=True, forceinline=True)  # type: ignore[untyped-decorator]
def _rest(integer: int, nearest: float) -> int:
    """What the nearest double leaves of an integer; 2**63, the double nearest to the greatest, is no int64."""
    if -9007199254740992 <= integer <= 9007199254740992:
        return 0
    if nearest >= 9223372036854775808.0:
        return integer - np.int64(9223372036854775807) - 1  # type: ignore[no-any-return]
    return integer - np.int64(nearest)  # type: ignore[no-any-return]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _expand(atoms: AtomArrays, codecs: Codecs, column: int, a: int, out: Coded, at: int) -> int:
    """The codes of all patterns found in a string, or of all constants it is related to; -1 if they do not fit."""
    aspect, start, length, text = codecs.aspect[column], atoms.payload[a], atoms.length[a], atoms.text
    if aspect > SUBSTRING:
        return _relate(codecs, column, text, start, length, out, at)
    room, base, node = len(out.code), codecs.trie_start[column], 0
    trie = codecs.trie
    pattern, link = trie.pattern, trie.link
    if pattern[base] >= 0:
        if at >= room:
            return -1
        out.column[at], out.code[at] = column, 2 * pattern[base] + 1
        at += 1
    for i in range(length):
        if aspect == SUBSTRING:
            node = step(trie.first, trie.byte, trie.fail, base, node, text[start + i])
        else:
            key = text[start + i] if aspect == PREFIX else text[start + length - 1 - i]
            node = child(trie.first, trie.byte, base, node, key)
            if node < 0:
                return at
        hit = node
        while hit > 0:
            if pattern[base + hit] >= 0:
                if at >= room:
                    return -1
                out.column[at], out.code[at] = column, 2 * pattern[base + hit] + 1
                at += 1
            hit = link[base + hit] if aspect == SUBSTRING else -1
    return at


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _relate(codecs: Codecs, column: int, text: Any, start: int, length: int, out: Coded, at: int) -> int:
    strings = codecs.strings
    if strings.count[column] == 0:
        return at
    number = find_string(
        strings.slots,
        strings.slot_start[column],
        strings.slot_mask[column],
        strings.offsets,
        strings.data,
        strings.start[column],
        text,
        start,
        length,
    )
    if number < 0:
        return at
    base = codecs.related_start[column] + number
    for r in range(codecs.related_offsets[base], codecs.related_offsets[base + 1]):
        if at >= len(out.code):
            return -1
        out.column[at], out.code[at] = column, codecs.related[r]
        at += 1
    return at
