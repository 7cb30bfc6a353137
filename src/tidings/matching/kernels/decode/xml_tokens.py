"""XML tokens in bytes: names, attribute values, references, ends of comments.

Each scanner gets the text, a start and the end of the document, and returns where it stopped; -1 means that
the token is invalid, or one that the specification has to decide. None reads a byte beyond the end. Whether
names and characters are allowed is not checked: a parser does so later.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.matching.kernels.bytes import (
    BYTES,
    FNV_BASIS,
    FNV_PRIME,
    ONES,
    copy_bytes,
    count_before_first,
    finish_hash,
    flag_zeros,
    load_word,
    store_word,
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


def to_array(word: bytes) -> Any:
    """Return bytes to compare with `follows`."""
    return np.frombuffer(word, np.uint8)


_NUMBERED, _LT, _GT, _AMP, _APOS, _QUOT = map(
    to_array, (b"&#", b"&lt;", b"&gt;", b"&amp;", b"&apos;", b"&quot;")
)


@inlined
def scan_name(text: Any, at: int, end: int) -> Any:
    """Return the end of a name, the start of its local part, and the hash of that part.

    A name with two colons, or with nothing before or after one, gives -1.
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
    return np.int64(at if at > local else -1), np.int64(local), finish_hash(h)


@inlined
def scan_value(text: Any, at: int, end: int) -> Any:
    """Return the place of the closing quote, or -1, and whether the value needs normalization."""
    quote, odd = text[at], False
    at += 1
    while at < end and text[at] != quote:
        odd |= _ODD[text[at]]
        at += 1
    return np.int64(at if at < end else -1), odd


@inlined
def follows(text: Any, at: int, end: int, word: Any) -> bool:
    """Return whether the text has these bytes at a place."""
    if at + len(word) > end:
        return False
    i = 0
    while i < len(word) and text[at + i] == word[i]:
        i += 1
    return i == len(word)


@inlined
def skip_to_end(text: Any, at: int, end: int, twice: int) -> Any:
    """Return the place after the next `-->` (`twice` is a dash) or `]]>`, or -1."""
    while at + 2 < end:
        if text[at] == twice and text[at + 1] == twice and text[at + 2] == GREATER:
            return np.int64(at + 3)
        at += 1
    return np.int64(-1)


@inlined
def skip_instruction(text: Any, at: int, end: int) -> Any:
    """Return the place after the next `?>`, or -1."""
    while at + 1 < end:
        if text[at] == QUESTION and text[at + 1] == GREATER:
            return np.int64(at + 2)
        at += 1
    return np.int64(-1)


@inlined
def _scan_character_reference(text: Any, at: int, end: int) -> Any:
    """Return the place of the semicolon, or -1, and the character. Starts after `&#`."""
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
    """Return the place after a reference, or -1, and its character. Starts at the `&`; five entities have names."""
    if follows(text, at, end, _NUMBERED):
        stop, value = _scan_character_reference(text, at + 2, end)
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
def write_character(out: Any, at: int, character: int) -> Any:
    """Write a character in UTF-8; return the place after it."""
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
    """Return the place after a line end that begins with a carriage return; a line feed after it belongs to it."""
    return np.int64(at + 2 if at + 1 < end and text[at + 1] == LF else at + 1)


@inlined
def write_text(text: Any, at: int, end: int, out: Any, to: int) -> Any:
    """Copy text up to the next `<` or the end: how far it was read (-1: an unknown reference), and written.

    Whole words are written, so `out` needs seven bytes more than `text` could need.
    """
    while at < end:
        while at + BYTES <= end:
            word = load_word(text, at)
            store_word(out, to, word)
            plain = count_before_first(
                flag_zeros(word ^ _LESSES) | flag_zeros(word ^ _ANDS) | flag_zeros(word ^ _RETURNS)
            )
            at, to = at + plain, to + plain
            if plain < BYTES:
                break
        if at == end or text[at] == LESS:
            break
        if text[at] == AND:
            at, character = scan_reference(text, at, end)
            if at < 0:
                break
            to = write_character(out, to, character)
        elif text[at] == CR:
            at = _after_return(text, at, end)
            out[to] = LF
            to += 1
        else:
            out[to] = text[at]
            at, to = at + 1, to + 1
    return np.int64(at), np.int64(to)


@inlined
def write_cdata(text: Any, at: int, end: int, out: Any, to: int) -> Any:
    """Copy the content of a CDATA section, with line ends normalized; return how far it was written."""
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
def write_value(text: Any, at: int, end: int, odd: bool, out: Any, to: int) -> Any:
    """Copy an attribute value, with line ends and tabs as spaces; return how far it was written, or -1."""
    if not odd:
        copy_bytes(text, at, end - at, out, to)
        return np.int64(to + end - at)
    while at < end:
        c = text[at]
        if c == AND:
            at, character = scan_reference(text, at, end)
            if at < 0:
                return np.int64(-1)
            to = write_character(out, to, character)
        else:
            at = int(_after_return(text, at, end)) if c == CR else at + 1
            out[to] = SPACE if c in (CR, LF, TAB) else c
            to += 1
    return np.int64(to)
