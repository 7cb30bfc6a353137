"""Graphs as atoms: each edge under the keys that somebody asks about, and the edges themselves for the join."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.atoms import MAX_DOUBLE, AtomKind, Atoms, Edges
from tidings.graphs.keys import ANY, Key, Related, TermMeaning, path_of, term_meaning, term_text
from tidings.graphs.model import TYPE, Edge, Graph, Term, TermKind
from tidings.graphs.taxonomy import Taxonomy
from tidings.graphs.values import meaning
from tidings.values import INT64_MAX, INT64_MIN, split_number

Integers = npt.NDArray[Any]

PLACES = 3
NOBODY = -1
"""In place of a path: no subscription looks there."""

_KEYS = tuple(Key)
_PLACE = {key: place for place, key in enumerate(_KEYS)}
_HELD = {
    (Key.SUBJECT, Related.AT): (Key.SUBJECT_AT, Key.SUBJECT_BELOW, Key.SUBJECT_ABOVE),
    (Key.SUBJECT, Related.BELOW): (Key.SUBJECT_BELOW,),
    (Key.SUBJECT, Related.ABOVE): (Key.SUBJECT_ABOVE,),
    (Key.OBJECT, Related.AT): (Key.OBJECT_AT, Key.OBJECT_BELOW, Key.OBJECT_ABOVE),
    (Key.OBJECT, Related.BELOW): (Key.OBJECT_BELOW,),
    (Key.OBJECT, Related.ABOVE): (Key.OBJECT_ABOVE,),
}
"""Under which keys a class is found that an end stands to in some way."""


class GraphReader:
    """Turns graphs into atoms. `wanted` are the paths that subscriptions look at; there are atoms of no others."""

    def __init__(self, wanted: Iterable[str], taxonomy: Taxonomy) -> None:
        self._taxonomy = taxonomy
        self.paths = tuple(sorted(wanted))
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
        """Edges, and those that their properties imply, each once."""
        if not self._taxonomy.properties:
            return edges
        above = self._taxonomy.super_properties
        return tuple(
            dict.fromkeys(
                Edge(subject, each, value) for subject, property, value in edges for each in above(property)
            )
        )

    def related(self, term: Term, types: Sequence[Term]) -> list[tuple[Related, Term]]:
        """How a term stands to classes: at which it stands, and which are strictly above and below those."""
        if not types and not self._taxonomy.statements:
            return []
        places = self._taxonomy.stands_at(term, types)
        found = self._related.get(places)
        if found is None:
            found = self._related[places] = list(_relations(places, self._taxonomy))
        return found

    def paths_of(self, property: str) -> list[int]:
        """By key, the number of the path that edges with a property stand under."""
        found = self._of_properties.get(property)
        if found is None:
            found = [self._numbers.get(path_of(key, property), NOBODY) for key in _KEYS]
            self._of_properties[property] = found
        return found


def _relations(places: frozenset[Term], taxonomy: Taxonomy) -> Iterator[tuple[Related, Term]]:
    yield from ((Related.AT, each) for each in sorted(places))
    above = {each for place in places for each in taxonomy.ancestors(place) if each != place}
    yield from ((Related.BELOW, each) for each in sorted(above))
    below = {each for place in places for each in taxonomy.descendants(place) if each != place}
    yield from ((Related.ABOVE, each) for each in sorted(below))


class _Found:
    """What terms are found by at one end of edges, term after term: a key, and an atom without its path."""

    def __init__(self) -> None:
        self.starts = [0]
        self.entries: list[tuple[int, int, int, int]] = []

    def of_edges(self, ends: Integers) -> tuple[Integers, Integers]:
        """The entries of all terms at the ends of edges: the number of each entry, and of its edge."""
        starts = np.array(self.starts, np.int64)
        counts = starts[ends + 1] - starts[ends]
        edge = np.repeat(np.arange(len(ends)), counts)
        before = np.cumsum(counts) - counts
        return np.arange(len(edge)) + (starts[ends] - before)[edge], edge


class _Batch:
    """Terms and edges while they are collected."""

    def __init__(self, reader: GraphReader) -> None:
        self._reader, self._text = reader, bytearray()
        self._edge_starts = [0]
        self._edges: list[int] = []
        self._known: dict[Term, int] = {}
        self._terms: list[_Written] = []
        self._classes: list[list[tuple[Related, int]]] = []
        self._properties: dict[int, str] = {}

    def add(self, graph: Graph) -> None:
        """A graph. What a node's types are, its own publication may say: then it is a term of its own there."""
        edges = self._reader.implied(graph.edges)
        types: dict[Term, list[Term]] = {}
        for subject, property, value in edges:
            if property.text == TYPE:
                types.setdefault(subject, []).append(value)
        own = {term: self._enter(term) for term in types}
        for term, classes in types.items():
            self._relate(own[term], self._reader.related(term, classes), own)
        known, numbers = self._known, self._edges
        for edge in edges:
            for term in edge:
                number = own.get(term)
                if number is None:
                    number = known.get(term)
                numbers.append(self._new(term, own) if number is None else number)
            self._properties.setdefault(numbers[-2], edge[1].text)
        self._edge_starts.append(len(numbers) // PLACES)

    def _new(self, term: Term, own: dict[Term, int]) -> int:
        """A term whose types the publication does not say. Blank nodes are its own all the same."""
        kept = own if term.kind is TermKind.BLANK else self._known
        number = kept[term] = self._enter(term)
        self._relate(number, self._reader.related(term, ()), own)
        return number

    def _enter(self, term: Term) -> int:
        self._terms.append(_write(term, self._text))
        self._classes.append([])
        return len(self._terms) - 1

    def _relate(self, number: int, related: Sequence[tuple[Related, Term]], own: dict[Term, int]) -> None:
        """What a term stands at, above and below; those are terms, too."""
        for relation, each in related:
            other = own.get(each)
            if other is None:
                other = self._known.get(each)
            self._classes[number].append((relation, self._new(each, own) if other is None else other))

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
        """The atoms of all edges, edge by edge: paths, what they are found by, and edges."""
        own, anywhere = self._paths()
        found: list[tuple[Integers, Integers, Integers]] = []
        for end, kept in zip((0, 2), self._found(), strict=True):
            which, edge = kept.of_edges(edges[:, end])
            entries = np.array(kept.entries, np.int64).reshape(-1, 4)[which]
            for paths in (own[edges[edge, 1], entries[:, 0]], anywhere[entries[:, 0]]):
                wanted = np.flatnonzero(paths != NOBODY)
                found.append((paths[wanted], entries[wanted], edge[wanted]))
        path, entries, edge = (np.concatenate(column) for column in zip(*found, strict=True))
        order = np.argsort(edge, kind="stable")
        return path[order], entries[order], edge[order]

    def _paths(self) -> tuple[Integers, Integers]:
        """By key, the paths of edges with a property, by its number among the terms, and of all edges."""
        own = np.full((len(self._terms), len(_KEYS)), NOBODY)
        for number, property in self._properties.items():
            own[number] = self._reader.paths_of(property)
        return own, np.array(self._reader.paths_of(ANY))

    def _found(self) -> tuple[_Found, _Found]:
        """What terms are found by as subjects and as objects, for keys that somebody wants."""
        wanted, subjects, objects = self._reader.keys, _Found(), _Found()
        for term, classes in zip(self._terms, self._classes, strict=True):
            for key, found in ((Key.SUBJECT, subjects), (Key.OBJECT, objects)):
                if key in wanted:
                    found.entries.append((_PLACE[key], AtomKind.STRING, term.text, term.length))
                for relation, other in classes:
                    text, length = self._terms[other][:2]
                    for held in _HELD[key, relation]:
                        if held in wanted:
                            found.entries.append((_PLACE[held], AtomKind.STRING, text, length))
            if term.means > TermMeaning.NODE:
                objects.entries.extend(_value(term))
            subjects.starts.append(len(subjects.entries))
            objects.starts.append(len(objects.entries))
        return subjects, objects

    def _finished(self, starts: Integers, edges: Integers) -> Edges:
        columns = list(zip(*self._terms, strict=True)) or [()] * len(_Written._fields)
        text, length, string, string_length, meanings, number, rest = columns
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
            np.array(rest, np.int64),
            counts.astype(np.int64),
            np.array([relation for relation, _ in related], np.uint8),
            np.array([other for _, other in related], np.int32),
        )


