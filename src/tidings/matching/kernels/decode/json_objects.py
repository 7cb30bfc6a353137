"""JSON objects to atoms, in one loop over the bytes of many objects.

The loop handles only plain input. Anything unusual (an escape in a wanted string, a repeated key, a syntax
error) makes it *decline* the document, which is then decoded by the specification,
`tidings.events.json_decoder`. So the meaning is defined once, and the loop never guesses.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidings.matching.kernels.bytes import byte_at, skip_space
from tidings.matching.kernels.compiled import inlined, kernel
from tidings.matching.kernels.decode import json_tokens as scan
from tidings.matching.kernels.decode.json_tokens import (
    scan_key,
    scan_number,
    scan_string,
    scan_word,
)
from tidings.matching.kernels.decode.names import NOWHERE, child, is_key
from tidings.matching.kernels.decode.scalars import nearest_double

INTEGER, DOUBLE, STRING, BOOLEAN = 0, 1, 2, 3
"""The kinds of `tidings.atoms.AtomKind`."""

MOST_DEPTH = 32
MOST_KEYS = 4096
MOST_PATH_TEXT = 20_000_000
"""Limits of `events.json_decoder`; a test keeps them equal. The kernel counts bytes, of which there are at
least as many as characters: a document that may exceed the limit is declined.
"""

MOST_MAGNITUDE = 300
"""A number with so many digits and zeros is certainly finite; a document with a larger one is declined."""

ROOT, NO_ID = 0, -2
_KEY, _VALUE, _AFTER, _DONE, _DECLINED = 0, 1, 2, 3, 4
_ZERO = np.uint64(0)
_INT64_MAX = np.uint64((1 << 63) - 1)


class Documents(NamedTuple):
    """Document i is text[starts[i]:ends[i]]."""

    text: Any
    starts: Any
    ends: Any


class Paths(NamedTuple):
    """Wanted paths as a trie. Node 0 is the document; the key of a node is key_length bytes of `keys` at
    key_start.

    `path` is the number of the wanted path that ends at the node, or -1; `exact` tells of a path whether the
    content of a string matters, or only that it is a string. `slots` finds a child by its parent and its key
    (see `names.Keys`). `id_node` is the node of the id, or NO_ID; `cloud_event` is the member that makes a
    document a CloudEvent, which the specification decodes.
    """

    parent: Any
    key_start: Any
    key_length: Any
    key_hash: Any
    key_word: Any
    keys: Any
    slots: Any
    path: Any
    exact: Any
    id_node: Any
    cloud_event: Any


class Work(NamedTuple):
    """The open objects and arrays by depth, and the hashes of their keys so far that are not nodes.

    Objects are numbered; `met` is the last object that had the key of a node, and `objects` the last number,
    for the next call. `follower` is the node whose key followed that of a node last time: events of one
    source usually have their keys in one order, and comparing a key is cheaper than hashing it. `path_length`
    is the length of the path of an object or array.
    """

    node: Any
    path_length: Any
    is_array: Any
    first_key: Any
    object: Any
    keys: Any
    met: Any
    objects: Any
    follower: Any


class Out(NamedTuple):
    """Atoms by column; by document their start, and its id (length -1: none).

    Also by document: whether it was declined, and whether it has values at paths that are not wanted.
    """

    starts: Any
    id_start: Any
    id_length: Any
    declined: Any
    others: Any
    path: Any
    kind: Any
    payload: Any
    length: Any


@inlined
def _expected_child(paths: Paths, follower: int, parent: int, text: Any, start: int, end: int) -> Any:
    """Return the node that is likely to follow if its key is in the text, or NOWHERE."""
    stop = start + np.int64(paths.key_length[follower])
    likely = follower != ROOT and paths.parent[follower] == parent and stop < end and text[stop] == scan.QUOTE
    if likely and is_key(paths, follower, text, start, stop - start):
        return np.int64(follower)
    return np.int64(NOWHERE)


@inlined
def _contains(keys: Any, first: int, end: int, key_hash: Any) -> bool:
    """Return whether the hash is in keys[first:end]. No early exit, so that the loop is vectorised."""
    same = 0
    for i in range(first, end):
        same += keys[i] == key_hash
    return same > 0


@inlined
def _integer(digits: Any, count: int, minus: bool) -> Any:
    """Return whether the whole number fits into 64 bits, and the number. -2**63 is left to the specification."""
    value = np.int64(digits)
    return count <= scan.MOST_DIGITS and digits <= _INT64_MAX, (-value if minus else value)


@inlined
def _emit(out: Out, at: int, path: int, kind: int, payload: int, length: int) -> int:
    """Write an atom; return the number of the next one."""
    out.path[at], out.kind[at] = path, kind
    out.payload[at], out.length[at] = payload, length
    return at + 1


@kernel
def decode(documents: Documents, paths: Paths, work: Work, out: Out, first: int) -> int:
    """Decode the documents from `first` on; return the first one that is not done, because the columns are
    full.

    The states of a document are key, value and the token after a value; leaving the inner loop early declines
    it. `here` is the node of the enclosing object or array, `node` that of the next value, `last` that of the
    last key. `around` and `length` are the path lengths of the first two.
    """
    text, room, atoms, objects = documents.text, len(out.path), out.starts[first], work.objects[0]
    for i in range(first, len(documents.starts)):
        at, end, begin = documents.starts[i], documents.ends[i], atoms
        depth, top, base, ids, id_start, id_length = 0, 0, 0, 0, 0, -1
        last, others, inside = np.int64(ROOT), False, objects
        here, node, in_array, state = np.int64(NOWHERE), np.int64(ROOT), False, _VALUE
        around, length, path_text = 0, 0, 0
        at = skip_space(text, at, end)
        if byte_at(text, at, end) != scan.OPEN_OBJECT:
            state = _DECLINED
        while state < _DONE:
            if state == _KEY:
                if byte_at(text, at, end) != scan.QUOTE:
                    break
                node = _expected_child(paths, work.follower[last], here, text, at + 1, end)
                if node >= 0:
                    stop, last = at + 1 + paths.key_length[node], node
                else:
                    stop, key_hash = scan_key(text, at + 1, end)
                    if stop >= 0 and here >= 0:
                        node = child(paths, here, key_hash, text, at + 1, stop - at - 1)
                    if node >= 0:
                        work.follower[last] = node
                        last = node
                    elif stop < 0 or top == MOST_KEYS or _contains(work.keys, base, top, key_hash):
                        break
                    else:
                        work.keys[top] = key_hash
                        top += 1
                if node >= 0:
                    if work.met[node] == inside or node == paths.cloud_event:
                        break
                    work.met[node] = inside
                length = stop - at - 1
                if depth > 1:
                    length += around + 1
                    path_text += length
                    if path_text > MOST_PATH_TEXT:
                        break
                at = skip_space(text, stop + 1, end)
                if byte_at(text, at, end) != scan.COLON:
                    break
                at = skip_space(text, at + 1, end)
                state = _VALUE
            if state == _VALUE:
                c = byte_at(text, at, end)
                path = paths.path[node] if node >= 0 else -1
                is_id = node == paths.id_node
                if atoms == room and path >= 0:
                    work.objects[0] = objects
                    return i
                if c == scan.QUOTE:
                    stop, escaped = scan_string(text, at + 1, end)
                    if stop < 0 or (escaped and (is_id or (path >= 0 and paths.exact[path]))):
                        break
                    if path >= 0:
                        atoms = _emit(out, atoms, path, STRING, at + 1, stop - at - 1)
                    else:
                        others = True
                    if is_id:
                        ids += 1
                        id_start, id_length = at + 1, (stop - at - 1 if stop > at + 1 else -1)
                    at = stop + 1
                    state = _AFTER
                elif c == scan.MINUS or scan.ZERO <= c <= scan.NINE:
                    stop, digits, count, power, whole = scan_number(text, at, end)
                    if stop < 0 or count + abs(power) > MOST_MAGNITUDE:
                        break
                    others |= path < 0
                    if path >= 0 or is_id:
                        if whole:
                            good, payload = _integer(digits, count, c == scan.MINUS)
                        else:
                            good, payload = nearest_double(digits, power, c == scan.MINUS)
                        if not good or count > scan.MOST_DIGITS:
                            break
                        if path >= 0:
                            atoms = _emit(out, atoms, path, INTEGER if whole else DOUBLE, payload, 0)
                        if is_id:
                            if whole and c == scan.MINUS and digits == _ZERO:
                                break
                            ids += 1
                            id_start, id_length = at, (stop - at if whole else -1)
                    at = stop
                    state = _AFTER
                elif c == scan.OPEN_OBJECT or c == scan.OPEN_ARRAY:
                    if depth == MOST_DEPTH:
                        break
                    work.node[depth], work.is_array[depth], work.first_key[depth] = here, in_array, base
                    work.object[depth], work.path_length[depth] = inside, around
                    objects += 1
                    inside = objects
                    depth += 1
                    here, in_array, base, around = node, c == scan.OPEN_ARRAY, top, length
                    at = skip_space(text, at + 1, end)
                    if byte_at(text, at, end) == (scan.CLOSE_ARRAY if in_array else scan.CLOSE_OBJECT):
                        state = _AFTER
                    else:
                        state = _VALUE if in_array else _KEY
                else:
                    stop = scan_word(text, at, end)
                    if stop < 0:
                        break
                    if c != scan.NULL:
                        if path >= 0:
                            atoms = _emit(out, atoms, path, BOOLEAN, c == scan.TRUE, 0)
                        else:
                            others = True
                        if is_id:
                            ids, id_length = ids + 1, -1
                    at = stop
                    state = _AFTER
            if state == _AFTER:
                at = skip_space(text, at, end)
                c = byte_at(text, at, end)
                if depth == 0:
                    state = _DONE if at == end else _DECLINED
                elif c == scan.COMMA:
                    at = skip_space(text, at + 1, end)
                    node, length = here, around
                    state = _VALUE if in_array else _KEY
                elif c == (scan.CLOSE_ARRAY if in_array else scan.CLOSE_OBJECT):
                    at += 1
                    depth -= 1
                    top = base
                    here, in_array, base = work.node[depth], work.is_array[depth], work.first_key[depth]
                    inside, around = work.object[depth], work.path_length[depth]
                else:
                    break
        if state != _DONE:
            atoms = begin
        out.declined[i], out.others[i] = state != _DONE, others
        out.id_start[i], out.id_length[i] = id_start, (id_length if ids == 1 else -1)
        out.starts[i + 1] = atoms
    return len(documents.starts)
