"""Numbered table of the tag paths seen so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tidings.documents.model import NodeKind, show_node, steps_of
from tidings.errors import DecodeProblem
from tidings.matching.kernels.decode import names as tables
from tidings.matching.kernels.decode.names import ENTRIES, MOST_PATH_BYTES, PATH_BYTES, TOO_MUCH, Names, Paths

MOST_TAG_PATHS = 100_000
"""A table with more of them is emptied before the next batch."""

XML = "http://www.w3.org/XML/1998/namespace"
"""The namespace of the prefix xml, which is declared implicitly."""


class TagPaths:
    """A growing table of tag paths for `xml_batch_decoder.decode_documents`, used for many batches.

    A path's number in the atoms is its place in `names`. Numbers stay valid until the table is emptied; `names` is the
    same tuple as before if no path was added.
    """

    def __init__(self, most: int = MOST_TAG_PATHS) -> None:
        self._most = most
        self._empty()

    def _empty(self) -> None:
        self.spaces: Names = _new_spaces(64, 4_096)
        self.paths: Paths = _new_paths(256, 4_096)
        self._names: list[str] = []
        self._shown: tuple[str, ...] = ()
        for uri in ("", XML):
            tables.enter_space(self.spaces, _bytes(uri))

    def begin(self) -> None:
        """Start a batch; a table that has grown too large is emptied."""
        entries = max(self.paths.used[ENTRIES], self.spaces.used[ENTRIES])
        if entries > self._most or self.paths.used[PATH_BYTES] > MOST_PATH_BYTES:
            self._empty()

    @property
    def names(self) -> tuple[str, ...]:
        for number in range(len(self._names), int(self.paths.used[ENTRIES])):
            self._names.append(self._name(number))
        if len(self._shown) < len(self._names):
            self._shown = tuple(self._names)
        return self._shown

    def _name(self, number: int) -> str:
        above, space, kind = tables.split_place(int(self.paths.parent[number]))
        uri, local = _name_text(self.spaces, space), _name_text(self.paths, number)
        step = show_node(NodeKind(kind), f"{{{uri}}}{local}" if uri else local)
        return f"{self._names[above] if above >= 0 else ''}/{step}"

    def number(self, path: str) -> int:
        """Return the number of a tag path, adding it if necessary."""
        number = -1
        for step in steps_of(path):
            uri, _, local = step.name.rpartition("}")
            number = self._enter_name(number, uri[1:], int(step.kind), local)
        return number

    def _enter_name(self, above: int, uri: str, kind: int, local: str) -> int:
        while True:
            number = tables.enter_space(self.spaces, _bytes(uri))
            if number >= 0:
                number = tables.enter_path(self.paths, self.spaces, above, number, kind, _bytes(local))
            if number >= 0:
                return int(number)
            if number == TOO_MUCH:
                raise too_many_tag_paths()
            self.grow()

    def grow(self) -> None:
        """Double the capacity."""
        self.spaces = _grow_table(self.spaces, _new_spaces)
        self.paths = _grow_table(self.paths, _new_paths)


def too_many_tag_paths() -> DecodeProblem:
    """Make the error for a document with new tag paths when a batch already has too many."""
    message = "the documents of this batch have too many different tag paths"
    accepted = f"tag paths of {MOST_PATH_BYTES:,} bytes together"
    return DecodeProblem(message, accepted=accepted, hint="use few element names, and no data in names")


def _bytes(text: str) -> Any:
    return np.frombuffer(text.encode(), np.uint8)


def _name_text(table: Any, number: int) -> str:
    """Decode a name; one that is not UTF-8 is from a document that the parser refuses, and is in no atom."""
    start = int(table.key_start[number])
    name: bytes = table.keys[start : start + table.key_length[number]].tobytes()
    return name.decode(errors="backslashreplace")


def _new_spaces(entries: int, size: int) -> Names:
    return Names(
        parent=np.zeros(entries, np.int64),
        key_start=np.zeros(entries, np.int64),
        key_length=np.zeros(entries, np.int32),
        key_hash=np.zeros(entries, np.uint64),
        key_word=np.zeros(entries, np.uint64),
        keys=np.zeros(size, np.uint8),
        slots=np.full(1 << (2 * entries - 1).bit_length(), -1, np.int32),
        used=np.zeros(4, np.int64),
    )


def _new_paths(entries: int, size: int) -> Paths:
    name_length, path_length, text = np.zeros((3, entries), np.int32)
    return Paths(*_new_spaces(entries, size), name_length, path_length, text, np.zeros(entries, np.int64))


def _grow_table(table: Any, new: Callable[[int, int], Any]) -> Any:
    """Copy the names into arrays of twice the size."""
    larger = new(2 * len(table.parent), 2 * len(table.keys))
    for name, array in table._asdict().items():
        if name != "slots":
            getattr(larger, name)[: len(array)] = array
    tables.refill_slots(larger)
    return larger
