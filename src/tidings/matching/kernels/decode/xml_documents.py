"""XML documents to atoms, in one loop over the bytes of many documents.

Documents are UTF-8. The loop decodes each as if it were well-formed; a parser checks that afterwards, and
only then the result counts. So the loop must be correct for well-formed documents and safe for any bytes: it
reads each byte a few times at most, and none beyond the end. What it has no room for (a thousand prefixes at
once) makes it *decline* the document, which is then decoded by the specification,
`tidings.documents.xml_decoder`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidings.matching.kernels.bytes import FNV_BASIS, byte_at, finish_hash, skip_space
from tidings.matching.kernels.compiled import inlined, kernel
from tidings.matching.kernels.decode import xml_tokens as token
from tidings.matching.kernels.decode.names import ATTRIBUTE, ELEMENT, TEXT, TURN, Names, Paths, enter_tag_path
from tidings.matching.kernels.decode.xml_tags import (
    ATTRIBUTE_BYTES,
    COLUMNS_FULL,
    DECLARATION,
    DECLINED,
    DEPTH,
    GOOD,
    NAME_BYTES,
    NESTED_TEXT,
    NO_SPACE,
    NODES,
    PATH_LENGTH,
    TAG_PATHS,
    TEXT_BYTES,
    UNKNOWN,
    Tag,
    Work,
    entry_code,
    scan_tag,
    space_of,
)
from tidings.matching.kernels.decode.xml_tokens import (
    follows,
    skip_instruction,
    skip_to_end,
    to_array,
    write_cdata,
    write_text,
    write_value,
)

_COMMENT, _CDATA, _HEADER, _ENCODING = map(to_array, (b"<!--", b"<![CDATA[", b"<?xml", b"encoding"))
_UTF, _UTF_8, _UTF8 = map(to_array, (b"utf", b"-8", b"8"))


class Documents(NamedTuple):
    """Document i is text[starts[i]:ends[i]]."""

    text: Any
    starts: Any
    ends: Any


class Out(NamedTuple):
    """By document the start of its atoms, its code (see `xml_tags`) and the place where that was decided;
    atoms by column.

    `text` has room for all texts, followed by all attribute values, with eight bytes more for each; `used`
    tells how far both are written, and why the loop returned.
    """

    starts: Any
    code: Any
    place: Any
    path: Any
    payload: Any
    length: Any
    parent: Any
    text: Any
    used: Any


TEXTS, VALUES, WHY = 0, 1, 2


@inlined
def _count_path(paths: Paths, path: int, turn: int, different: int, most: Any) -> Any:
    """Count a tag path of a document; return the number of distinct ones, and a code if a limit is exceeded."""
    if path < 0 or paths.met[path] == turn:
        return np.int64(different), entry_code(path)
    paths.met[path] = turn
    code = GOOD
    if paths.name_length[path] > most[NAME_BYTES]:
        code = NAME_BYTES
    elif paths.path_length[path] > most[PATH_LENGTH]:
        code = PATH_LENGTH
    elif different + 1 > most[TAG_PATHS]:
        code = TAG_PATHS
    return np.int64(different + 1), code


@inlined
def _emit(out: Out, at: int, path: int, payload: int, length: int, parent: int) -> Any:
    """Write an atom; return the number of the next one."""
    out.path[at], out.payload[at] = path, payload
    out.length[at], out.parent[at] = length, parent
    return np.int64(at + 1)


@inlined
def _text_path(paths: Paths, spaces: Names, above: int, text: Any) -> Any:
    """Return the path of the texts in an element."""
    path = np.int64(paths.text[above])
    if path < 0:
        path = enter_tag_path(paths, spaces, above, NO_SPACE, TEXT, finish_hash(FNV_BASIS), text, 0, 0)
        if path >= 0:
            paths.text[above] = path
    return path


@inlined
def _tag_path(text: Any, paths: Paths, spaces: Names, work: Work, tag: Tag, above: int, start: int) -> Any:
    """Return the path of an element below another, and a code."""
    space = np.int64(tag.default)
    if tag.local > start:
        space = space_of(text, work, tag.scope, start, tag.local - 1 - start)
    if space < 0:
        return np.int64(0), (DECLINED if space == UNKNOWN else NAME_BYTES)
    length = tag.name_end - tag.local
    return enter_tag_path(paths, spaces, above, space, ELEMENT, tag.name_hash, text, tag.local, length), GOOD


@inlined
def _attribute_path(
    text: Any, paths: Paths, spaces: Names, work: Work, scope: int, k: int, above: int
) -> Any:
    """Return the path of an attribute, and a code. One without a prefix is in no namespace."""
    start, local, space = work.name_start[k], work.local[k], np.int64(NO_SPACE)
    if local > start:
        space = space_of(text, work, scope, start, local - 1 - start)
    if space < 0:
        return np.int64(0), (DECLINED if space == UNKNOWN else NAME_BYTES)
    length = work.name_end[k] - local
    return enter_tag_path(
        paths, spaces, above, space, ATTRIBUTE, work.name_hash[k], text, local, length
    ), GOOD


@inlined
def _names_utf8(text: Any, at: int, end: int) -> bool:
    """Return whether an XML declaration names UTF-8 as its encoding, or no encoding."""
    stop = skip_instruction(text, at, end)
    while at < stop and not follows(text, at, stop, _ENCODING):
        at += 1
    if at >= stop:
        return True
    at = skip_space(text, at + len(_ENCODING), stop) + 1
    at = skip_space(text, at, stop) + 1
    for i in range(3):
        if at + i >= stop or text[at + i] | 32 != _UTF[i]:
            return False
    at += 3
    if follows(text, at, stop, _UTF_8):
        at += 2
    elif follows(text, at, stop, _UTF8):
        at += 1
    else:
        return False
    return at < stop and (text[at] == token.QUOTE or text[at] == token.APOSTROPHE)


@kernel
def find_other_encodings(documents: Documents, foreign: Any) -> None:
    """Flag the documents that may not be UTF-8, or begin with a byte order mark."""
    text = documents.text
    for i in range(len(documents.starts)):
        at, end = documents.starts[i], documents.ends[i]
        first = byte_at(text, at, end)
        foreign[i] = first == 0 or first >= 128 or (first == token.LESS and byte_at(text, at + 1, end) == 0)
        if not foreign[i] and follows(text, at, end, _HEADER):
            foreign[i] = not _names_utf8(text, at, end)


@kernel
def decode(
    documents: Documents, paths: Paths, spaces: Names, most: Any, work: Work, out: Out, first: int
) -> int:
    """Decode the documents from `first` on; return the first one that is not done, because there was no room.

    A document is read from one `<` to the next. A text ends at anything other than CDATA; before and after
    the document element `depth` is 0, and there are no texts. A document that already has a code is skipped.
    """
    text, room, atoms = documents.text, len(out.path), out.starts[first]
    texts, values = out.used[TEXTS], out.used[VALUES]
    for i in range(first, len(documents.starts)):
        at, end, begin = documents.starts[i], documents.ends[i], atoms
        texts_begin, values_begin, text_start = texts, values, texts
        depth, scope, default, declared, different = 0, 0, np.int64(NO_SPACE), 0, np.int64(0)
        nested, has_data, opened, code = 0, False, False, out.code[i]
        paths.used[TURN] += 1
        turn = paths.used[TURN]
        while code == GOOD and at < end:
            if depth == 0:
                at = skip_space(text, at, end)
                if at == end:
                    break
            elif text[at] != token.LESS:
                at, texts = write_text(text, at, end, out.text, texts)
            if at < 0 or at == end or text[at] != token.LESS:
                code = DECLINED
                break
            c = byte_at(text, at + 1, end)
            if c == token.BANG and depth > 0 and follows(text, at, end, _CDATA):
                start, at = at + len(_CDATA), skip_to_end(text, at + len(_CDATA), end, token.CLOSE)
                if at < 0:
                    code = DECLINED
                    break
                texts = write_cdata(text, start, at - 3, out.text, texts)
                has_data = True
                continue
            if texts - text_start > most[TEXT_BYTES]:
                code = TEXT_BYTES
                break
            if has_data or texts > text_start:
                if atoms == room:
                    code = COLUMNS_FULL
                    break
                path = _text_path(paths, spaces, work.path[depth - 1], text)
                different, code = _count_path(paths, path, turn, different, most)
                atoms = _emit(out, atoms, path, text_start, texts - text_start, work.atom[depth - 1])
                text_start, has_data = texts, False
                if code != GOOD:
                    break
            if c == token.SLASH:
                depth -= 1
                if depth < 0:
                    code = DECLINED
                    break
                at += 2 + work.name[depth]
                while at < end and text[at] != token.GREATER:
                    at += 1
                if at >= end:
                    code = DECLINED
                    break
                at += 1
                atom = begin + work.atom[depth]
                out.length[atom] = texts - out.payload[atom]
                nested += out.length[atom]
                scope, default = work.scope[depth], np.int64(work.default[depth])
                if nested > most[NESTED_TEXT]:
                    code = NESTED_TEXT
            elif c == token.BANG:
                if not follows(text, at, end, _COMMENT):
                    code = DECLINED if opened else DECLARATION
                    break
                at = skip_to_end(text, at + len(_COMMENT), end, token.DASH)
            elif c == token.QUESTION:
                at = skip_instruction(text, at + 2, end)
            elif depth == 0 and opened:
                code = DECLINED
            else:
                start = at + 1
                tag = scan_tag(
                    text, start, end, spaces, most, work, scope, default, declared, out.text, values
                )
                at, code, declared = tag.at, tag.code, tag.declared
                if code == GOOD and atoms + 1 + tag.attributes > room:
                    code = COLUMNS_FULL
                if code == GOOD and depth == most[DEPTH]:
                    code = DEPTH
                if code != GOOD:
                    break
                above = np.int64(work.path[depth - 1] if depth > 0 else -1)
                path, code = _tag_path(text, paths, spaces, work, tag, above, start)
                if code == GOOD:
                    different, code = _count_path(paths, path, turn, different, most)
                if code != GOOD:
                    break
                here, opened = atoms - begin, True
                atoms = _emit(out, atoms, path, texts, 0, work.atom[depth - 1] if depth > 0 else -1)
                for k in range(tag.attributes):
                    inner, code = _attribute_path(text, paths, spaces, work, tag.scope, k, path)
                    if code == GOOD:
                        different, code = _count_path(paths, inner, turn, different, most)
                    value, value_end = work.value_start[k], work.value_end[k]
                    value_stop = write_value(text, value, value_end, work.odd[k], out.text, values)
                    if code == GOOD and value_stop < 0:
                        code = DECLINED
                    if code == GOOD and value_stop - values > most[ATTRIBUTE_BYTES]:
                        code = ATTRIBUTE_BYTES
                    if code != GOOD:
                        break
                    atoms = _emit(out, atoms, inner, values, value_stop - values, here)
                    values = value_stop
                if not tag.empty:
                    work.path[depth], work.atom[depth] = path, here
                    work.name[depth] = tag.name_end - start
                    work.scope[depth], work.default[depth] = scope, default
                    scope, default = tag.scope, np.int64(tag.default)
                    depth += 1
            if at < 0:
                code = DECLINED
            elif code == GOOD and atoms - begin > most[NODES]:
                code = NODES
        if code < GOOD:
            out.used[WHY] = code
            return i
        if code == GOOD and (depth > 0 or not opened):
            code = DECLINED
        if code != GOOD:
            atoms, texts, values = begin, texts_begin, values_begin
        out.code[i], out.place[i] = code, at - documents.starts[i]
        out.starts[i + 1] = atoms
        out.used[TEXTS], out.used[VALUES] = texts, values
    return len(documents.starts)
