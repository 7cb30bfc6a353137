"""Graphs as atoms: each edge under the keys that subscriptions use, and the edges themselves for the join."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.atoms import MAX_DOUBLE, AtomKind, Atoms, Edges
from tidings.graphs.keys import ANY, Key, Related, TermMeaning, path_of, term_meaning, term_text
from tidings.graphs.model import TYPE, Edge, Graph, Term, TermKind, meaning
from tidings.graphs.taxonomy import Taxonomy
from tidings.values import INT64_MAX, INT64_MIN, split_number

Integers = npt.NDArray[Any]

PLACES = 3
UNUSED = -1
"""In place of a path that no subscription uses."""

_KEYS = tuple(Key)
_PLACE = {key: place for place, key in enumerate(_KEYS)}
_KEYS_OF = {
    (Key.SUBJECT, Related.AT): (Key.SUBJECT_AT, Key.SUBJECT_BELOW, Key.SUBJECT_ABOVE),
    (Key.SUBJECT, Related.BELOW): (Key.SUBJECT_BELOW,),
    (Key.SUBJECT, Related.ABOVE): (Key.SUBJECT_ABOVE,),
    (Key.OBJECT, Related.AT): (Key.OBJECT_AT, Key.OBJECT_BELOW, Key.OBJECT_ABOVE),
    (Key.OBJECT, Related.BELOW): (Key.OBJECT_BELOW,),
    (Key.OBJECT, Related.ABOVE): (Key.OBJECT_ABOVE,),
}
"""The keys of a class, by the end of an edge and the relation of its term to the class."""


class AtomReader:
    """Converts graphs to atoms. `wanted` are the paths that subscriptions use; others have no atoms."""

    def __init__(self, paths: Iterable[str], taxonomy: Taxonomy) -> None:
        self._taxonomy = taxonomy
        self.paths = tuple(sorted(paths))
        self._numbers = {path: number for number, path in enumerate(self.paths)}
        self.keys = frozenset(Key(path.partition(" ")[0]) for path in self.paths)
        self._of_properties: dict[str, list[int]] = {}
        self._related: dict[frozenset[Term], list[tuple[Related, Term]]] = {}

    def atoms(self, graphs: Sequence[Graph]) -> Atoms:
        batch = _Batch(self)
        for graph in graphs:
            batch.add(graph)
        return batch.finish()

    def implied(self, edges: Sequence[Edge]) -> Sequence[Edge]:
        """Add the edges that superproperties imply; each edge is returned once."""
        if not self._taxonomy.properties:
            return edges
        above = self._taxonomy.super_properties
        implied = (Edge(edge.subject, name, edge.object) for edge in edges for name in above(edge.property))
        return tuple(dict.fromkeys(implied))

    def related(self, term: Term, types: Sequence[Term]) -> list[tuple[Related, Term]]:
        """Return the classes of a term, and the classes strictly above and below them."""
        if not types and not self._taxonomy.statements:
            return []
        classes = self._taxonomy.classes_of(term, types)
        related = self._related.get(classes)
        if related is None:
            related = self._related[classes] = list(_relations(classes, self._taxonomy))
        return related

    def paths_of(self, property: str) -> list[int]:
        """Return, by key, the number of the path for edges with a property."""
        paths = self._of_properties.get(property)
        if paths is None:
            paths = [self._numbers.get(path_of(key, property), UNUSED) for key in _KEYS]
            self._of_properties[property] = paths
        return paths


def _relations(classes: frozenset[Term], taxonomy: Taxonomy) -> Iterator[tuple[Related, Term]]:
    yield from ((Related.AT, each) for each in sorted(classes))
    above = {each for term in classes for each in taxonomy.ancestors(term) if each != term}
    yield from ((Related.BELOW, each) for each in sorted(above))
    below = {each for term in classes for each in taxonomy.descendants(term) if each != term}
    yield from ((Related.ABOVE, each) for each in sorted(below))


class _TermEntries:
    """The index entries of each term at one end of edges: a key, and an atom without its path."""

    def __init__(self) -> None:
        self.starts = [0]
        self.entries: list[tuple[int, int, int, int]] = []

    def of_edges(self, ends: Integers) -> tuple[Integers, Integers]:
        """Return the entries of the terms at the ends of edges: the number of each entry and of its edge."""
        starts = np.array(self.starts, np.int64)
        counts = starts[ends + 1] - starts[ends]
        edge = np.repeat(np.arange(len(ends)), counts)
        before = np.cumsum(counts) - counts
        return np.arange(len(edge)) + (starts[ends] - before)[edge], edge


class _Batch:
    """Terms and edges under construction."""

    def __init__(self, reader: AtomReader) -> None:
        self._reader, self._text = reader, bytearray()
        self._edge_starts = [0]
        self._edges: list[int] = []
        self._term_numbers: dict[Term, int] = {}
        self._terms: list[_Written] = []
        self._classes: list[list[tuple[Related, int]]] = []
        self._properties: dict[int, str] = {}

    def add(self, graph: Graph) -> None:
        """Add a graph. A node whose types its publication states is a separate term in that publication."""
        edges = self._reader.implied(graph.edges)
        types: dict[Term, list[Term]] = {}
        for subject, property, value in edges:
            if property.text == TYPE:
                types.setdefault(subject, []).append(value)
        own = {term: self._enter(term) for term in types}
        for term, classes in types.items():
            self._relate(own[term], self._reader.related(term, classes), own)
        known_terms, numbers = self._term_numbers, self._edges
        for edge in edges:
            for term in edge:
                number = own.get(term)
                if number is None:
                    number = known_terms.get(term)
                numbers.append(self._new(term, own) if number is None else number)
            self._properties.setdefault(numbers[-2], edge[1].text)
        self._edge_starts.append(len(numbers) // PLACES)

    def _new(self, term: Term, own: dict[Term, int]) -> int:
        """Add a term without types in its publication. Blank nodes are separate in any case."""
        numbers = own if term.kind is TermKind.BLANK else self._term_numbers
        number = numbers[term] = self._enter(term)
        self._relate(number, self._reader.related(term, ()), own)
        return number

    def _enter(self, term: Term) -> int:
        self._terms.append(_write(term, self._text))
        self._classes.append([])
        return len(self._terms) - 1

    def _relate(self, number: int, related: Sequence[tuple[Related, Term]], own: dict[Term, int]) -> None:
        """Record the classes at, above and below a term; they are terms, too."""
        for relation, term in related:
            other = own.get(term)
            if other is None:
                other = self._term_numbers.get(term)
            self._classes[number].append((relation, self._new(term, own) if other is None else other))

    def finish(self) -> Atoms:
        edges = np.array(self._edges, np.int32).reshape(-1, PLACES)
        starts = np.array(self._edge_starts, np.int64)
        path, entries, edge = self._atoms(edges)
        counts = np.bincount(edge, minlength=len(edges))
        before = np.concatenate(([0], np.cumsum(counts)))
        return Atoms(
            self._reader.paths,
            before[starts],
            path.astype(np.int32),
            entries[:, 1].astype(np.uint8),
            np.ascontiguousarray(entries[:, 2]),
            entries[:, 3].astype(np.int32),
            np.frombuffer(bytes(self._text), np.uint8),
            edges=self._finished(starts, edges),
        )

    def _atoms(self, edges: Integers) -> tuple[Integers, Integers, Integers]:
        """Return the atoms of all edges, edge by edge: paths, index entries, and edges."""
        own, anywhere = self._paths()
        parts: list[tuple[Integers, Integers, Integers]] = []
        for end, index in zip((0, 2), self._term_entries(), strict=True):
            which, edge = index.of_edges(edges[:, end])
            entries = np.array(index.entries, np.int64).reshape(-1, 4)[which]
            for paths in (own[edges[edge, 1], entries[:, 0]], anywhere[entries[:, 0]]):
                used = np.flatnonzero(paths != UNUSED)
                parts.append((paths[used], entries[used], edge[used]))
        path, entries, edge = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.argsort(edge, kind="stable")
        return path[order], entries[order], edge[order]

    def _paths(self) -> tuple[Integers, Integers]:
        """Return, by key, the paths for each property (by its term number) and for any property."""
        own = np.full((len(self._terms), len(_KEYS)), UNUSED)
        for number, property in self._properties.items():
            own[number] = self._reader.paths_of(property)
        return own, np.array(self._reader.paths_of(ANY))

    def _term_entries(self) -> tuple[_TermEntries, _TermEntries]:
        """Return the index entries of terms as subjects and as objects, for keys in use."""
        keys, subjects, objects = self._reader.keys, _TermEntries(), _TermEntries()
        for term, classes in zip(self._terms, self._classes, strict=True):
            for end, index in ((Key.SUBJECT, subjects), (Key.OBJECT, objects)):
                if end in keys:
                    index.entries.append((_PLACE[end], AtomKind.STRING, term.text, term.length))
                for relation, other in classes:
                    text, length = self._terms[other][:2]
                    for key in _KEYS_OF[end, relation]:
                        if key in keys:
                            index.entries.append((_PLACE[key], AtomKind.STRING, text, length))
            if term.means > TermMeaning.NODE:
                objects.entries.extend(_value(term))
            subjects.starts.append(len(subjects.entries))
            objects.starts.append(len(objects.entries))
        return subjects, objects

    def _finished(self, starts: Integers, edges: Integers) -> Edges:
        columns = list(zip(*self._terms, strict=True)) or [()] * len(_Written._fields)
        text, length, string, string_length, meanings, number, remainder = columns
        related = [pair for pairs in self._classes for pair in pairs]
        counts = np.cumsum([0, *map(len, self._classes)])
        return Edges(
            starts,
            np.ascontiguousarray(edges[:, 0]),
            np.ascontiguousarray(edges[:, 1]),
            np.ascontiguousarray(edges[:, 2]),
            np.array(text, np.int64),
            np.array(length, np.int32),
            np.array(string, np.int64),
            np.array(string_length, np.int32),
            np.array(meanings, np.uint8),
            np.array(number, np.float64),
            np.array(remainder, np.int64),
            counts.astype(np.int64),
            np.array([relation for relation, _ in related], np.uint8),
            np.array([other for _, other in related], np.int32),
        )


def _value(term: _Written) -> Iterator[tuple[int, int, int, int]]:
    """Yield the index entries of an object by its value."""
    if term.means in (TermMeaning.STRING, TermMeaning.LANGUAGE):
        yield _PLACE[Key.TEXT], AtomKind.STRING, term.string, term.string_length
    if term.means is TermMeaning.STRING:
        yield _PLACE[Key.VALUE], AtomKind.STRING, term.string, term.string_length
    elif term.means is TermMeaning.MOMENT:
        yield _PLACE[Key.MOMENT], AtomKind.INTEGER, term.rest, 0
    elif term.means is TermMeaning.BOOLEAN:
        yield _PLACE[Key.VALUE], AtomKind.BOOLEAN, int(term.number), 0
    elif term.means is TermMeaning.NUMBER and not math.isnan(term.number):
        yield _PLACE[Key.VALUE], *_payload(term), 0


class _Written(NamedTuple):
    """A term in the columns of `atoms.Edges`."""

    text: int
    length: int
    string: int
    string_length: int
    means: TermMeaning
    number: float
    rest: int


def _write(term: Term, text: bytearray) -> _Written:
    data, start = term_text(term).encode(), len(text)
    text.extend(data)
    if term.kind is not TermKind.LITERAL:
        return _Written(start, len(data), start, 0, TermMeaning.NODE, 0.0, 0)
    value = meaning(term)
    kind, number, remainder = term_meaning(value), 0.0, 0
    if value is not None and kind in (TermMeaning.NUMBER, TermMeaning.BOOLEAN):
        number, remainder = split_number(value.value)
    elif value is not None and kind is TermMeaning.MOMENT:
        remainder = value.value.ticks
    is_text = kind in (TermMeaning.STRING, TermMeaning.LANGUAGE)
    inside = (start + 1, len(term.text.encode())) if is_text else (start, 0)
    return _Written(start, len(data), *inside, kind, number, remainder)


def _payload(term: _Written) -> tuple[AtomKind, int]:
    """Encode a number: as an integer if 64 bits hold it, infinity as the largest double."""
    if term.rest or (abs(term.number) < 2.0**53 and term.number.is_integer()):
        whole = int(term.number) + term.rest
        if INT64_MIN <= whole <= INT64_MAX:
            return AtomKind.INTEGER, whole
    finite = math.copysign(min(abs(term.number), MAX_DOUBLE), term.number)
    return AtomKind.DOUBLE, int(np.float64(finite).view(np.int64))
