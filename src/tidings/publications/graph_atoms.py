"""Graphs as atoms: each edge under the keys that somebody asks about, and the edges themselves for the join."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tidings.atoms import MAX_DOUBLE, AtomKind, Atoms, Edges
from tidings.graph_keys import ANY, Key, Means, Related, means, path_of, written
from tidings.graph_values import meaning
from tidings.graphs import TYPE, Edge, Graph, Term, TermKind
from tidings.taxonomies import Taxonomy
from tidings.values import INT64_MAX, INT64_MIN, split_number

_AT = {Key.SUBJECT: Key.SUBJECT_AT, Key.OBJECT: Key.OBJECT_AT}
_BELOW = {Key.SUBJECT: Key.SUBJECT_BELOW, Key.OBJECT: Key.OBJECT_BELOW}
_ABOVE = {Key.SUBJECT: Key.SUBJECT_ABOVE, Key.OBJECT: Key.OBJECT_ABOVE}


class GraphReader:
    """Turns graphs into atoms. `wanted` are the paths that subscriptions look at; there are atoms of no others."""

    def __init__(self, wanted: Iterable[str], taxonomy: Taxonomy) -> None:
        self._taxonomy = taxonomy
        self._paths = {path: number for number, path in enumerate(sorted(wanted))}
        self._keys: dict[str, _Keys] = {}
        self._related: dict[frozenset[Term], list[tuple[Related, Term]]] = {}

    def atoms(self, graphs: Sequence[Graph]) -> Atoms:
        batch = _Batch(self)
        for graph in graphs:
            batch.add(graph)
        return batch.finish(tuple(self._paths))

    def implied(self, edge: Edge) -> list[Edge]:
        """An edge, and those that its property implies."""
        return [edge._replace(property=above) for above in self._taxonomy.super_properties(edge.property)]

    def keys(self, property: str) -> _Keys:
        """The numbers of the paths that edges with a property stand under, by key."""
        found = self._keys.get(property)
        if found is None:
            numbers = {
                key: [
                    self._paths[path]
                    for path in (path_of(key, property), path_of(key, ANY))
                    if path in self._paths
                ]
                for key in Key
            }
            found = self._keys[property] = _Keys(numbers, any(numbers.values()))
        return found

    def related(self, term: Term, types: Iterable[Term]) -> list[tuple[Related, Term]]:
        """How a term stands to classes: at which it stands, and which are strictly above and below those."""
        places = self._taxonomy.stands_at(term, types)
        found = self._related.get(places)
        if found is None:
            found = self._related[places] = list(_relations(places, self._taxonomy))
        return found


def _relations(places: frozenset[Term], taxonomy: Taxonomy) -> Iterator[tuple[Related, Term]]:
    yield from ((Related.AT, each) for each in sorted(places))
    above = {each for place in places for each in taxonomy.ancestors(place) if each != place}
    yield from ((Related.BELOW, each) for each in sorted(above))
    below = {each for place in places for each in taxonomy.descendants(place) if each != place}
    yield from ((Related.ABOVE, each) for each in sorted(below))


class _Keys(NamedTuple):
    """The numbers of paths by key, and whether there are any."""

    numbers: dict[Key, list[int]]
    any: bool


class _Batch:
    """Atoms and edges while they are collected."""

    def __init__(self, reader: GraphReader) -> None:
        self._reader, self._text = reader, bytearray()
        self._starts, self._edge_starts = [0], [0]
        self._atoms: list[tuple[int, int, int, int]] = []
        self._edges: list[tuple[int, int, int]] = []
        self._known: dict[Term, int] = {}
        self._own: dict[Term, int] = {}
        self._terms: list[_Written] = []
        self._classes: list[list[tuple[Related, int]]] = []

    def add(self, graph: Graph) -> None:
        """A graph. What a node's types are, its own publication may say: then it is a term of its own there."""
        edges = tuple(dict.fromkeys(edge for each in graph.edges for edge in self._reader.implied(each)))
        types: dict[Term, list[Term]] = {}
        for edge in edges:
            if edge.property.text == TYPE:
                types.setdefault(edge.subject, []).append(edge.object)
        self._own = {}
        for edge in edges:
            numbers = [self._number(term, types.get(term, ())) for term in edge]
            self._edges.append((numbers[0], numbers[1], numbers[2]))
            self._keep(edge, numbers)
        self._starts.append(len(self._atoms))
        self._edge_starts.append(len(self._edges))

    def _number(self, term: Term, types: Sequence[Term]) -> int:
        kept = self._own if types or term.kind is TermKind.BLANK else self._known
        number = self._own.get(term)
        number = kept.get(term) if number is None else number
        if number is None:
            number = kept[term] = len(self._terms)
            self._terms.append(_write(term, self._text))
            self._classes.append([])
            related = self._reader.related(term, types)
            self._classes[number] = [(relation, self._number(each, ())) for relation, each in related]
        return number

    def _keep(self, edge: Edge, numbers: Sequence[int]) -> None:
        """The atoms of an edge."""
        keys = self._reader.keys(edge.property.text)
        if not keys.any:
            return
        for key, number in ((Key.SUBJECT, numbers[0]), (Key.OBJECT, numbers[2])):
            term = self._terms[number]
            self._put(keys.numbers[key], AtomKind.STRING, term.text, term.length)
            for relation, other in self._classes[number]:
                for held in _held(key, relation):
                    self._put(keys.numbers[held], AtomKind.STRING, *self._terms[other][:2])
        self._put_value(keys, self._terms[numbers[2]])

    def _put_value(self, keys: _Keys, term: _Written) -> None:
        if term.means in (Means.STRING, Means.LANGUAGE):
            self._put(keys.numbers[Key.TEXT], AtomKind.STRING, term.string, term.string_length)
        if term.means is Means.STRING:
            self._put(keys.numbers[Key.VALUE], AtomKind.STRING, term.string, term.string_length)
        elif term.means is Means.MOMENT:
            self._put(keys.numbers[Key.MOMENT], AtomKind.INTEGER, term.rest, 0)
        elif term.means is Means.BOOLEAN:
            self._put(keys.numbers[Key.VALUE], AtomKind.BOOLEAN, int(term.number), 0)
        elif term.means is Means.NUMBER and not math.isnan(term.number):
            kind, payload = _payload(term)
            self._put(keys.numbers[Key.VALUE], kind, payload, 0)

    def _put(self, paths: Iterable[int], kind: AtomKind, payload: int, length: int) -> None:
        for path in paths:
            self._atoms.append((path, kind, payload, length))

    def finish(self, paths: tuple[str, ...]) -> Atoms:
        atoms = np.array(self._atoms, np.int64).reshape(-1, 4)
        return Atoms(
            paths,
            np.array(self._starts, np.int64),
            atoms[:, 0].astype(np.int32),
            atoms[:, 1].astype(np.uint8),
            np.ascontiguousarray(atoms[:, 2]),
            atoms[:, 3].astype(np.int32),
            np.frombuffer(bytes(self._text), np.uint8),
            edges=self._finished(),
        )

    def _finished(self) -> Edges:
        edges = np.array(self._edges, np.int32).reshape(-1, 3)
        columns = list(zip(*self._terms, strict=True)) or [()] * len(_Written._fields)
        text, length, string, string_length, meanings, number, rest = columns
        related = [pair for pairs in self._classes for pair in pairs]
        counts = np.cumsum([0, *map(len, self._classes)])
        return Edges(
            np.array(self._edge_starts, np.int64),
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


class _Written(NamedTuple):
    """A term as `atoms.Edges` has it."""

    text: int
    length: int
    string: int
    string_length: int
    means: Means
    number: float
    rest: int


def _write(term: Term, text: bytearray) -> _Written:
    data, start = written(term).encode(), len(text)
    text.extend(data)
    found = meaning(term)
    kind, number, rest = means(found), 0.0, 0
    if found is not None and kind in (Means.NUMBER, Means.BOOLEAN):
        number, rest = split_number(found.value)
    elif found is not None and kind is Means.MOMENT:
        rest = found.value.micros
    is_text = kind in (Means.STRING, Means.LANGUAGE)
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


def _held(key: Key, relation: Related) -> tuple[Key, ...]:
    """Under which keys a class is found that an end stands to in this way."""
    if relation is Related.AT:
        return _AT[key], _BELOW[key], _ABOVE[key]
    return (_BELOW[key],) if relation is Related.BELOW else (_ABOVE[key],)