def _value(term: _Written) -> Iterator[tuple[int, int, int, int]]:
    """What an object is found by if it is a value."""
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
    """A term as `atoms.Edges` has it."""

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
    found = meaning(term)
    kind, number, rest = term_meaning(found), 0.0, 0
    if found is not None and kind in (TermMeaning.NUMBER, TermMeaning.BOOLEAN):
        number, rest = split_number(found.value)
    elif found is not None and kind is TermMeaning.MOMENT:
        rest = found.value.ticks
    is_text = kind in (TermMeaning.STRING, TermMeaning.LANGUAGE)
    inside = (start + 1, len(term.text.encode())) if is_text else (start, 0)
    return _Written(start, len(data), *inside, kind, number, rest)


def _payload(term: _Written) -> tuple[AtomKind, int]:
    """A number as an atom: an integer where 64 bits hold it. Infinity has no code: it is the largest double."""
    if term.rest or (abs(term.number) < 2.0**53 and term.number.is_integer()):
        whole = int(term.number) + term.rest
        if INT64_MIN <= whole <= INT64_MAX:
            return AtomKind.INTEGER, whole
    held = math.copysign(min(abs(term.number), MAX_DOUBLE), term.number)
    return AtomKind.DOUBLE, int(np.float64(held).view(np.int64))
