"""Reading the tokens of XML from bytes: names, values of attributes, references, what ends a comment.

Each scanner gets the text, where to begin and where the document ends, and says where it stopped; -1 means that the
token is not one, or not one that is decided here. None of them looks at a byte beyond the end. Whether names and
characters are allowed is not looked at: a parser judges the same bytes later.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.matching.kernels.bytes import (
    BYTES,
    FNV_BASIS,
    FNV_PRIME,
    ONES,
    before_first,
    copy,
    finished,
    put_word,
    word_at,
    zeros,
)
from tidings.matching.kernels.compiled import inlined

TAB, LF, CR, SPACE, BANG, QUOTE, HASH, AND, APOSTROPHE, DASH = 9, 10, 13, 32, 33, 34, 35, 38, 39, 45
SLASH, COLON, SEMICOLON, LESS, EQUALS, GREATER, QUESTION, OPEN, CLOSE = 47, 58, 59, 60, 61, 62, 63, 91, 93
CLOSE_BRACE = 125

_IN_NAME = np.array([c >= 128 or chr(c).isalnum() or chr(c) in "_-.:" for c in range(256)])
_ODD = np.array([c < SPACE or c == AND for c in range(256)])
_HEX = np.array([int(chr(c), 16) if chr(c) in "0123456789abcdefABCDEF" else 99 for c in range(256)], np.int64)
_LESSES, _ANDS, _RETURNS = (ONES * np.uint64(c) for c in (LESS, AND, CR))
_LAST_CHARACTER, _FIRST_SURROGATE, _LAST_SURROGATE = 0x10FFFF, 0xD800, 0xDFFF


def word_of(said: bytes) -> Any:
    """Bytes to be looked for with `follows`."""
    return np.frombuffer(said, np.uint8)


_NUMBERED, _LT, _GT, _AMP, _APOS, _QUOT = map(
    word_of, (b"&#", b"&lt;", b"&gt;", b"&amp;", b"&apos;", b"&quot;")
)


@inlined
def scan_name(text: Any, at: int, end: int) -> Any:
    """Where a name ends, where its part behind the colon begins, and the hash of that part.

    With two colons, or nothing before or behind one, it is no name of a namespace: -1.
    """
    first, local, h = at, at, FNV_BASIS
    while at < end and _IN_NAME[text[at]]:
        c = text[at]
        if c == COLON:
            if local > first or at == first:
                return np.int64(-1), np.int64(local), h
            local, h = at + 1, FNV_BASIS
        else:
            h = (h ^ np.uint64(c)) * FNV_PRIME
        at += 1
    return np.int64(at if at > local else -1), np.int64(local), finished(h)


@inlined
def scan_value(text: Any, at: int, end: int) -> Any:
    """From the opening quote on: where the closing one is, or -1, and whether what is between says something else."""
    quote, odd = text[at], False
    at += 1
    while at < end and text[at] != quote:
        odd |= _ODD[text[at]]
        at += 1
    return np.int64(at if at < end else -1), odd


@inlined
def follows(text: Any, at: int, end: int, word: Any) -> bool:
    """Whether these bytes stand there."""
    if at + len(word) > end:
        return False
    i = 0
    while i < len(word) and text[at + i] == word[i]:
        i += 1
    return i == len(word)


@inlined
def behind(text: Any, at: int, end: int, twice: int) -> Any:
    """Behind the next `-->` (`twice` is a dash) or `]]>`, or -1."""
    while at + 2 < end:
        if text[at] == twice and text[at + 1] == twice and text[at + 2] == GREATER:
            return np.int64(at + 3)
        at += 1
    return np.int64(-1)


@inlined
def behind_instruction(text: Any, at: int, end: int) -> Any:
    """Behind the next `?>`, or -1."""
    while at + 1 < end:
        if text[at] == QUESTION and text[at + 1] == GREATER:
            return np.int64(at + 2)
        at += 1
    return np.int64(-1)


@inlined
def _numbered(text: Any, at: int, end: int) -> Any:
    """From behind `&#`: where the semicolon is, and the character that is meant, or -1."""
    base = 16 if at < end and text[at] == 120 else 10
    at += base == 16
    value, first = np.int64(0), at
    while at < end and _HEX[text[at]] < base:
        value = value * base + _HEX[text[at]]
        at += 1
        if value > _LAST_CHARACTER:
            return np.int64(-1), value
    good = first < at < end and text[at] == SEMICOLON and not _FIRST_SURROGATE <= value <= _LAST_SURROGATE
    return np.int64(at if good else -1), value


@inlined
def scan_reference(text: Any, at: int, end: int) -> Any:
    """From the `&` on: behind the reference, or -1, and the character it stands for. Five entities have a name."""
    if follows(text, at, end, _NUMBERED):
        stop, value = _numbered(text, at + 2, end)
        return np.int64(stop + 1 if stop >= 0 else -1), value
    if follows(text, at, end, _LT):
        return np.int64(at + 4), np.int64(LESS)
    if follows(text, at, end, _GT):
        return np.int64(at + 4), np.int64(GREATER)
    if follows(text, at, end, _AMP):
        return np.int64(at + 5), np.int64(AND)
    if follows(text, at, end, _APOS):
        return np.int64(at + 6), np.int64(APOSTROPHE)
    if follows(text, at, end, _QUOT):
        return np.int64(at + 6), np.int64(QUOTE)
    return np.int64(-1), np.int64(0)


@inlined
def put_character(out: Any, at: int, character: int) -> Any:
    """Write a character in UTF-8; behind it."""
    if character < 0x80:
        out[at] = character
        return np.int64(at + 1)
    if character < 0x800:
        out[at], out[at + 1] = 0xC0 | character >> 6, 0x80 | character & 63
        return np.int64(at + 2)
    if character < 0x10000:
        out[at], out[at + 1] = 0xE0 | character >> 12, 0x80 | character >> 6 & 63
        out[at + 2] = 0x80 | character & 63
        return np.int64(at + 3)
    out[at], out[at + 1] = 0xF0 | character >> 18, 0x80 | character >> 12 & 63
    out[at + 2], out[at + 3] = 0x80 | character >> 6 & 63, 0x80 | character & 63
    return np.int64(at + 4)


@inlined
def _after_return(text: Any, at: int, end: int) -> Any:
    """Behind a line end that begins with a carriage return: one with a line feed behind it is one line end."""
    return np.int64(at + 2 if at + 1 < end and text[at + 1] == LF else at + 1)


@inlined
def put_text(text: Any, at: int, end: int, out: Any, to: int) -> Any:
    """Copy text up to the next `<` or the end: how far it was read (-1: a reference nobody knows), and written.

    Words are written whole, so `out` has to have seven bytes more than `text` could need.
    """
    while at < end:
        while at + BYTES <= end:
            word = word_at(text, at)
            put_word(out, to, word)
            plain = before_first(zeros(word ^ _LESSES) | zeros(word ^ _ANDS) | zeros(word ^ _RETURNS))
            at, to = at + plain, to + plain
            if plain < BYTES:
                break
        if at == end or text[at] == LESS:
            break
        if text[at] == AND:
            at, character = scan_reference(text, at, end)
            if at < 0:
                break
            to = put_character(out, to, character)
        elif text[at] == CR:
            at = _after_return(text, at, end)
            out[to] = LF
            to += 1
        else:
            out[to] = text[at]
            at, to = at + 1, to + 1
    return np.int64(at), np.int64(to)


@inlined
def put_data(text: Any, at: int, end: int, out: Any, to: int) -> Any:
    """Copy the inside of a CDATA section, which is text as it stands but for line ends; how far was written."""
    while at < end:
        if text[at] == CR:
            at = _after_return(text, at, end)
            out[to] = LF
        else:
            out[to] = text[at]
            at += 1
        to += 1
    return np.int64(to)


@inlined
def put_value(text: Any, at: int, end: int, odd: bool, out: Any, to: int) -> Any:
    """Copy the value of an attribute, in which line ends and tabs are spaces; how far was written, or -1."""
    if not odd:
        copy(text, at, end - at, out, to)
        return np.int64(to + end - at)
    while at < end:
        c = text[at]
        if c == AND:
            at, character = scan_reference(text, at, end)
            if at < 0:
                return np.int64(-1)
            to = put_character(out, to, character)
        else:
            at = int(_after_return(text, at, end)) if c == CR else at + 1
            out[to] = SPACE if c in (CR, LF, TAB) else c
            to += 1
    return np.int64(to)
