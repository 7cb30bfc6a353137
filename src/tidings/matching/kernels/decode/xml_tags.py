"""XML start tags: attributes and namespace declarations.

Nothing of a tag is written before all of it is read, because a prefix may be declared after its use:
`<p:a p:b="" xmlns:p="u">`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidings.matching.kernels.bytes import byte_at, hash_bytes, skip_space
from tidings.matching.kernels.compiled import inlined
from tidings.matching.kernels.decode import xml_tokens as token
from tidings.matching.kernels.decode.names import NO_ROOM, Names, enter_name
from tidings.matching.kernels.decode.xml_tokens import follows, scan_name, scan_value, to_array, write_value

COLUMNS_FULL, TABLES_FULL = -2, -1
GOOD, DECLINED, REFUSED, DECLARATION, CROWDED = 0, 1, 2, 3, 4
DEPTH, NODES, TEXT_BYTES, NESTED_TEXT, ATTRIBUTES = 5, 6, 7, 8, 9
ATTRIBUTE_BYTES, NAMESPACES, NAME_BYTES, PATH_LENGTH, TAG_PATHS = 10, 11, 12, 13, 14
"""Codes of documents: decoded, declined, rejected before, has a declaration, table of tag paths too full,
or exceeds a limit, whose value is in `most` at the same place. Below 0 the document is not done, because
there is no room.
"""

NO_SPACE, XML_SPACE = 0, 1
UNKNOWN, TOO_LONG = -1, -2
"""Instead of the namespace of a prefix."""

_XMLNS, _XML = to_array(b"xmlns"), to_array(b"xml")


class Work(NamedTuple):
    """The open elements by depth: path, atom, length of the name, prefixes in scope and default namespace
    before it.

    The prefixes in scope; and the attributes of the current tag. `odd` values need normalization (see
    `scan_value`).
    """

    path: Any
    atom: Any
    name: Any
    scope: Any
    default: Any
    prefix_start: Any
    prefix_length: Any
    space: Any
    name_start: Any
    local: Any
    name_end: Any
    name_hash: Any
    value_start: Any
    value_end: Any
    odd: Any


class Tag(NamedTuple):
    """A start tag: the place after it, its code, whether it is empty, its attributes.

    Its name without the prefix; prefixes in scope, default namespace and number of declarations so far.
    """

    at: Any
    code: Any
    empty: Any
    attributes: Any
    local: Any
    name_end: Any
    name_hash: Any
    scope: Any
    default: Any
    declared: Any


@inlined
def _is(text: Any, start: int, length: int, word: Any) -> bool:
    return length == len(word) and follows(text, start, start + length, word)


@inlined
def _same(text: Any, first: int, second: int, length: int) -> bool:
    i = 0
    while i < length and text[first + i] == text[second + i]:
        i += 1
    return i == length


@inlined
def space_of(text: Any, work: Work, scope: int, start: int, length: int) -> Any:
    """Return the namespace of a prefix, or UNKNOWN or TOO_LONG."""
    if _is(text, start, length, _XML):
        return np.int64(XML_SPACE)
    i = scope - 1
    while i >= 0:
        if work.prefix_length[i] == length and _same(text, work.prefix_start[i], start, length):
            return np.int64(work.space[i])
        i -= 1
    return np.int64(UNKNOWN)


@inlined
def _is_plain_uri(text: Any, start: int, end: int) -> bool:
    for i in range(start, end):
        c = text[i]
        if c <= token.SPACE or c >= 127 or c == token.CLOSE_BRACE:
            return False
    return True


@inlined
def entry_code(answer: int) -> int:
    """Return the code for the answer of a table: one without room is enlarged, one that accepts no more is not."""
    return GOOD if answer >= 0 else TABLES_FULL if answer == NO_ROOM else CROWDED


@inlined
def _enter_namespace(text: Any, start: int, end: int, is_default: bool, spaces: Names, most: Any) -> Any:
    """Return the number of a namespace and a code. One that is too long matters only to names that use it."""
    if start == end:
        return np.int64(NO_SPACE), (GOOD if is_default else DECLINED)
    if not _is_plain_uri(text, start, end):
        return np.int64(NO_SPACE), DECLINED
    if end - start > most[NAME_BYTES]:
        return np.int64(TOO_LONG), GOOD
    space = enter_name(spaces, 0, hash_bytes(text, start, end - start), text, start, end - start)
    return space, entry_code(space)


@inlined
def _resolve_declaration(
    text: Any, start: int, end: int, odd: bool, is_default: bool, spaces: Names, most: Any, out: Any, to: int
) -> Any:
    """Return the namespace of an attribute value and a code; a value with references is expanded into `out` first."""
    if not odd:
        return _enter_namespace(text, start, end, is_default, spaces, most)
    stop = write_value(text, start, end, odd, out, to)
    if stop < 0:
        return np.int64(NO_SPACE), DECLINED
    return _enter_namespace(out, to, stop, is_default, spaces, most)


@inlined
def scan_tag(
    text: Any,
    at: int,
    end: int,
    spaces: Names,
    most: Any,
    work: Work,
    scope: int,
    default: int,
    declared: int,
    out: Any,
    to: int,
) -> Tag:
    """Read a start tag from its name on; `out` has room for a value from `to` on."""
    code, empty, attributes = GOOD, False, 0
    at, local, name_hash = scan_name(text, at, end)
    tag_name_end = at
    while code == GOOD:
        if at < 0:
            code = DECLINED
            break
        before = at
        at = skip_space(text, at, end)
        c = byte_at(text, at, end)
        if c == token.GREATER:
            at += 1
            break
        if c == token.SLASH:
            empty = True
            code = GOOD if byte_at(text, at + 1, end) == token.GREATER else DECLINED
            at += 2
            break
        name = at
        at, name_local, attribute_hash = scan_name(text, name, end)
        name_end = at
        if before == name or at < 0:
            code = DECLINED
            break
        at = skip_space(text, at, end)
        if byte_at(text, at, end) != token.EQUALS:
            code = DECLINED
            break
        at = skip_space(text, at + 1, end)
        c = byte_at(text, at, end)
        if c != token.QUOTE and c != token.APOSTROPHE:
            code = DECLINED
            break
        value = at + 1
        value_end, odd = scan_value(text, at, end)
        if value_end < 0:
            code = DECLINED
            break
        at = value_end + 1
        if _is(text, name, name_end - name if name_local == name else name_local - 1 - name, _XMLNS):
            prefix_length = 0 if name_local == name else name_end - name_local
            declared += 1
            if declared > most[NAMESPACES]:
                code = NAMESPACES
                break
            space, code = _resolve_declaration(
                text, value, value_end, odd, prefix_length == 0, spaces, most, out, to
            )
            is_xml = _is(text, name_local, prefix_length, _XML)
            if prefix_length == 0:
                default = space
            elif scope == len(work.space) or is_xml != (space == XML_SPACE):
                code = DECLINED
            else:
                work.prefix_start[scope], work.prefix_length[scope] = name_local, prefix_length
                work.space[scope] = space
                scope += 1
        elif attributes == most[ATTRIBUTES]:
            code = ATTRIBUTES
        elif name_end - name_local > most[NAME_BYTES]:
            code = NAME_BYTES
        elif attributes == len(work.local):
            code = DECLINED
        else:
            work.name_start[attributes], work.local[attributes] = name, name_local
            work.name_end[attributes], work.name_hash[attributes] = name_end, attribute_hash
            work.value_start[attributes], work.value_end[attributes] = value, value_end
            work.odd[attributes] = odd
            attributes += 1
    if code == GOOD and tag_name_end - local > most[NAME_BYTES]:
        code = NAME_BYTES
    return Tag(at, code, empty, attributes, local, tag_name_end, name_hash, scope, default, declared)
