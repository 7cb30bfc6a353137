"""Atoms: publications decomposed into values at paths, as columns.

An atom is a value at a path of one publication. A batch of publications is one `Atoms`: flat arrays,
publication after publication, without a Python object per atom. Predicates test atoms through *columns*: the
value itself, the instant it names, the text patterns it contains, the concepts it is a kind of. Publications
and subscriptions share this vocabulary.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.errors import InputError
from tidings.values import INT64_MAX, INT64_MIN, Scalar

MAX_DOUBLE = sys.float_info.max

Event = Mapping[str, Sequence[Scalar]]
"""One publication by path: the readable form, used by the specification of matching and by explanations."""


class Aspect(IntEnum):
    """The property of a value that a predicate tests. NUMBER is the number that a text names, as XPath reads it."""

    VALUE = 0
    INSTANT = 1
    PREFIX = 2
    SUFFIX = 3
    SUBSTRING = 4
    AT_MOST = 5
    BELOW = 6
    AT_LEAST = 7
    ABOVE = 8
    NUMBER = 9


class AtomShape(IntEnum):
    """Layout of the atoms of a publication: independent values, nodes of a tree, or edges of a graph.

    The numbers are stored in segments.
    """

    FLAT = 0
    TREE = 1
    EDGES = 2


@dataclass(frozen=True, slots=True, order=True)
class Column:
    """A path seen through an aspect; the order aspects also name the domain whose order applies.

    A path of documents is a linear path, which applies to every tag path that it matches. A path of graphs is
    a key of edges (see `graphs.keys`).
    """

    path: str
    aspect: Aspect = Aspect.VALUE
    domain: str = ""
    shape: AtomShape = AtomShape.FLAT


class AtomKind(IntEnum):
    """The type of an atom's payload."""

    INTEGER = 0
    DOUBLE = 1
    STRING = 2
    BOOLEAN = 3


class Edges(NamedTuple):
    """The edges of a batch of graphs, and the terms at their ends; those of graph i are `starts[i]:starts[i +
    1]`.

    Equal terms of a graph are one term. A term is a text of `length` bytes from `text` on (see
    `graphs.keys`), its string is `string_length` bytes from `string` on; `meaning` is its type, `number` and
    `rest` its number or instant. `class_start` leads to the taxonomy's statements about it: a relation, and
    to which term.
    """

    starts: npt.NDArray[np.int64]
    subject: npt.NDArray[np.int32]
    property: npt.NDArray[np.int32]
    object: npt.NDArray[np.int32]
    text: npt.NDArray[np.int64]
    length: npt.NDArray[np.int32]
    string: npt.NDArray[np.int64]
    string_length: npt.NDArray[np.int32]
    meaning: npt.NDArray[np.uint8]
    number: npt.NDArray[np.float64]
    rest: npt.NDArray[np.int64]
    class_start: npt.NDArray[np.int64]
    relation: npt.NDArray[np.uint8]
    related: npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Atoms:
    """The atoms of a batch of publications; those of publication i are `starts[i]:starts[i + 1]`.

    The payload is an integer, the bits of a double, 0 or 1, or the offset of a string of `length` bytes in
    `text`.

    For documents every node is an atom, in document order: an element, its attributes, its content. Its value
    is a string, its path a tag path, and `parent` is the position of its parent element in the publication
    (-1 for the document element). Events have no `parent`.

    For graphs every edge is several atoms, one for each of its keys; `edges` has the edges themselves.
    """

    paths: tuple[str, ...]
    starts: npt.NDArray[np.int64]
    path: npt.NDArray[np.int32]
    kind: npt.NDArray[np.uint8]
    payload: npt.NDArray[np.int64]
    length: npt.NDArray[np.int32]
    text: npt.NDArray[np.uint8]
    parent: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    edges: Edges | None = None

    @property
    def count(self) -> int:
        return len(self.starts) - 1

    @property
    def shape(self) -> AtomShape:
        if self.edges is not None:
            return AtomShape.EDGES
        return AtomShape.TREE if len(self.parent) else AtomShape.FLAT

    def part(self, first: int, last: int) -> Atoms:
        """Return the publications from `first` up to but excluding `last`, without copying their atoms."""
        starts = self.starts[first : last + 1]
        held = slice(int(starts[0]), int(starts[-1]))
        return Atoms(
            self.paths,
            starts - starts[0],
            self.path[held],
            self.kind[held],
            self.payload[held],
            self.length[held],
            self.text,
            self.parent[held],
            self.edges._replace(starts=self.edges.starts[first : last + 1]) if self.edges else None,
        )

    @classmethod
    def of(cls, events: Iterable[Event], paths: Sequence[str] | None = None) -> Atoms:
        """Return the atoms of events in their readable form; with `paths`, only those at these paths."""
        ids = {path: i for i, path in enumerate(paths or ())}
        starts, path_ids, kinds, payloads, lengths = [0], [], [], [], []
        text = bytearray()
        for event in events:
            for path, values in event.items():
                if paths is not None and path not in ids:
                    continue
                path_id = ids.setdefault(path, len(ids))
                if isinstance(values, str) or not isinstance(values, Sequence):
                    raise InputError(
                        "the values of an event must be lists", where=path, received=repr(values)[:80]
                    )
                for value in values:
                    kind, payload, length = _atom(path, value, text)
                    path_ids.append(path_id)
                    kinds.append(kind)
                    payloads.append(payload)
                    lengths.append(length)
            starts.append(len(path_ids))
        return cls(
            tuple(ids),
            np.array(starts, np.int64),
            np.array(path_ids, np.int32),
            np.array(kinds, np.uint8),
            np.array(payloads, np.int64),
            np.array(lengths, np.int32),
            np.frombuffer(bytes(text), np.uint8),
        )


def _atom(path: str, value: Scalar, text: bytearray) -> tuple[int, int, int]:
    """Return kind, payload and length of a value; reject values that the language does not have."""
    if isinstance(value, bool | np.bool_):
        return AtomKind.BOOLEAN, int(value), 0
    if isinstance(value, int) and INT64_MIN <= value <= INT64_MAX:
        return AtomKind.INTEGER, value, 0
    if isinstance(value, int | float) and abs(value) <= MAX_DOUBLE:
        return AtomKind.DOUBLE, int(np.float64(value).view(np.int64)), 0
    try:
        data = value.encode()  # type: ignore[union-attr]
    except (AttributeError, UnicodeEncodeError):
        accepted = "finite numbers, valid Unicode strings, booleans"
        raise InputError(
            "invalid value in an event", where=path, received=repr(value)[:80], accepted=accepted
        ) from None
    text.extend(data)
    return AtomKind.STRING, len(text) - len(data), len(data)
