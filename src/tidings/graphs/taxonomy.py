"""Taxonomies: which classes stand above which, who belongs to them, and which properties imply which.

A taxonomy is read from RDFS (section 3.4 of the G-ToPSS paper): `rdfs:subClassOf` between classes, with several
parents; `rdf:type` for the instances it knows; `rdfs:subPropertyOf` between properties, which the paper leaves for
later. What stands above what is worked out once, when a taxonomy is made: the paper walks the tree for each check.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from tidings.errors import SchemaError
from tidings.graphs.model import RDFS, TYPE, Edge, Graph, Term, TermKind, blank

SUBCLASS, SUBPROPERTY = RDFS + "subClassOf", RDFS + "subPropertyOf"
_READ = frozenset((TYPE, SUBCLASS, SUBPROPERTY))

Above = Mapping[Term, frozenset[Term]]
"""What stands above a term, the term itself included."""


@dataclass(frozen=True)
class Taxonomy:
    """What a taxonomy says, and what follows from it. Equal statements make equal taxonomies."""

    statements: frozenset[Edge] = frozenset()
    types: Mapping[Term, frozenset[Term]] = field(init=False, compare=False, repr=False)
    classes: Above = field(init=False, compare=False, repr=False)
    properties: Above = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        types = _pairs(self.statements, TYPE)
        members = {member for classes in types.values() for member in classes}
        object.__setattr__(self, "types", types)
        object.__setattr__(self, "classes", _above(_pairs(self.statements, SUBCLASS), members, "subClassOf"))
        object.__setattr__(
            self, "properties", _above(_pairs(self.statements, SUBPROPERTY), (), "subPropertyOf")
        )

    def stands_at(self, term: Term, types_in_publication: Iterable[Term] = ()) -> frozenset[Term]:
        """Where a node stands: at its classes, and, if the taxonomy knows it as a class or an instance, at itself."""
        itself = (term,) if term in self.classes or term in self.types else ()
        return self.types.get(term, frozenset()).union(types_in_publication, itself)

    def ancestors(self, term: Term) -> frozenset[Term]:
        """A class and all classes above it; one that the taxonomy does not know has nothing above it."""
        return self.classes.get(term) or frozenset((term,))

    def descendants(self, term: Term) -> frozenset[Term]:
        """A class and all classes below it."""
        return self._below.get(term) or frozenset((term,))

    @cached_property
    def _below(self) -> Mapping[Term, frozenset[Term]]:
        found: dict[Term, set[Term]] = {}
        for term, ancestors in self.classes.items():
            for above in ancestors:
                found.setdefault(above, set()).add(term)
        return {above: frozenset(terms) for above, terms in found.items()}

    def is_below(self, term: Term, other: Term) -> bool:
        """Whether a class is another one, or below it."""
        return other in self.ancestors(term)

    def super_properties(self, term: Term) -> tuple[Term, ...]:
        """A property, and behind it all that it implies."""
        return (term, *sorted(self.properties.get(term, frozenset()) - {term}))

    @cached_property
    def numbers(self) -> Mapping[Term, int]:
        """The classes, numbered from zero without gaps; equal taxonomies have equal numbers."""
        return {term: number for number, term in enumerate(sorted(self.classes))}

    @cached_property
    def reach(self) -> tuple[array[int], array[int]]:
        """Where the ancestors-or-self of each class begin, and their numbers in order: arrays for kernels."""
        starts, numbers = array("i", [0]), array("i")
        for term in self.numbers:
            numbers.extend(sorted(self.numbers[above] for above in self.classes[term]))
            starts.append(len(numbers))
        return starts, numbers


def taxonomy_of(*graphs: Graph) -> Taxonomy:
    """The taxonomy that several files say together; blank nodes of two files are two nodes."""
    files = [graph.edges for graph in graphs]
    named = [[_apart(edge, file) for edge in edges] for file, edges in enumerate(files)]
    return merged(*(Taxonomy(frozenset(filter(_counts, edges))) for edges in named))


def merged(*taxonomies: Taxonomy) -> Taxonomy:
    return Taxonomy(frozenset().union(*(taxonomy.statements for taxonomy in taxonomies)))


def _counts(edge: Edge) -> bool:
    """Whether an edge says something here. RDFS has every class below itself: that is no cycle, and no news."""
    if edge.property.text not in _READ:
        return False
    if edge.object.kind is TermKind.LITERAL:
        name = edge.property.text.rpartition("#")[2]
        where = f"{_shown(edge.subject)} {name}"
        raise SchemaError(
            "a literal is no class and no property", where=where, received=repr(edge.object.text)
        )
    return edge.property.text == TYPE or edge.subject != edge.object


def _apart(edge: Edge, file: int) -> Edge:
    return Edge(*(blank(f"{file}.{term.text}") if term.kind is TermKind.BLANK else term for term in edge))


def _pairs(statements: Iterable[Edge], named: str) -> dict[Term, frozenset[Term]]:
    found: dict[Term, set[Term]] = {}
    for subject, property, object in statements:
        if property.text == named:
            found.setdefault(subject, set()).add(object)
    return {subject: frozenset(objects) for subject, objects in found.items()}


def _above(parents: Mapping[Term, frozenset[Term]], more: Iterable[Term], name: str) -> Above:
    """All that stands above each term, parents before children. No recursion: a taxonomy may be deep."""
    found: dict[Term, frozenset[Term]] = {}
    known = {*parents, *(parent for each in parents.values() for parent in each), *more}
    for first in sorted(known):
        path, open_ = [first], {first}
        while path:
            waiting = sorted(parent for parent in parents.get(path[-1], ()) if parent not in found)
            if not waiting:
                term = path.pop()
                open_.discard(term)
                found[term] = frozenset((term,)).union(*(found[each] for each in parents.get(term, ())))
            elif waiting[0] in open_:
                raise _cycle([*path[path.index(waiting[0]) :], waiting[0]], name)
            else:
                path.append(waiting[0])
                open_.add(waiting[0])
    return found


def _cycle(path: list[Term], name: str) -> SchemaError:
    return SchemaError(
        "the taxonomy runs in a circle",
        where=name,
        received=" → ".join(map(_shown, path)),
        accepted="nothing that is above itself",
        hint="one of these statements must go",
    )


def _shown(term: Term) -> str:
    return f"_:{term.text}" if term.kind is TermKind.BLANK else f"<{term.text}>"
