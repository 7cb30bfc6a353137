"""Encoding: turns the atoms of a batch into codes of a segment's columns.

A code is odd for a value that equals a constant, and even for values between two constants.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidings.matching.kernels.bytes import hash_bytes
from tidings.matching.kernels.codes import (
    BOOLEAN_CODES,
    DENSE_NUMBERS,
    OTHER_CODE,
    STRING_CODES,
    InstantCodec,
    NumberCodec,
    StringCodec,
    dense_code,
    find_string,
    instant_code,
    number_code,
    string_code,
)
from tidings.matching.kernels.compiled import I32, I64, U8, inlined, kernel
from tidings.matching.kernels.decode.scalars import NO_INSTANT, read_instant
from tidings.matching.kernels.strings import Trie, child, next_state

# The numbers of atoms.Aspect and atoms.AtomKind; a test keeps them equal.
VALUE, INSTANT, PREFIX, SUFFIX, SUBSTRING, NUMBER = 0, 1, 2, 3, 4, 9
INTEGER, DOUBLE, STRING, BOOLEAN = 0, 1, 2, 3


class AtomArrays(NamedTuple):
    """Atoms of a batch (see `atoms.Atoms`), and the columns that test each of its paths.

    `double` is the payload as doubles; for documents, the numbers that their texts name. `string` is the
    number of each of their texts among the shared strings (see `strings.find_strings`). For a path with a
    single column whose constants are dense integers, `dense_low` is the first constant and `dense_count`
    their number; it is 0 for other paths.
    """

    starts: Any
    path: Any
    kind: Any
    payload: Any
    double: Any
    string: Any
    length: Any
    text: Any
    column_start: Any
    columns: Any
    dense_low: Any
    dense_count: Any


class Codecs(NamedTuple):
    """The constants of a segment's columns.

    For the order aspects, the strings of a column are the domain's values, and value number s of the column
    is related to the constants `related[related_offsets[related_start[column] + s]:...]`.
    """

    aspect: U8
    numbers: NumberCodec
    strings: StringCodec
    instants: InstantCodec
    trie_start: I64
    trie: Trie
    related_start: I64
    related_offsets: I64
    related: I32


class Coded(NamedTuple):
    """Coded atoms: those of publication i are starts[i] to starts[i + 1].

    `match` needs the codes of one column together, sorted, and without duplicates.
    """

    starts: Any
    column: Any
    code: Any


class Marks(NamedTuple):
    """The publication that was last seen, by trie node and by column; publication i is tick + i.

    A tick that rises from call to call avoids clearing them.
    """

    node: Any
    column: Any
    tick: Any


@kernel
def encode(atoms: AtomArrays, codecs: Codecs, marks: Marks, out: Coded, begin: int) -> Any:
    """Encode publications from `begin` on.

    Returns the first one that did not fit into `out`, and whether some have several codes in a column.
    """
    count = len(atoms.starts) - 1
    room = len(out.code)
    several = False
    at = out.starts[begin]
    for row in range(begin, count):
        for a in range(atoms.starts[row], atoms.starts[row + 1]):
            path = np.uint32(atoms.path[a])
            if atoms.dense_count[path] and atoms.kind[a] == INTEGER:
                if at >= room:
                    return row, several
                column = atoms.columns[np.uint64(atoms.column_start[path])]
                several |= marks.column[column] == marks.tick + row
                marks.column[column] = marks.tick + row
                out.column[at] = column
                out.code[at] = dense_code(atoms.dense_low[path], atoms.dense_count[path], atoms.payload[a])
                at += 1
                continue
            is_hashed, hashed = False, np.uint64(0)
            for c in range(atoms.column_start[path], atoms.column_start[path + np.uint32(1)]):
                column = atoms.columns[c]
                aspect = codecs.aspect[column]
                asked = aspect == VALUE and atoms.kind[a] == STRING and not is_hashed
                if (
                    asked
                    and not codecs.strings.shared[column]
                    and atoms.length[a] <= codecs.strings.longest[column]
                ):
                    is_hashed, hashed = True, hash_bytes(atoms.text, atoms.payload[a], atoms.length[a])
                if aspect <= INSTANT:
                    if at >= room:
                        return row, several
                    code = _value_code(atoms, codecs, column, a, hashed) if aspect == VALUE else 0
                    if aspect == INSTANT:
                        code = _instant_code(atoms, codecs, column, a)
                    if code & 1 == 0 and codecs.strings.equals[column]:
                        continue
                    if at > out.starts[row] and out.column[at - 1] == column and out.code[at - 1] == code:
                        continue  # an element and its text node have the same text
                    several |= marks.column[column] == marks.tick + row
                    marks.column[column] = marks.tick + row
                    out.column[at] = column
                    out.code[at] = code
                    at += 1
                elif aspect == NUMBER:
                    value = atoms.double[a]
                    if value == value:
                        if at >= room:
                            return row, several
                        several |= marks.column[column] == marks.tick + row
                        marks.column[column] = marks.tick + row
                        out.column[at] = column
                        out.code[at] = number_code(codecs.numbers, column, value, 0)
                        at += 1
                elif atoms.kind[a] == STRING:
                    first = at
                    at = _expand(atoms, codecs, marks, row, column, a, out, at)
                    if at < 0:
                        return row, several
                    several |= at > first + 1 or (at > first and marks.column[column] == marks.tick + row)
                    if at > first:
                        marks.column[column] = marks.tick + row
        out.starts[row + 1] = at
    return count, several


@inlined
def _value_code(atoms: AtomArrays, codecs: Codecs, column: int, a: int, hashed: Any) -> int:
    kind, payload = atoms.kind[a], atoms.payload[a]
    if kind == INTEGER:
        if codecs.numbers.mode[column] == DENSE_NUMBERS:
            return dense_code(codecs.numbers.low[column], codecs.numbers.count[column], payload)
        nearest = np.float64(payload)
        return number_code(codecs.numbers, column, nearest, _rest(payload, nearest))
    if kind == DOUBLE:
        return number_code(codecs.numbers, column, atoms.double[a], 0)
    if kind == STRING and codecs.strings.shared[column]:
        return STRING_CODES + max(0, 2 * atoms.string[a] + 1)
    if kind == STRING:
        return string_code(codecs.strings, column, atoms.text, payload, atoms.length[a], hashed)
    return BOOLEAN_CODES + 2 * payload + 1


@inlined
def _instant_code(atoms: AtomArrays, codecs: Codecs, column: int, a: int) -> int:
    if atoms.kind[a] != STRING:
        return OTHER_CODE
    ticks = read_instant(atoms.text, atoms.payload[a], atoms.length[a])
    return OTHER_CODE if ticks == NO_INSTANT else instant_code(codecs.instants, column, ticks)


@inlined
def _expand(
    atoms: AtomArrays, codecs: Codecs, marks: Marks, row: int, column: int, a: int, out: Coded, at: int
) -> int:
    """Append the codes of all patterns in a string, or of all constants it is related to; -1 if they do not fit."""
    aspect, start, length = codecs.aspect[column], atoms.payload[a], atoms.length[a]
    if aspect > SUBSTRING:
        return _relate(
            codecs, column, find_string(codecs.strings, column, atoms.text, start, length), out, at
        )
    room, base, node = len(out.code), codecs.trie_start[column], 0
    trie = codecs.trie
    if trie.pattern[base] >= 0:
        if at >= room:
            return -1
        out.column[at], out.code[at] = column, 2 * trie.pattern[base] + 1
        at += 1
    for i in range(length):
        if aspect == SUBSTRING:
            node = next_state(trie, base, node, atoms.text[start + i])
        else:
            key = atoms.text[start + i] if aspect == PREFIX else atoms.text[start + length - 1 - i]
            node = child(trie, base, node, key)
            if node < 0:
                return at
        hit = node
        # A marked node was reported with all its suffixes: a text costs its length plus its number of patterns.
        while hit > 0 and marks.node[base + hit] != marks.tick + row:
            marks.node[base + hit] = marks.tick + row
            if trie.pattern[base + hit] >= 0:
                if at >= room:
                    return -1
                out.column[at], out.code[at] = column, 2 * trie.pattern[base + hit] + 1
                at += 1
            hit = trie.link[base + hit] if aspect == SUBSTRING else -1
    return at


@inlined
def _relate(codecs: Codecs, column: int, number: int, out: Coded, at: int) -> int:
    if number < 0:
        return at
    base = codecs.related_start[column] + number
    for r in range(codecs.related_offsets[base], codecs.related_offsets[base + 1]):
        if at >= len(out.code):
            return -1
        out.column[at], out.code[at] = column, codecs.related[r]
        at += 1
    return at


@inlined
def _rest(integer: int, nearest: float) -> Any:
    """Return the integer minus its nearest double, which may be 2**63 and then is not an int64."""
    if -9007199254740992 <= integer <= 9007199254740992:
        return np.int64(0)
    if nearest >= 9223372036854775808.0:
        return integer - np.int64(9223372036854775807) - np.int64(1)
    return integer - np.int64(nearest)


@kernel
def sort_codes(coded: Coded) -> None:
    """Sort the codes of each publication by column and code, and remove duplicates."""
    at, begin = coded.starts[0], coded.starts[0]
    for row in range(len(coded.starts) - 1):
        end = coded.starts[row + 1]
        _sort(coded, begin, end)
        for i in range(begin, end):
            again = (
                i > begin and coded.column[i] == coded.column[i - 1] and coded.code[i] == coded.code[i - 1]
            )
            if not again:
                # Writing never overtakes reading: at <= i.
                coded.column[at], coded.code[at] = coded.column[i], coded.code[i]
                at += 1
        begin = end
        coded.starts[row + 1] = at


@inlined
def _sort(coded: Coded, begin: int, end: int) -> None:
    """Shell sort: lists are short and mostly sorted, and it needs no memory."""
    gap = 1
    while gap < (end - begin) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(begin + gap, end):
            column, code, place = coded.column[i], coded.code[i], i
            while place - gap >= begin and (
                coded.column[place - gap] > column
                or (coded.column[place - gap] == column and coded.code[place - gap] > code)
            ):
                coded.column[place] = coded.column[place - gap]
                coded.code[place] = coded.code[place - gap]
                place -= gap
            coded.column[place], coded.code[place] = column, code
        gap //= 3
