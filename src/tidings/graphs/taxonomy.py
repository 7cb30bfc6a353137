"""Taxonomies: superclasses, instances of classes, and superproperties.

A taxonomy is read from RDFS (section 3.4 of the G-ToPSS paper): `rdfs:subClassOf` between classes, with several
parents; `rdf:type` for known instances; `rdfs:subPropertyOf` between properties, which the paper leaves for later. The
transitive closure is computed once, when a taxonomy is created; the paper walks the tree for each check.
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
"""The ancestors of a term, including the term itself."""


@dataclass(frozen=True)
class Taxonomy:
    """The statements of a taxonomy, and their closure. Equal statements make equal taxonomies."""

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

    def classes_of(self, term: Term, types_in_publication: Iterable[Term] = ()) -> frozenset[Term]:
        """Return the classes of a node, including itself if it is a class or an instance in the taxonomy."""
        itself = (term,) if term in self.classes or term in self.types else ()
        return self.types.get(term, frozenset()).union(types_in_publication, itself)

    def ancestors(self, term: Term) -> frozenset[Term]:
        """Return a class and all classes above it; an unknown class has none above it."""
        return self.classes.get(term) or frozenset((term,))

    def descendants(self, term: Term) -> frozenset[Term]:
        """Return a class and all classes below it."""
        return self._below.get(term) or frozenset((term,))

    @cached_property
    def _below(self) -> Mapping[Term, frozenset[Term]]:
        descendants: dict[Term, set[Term]] = {}
        for term, ancestors in self.classes.items():
            for above in ancestors:
                descendants.setdefault(above, set()).add(term)
        return {above: frozenset(terms) for above, terms in descendants.items()}

    def is_below(self, term: Term, other: Term) -> bool:
        """Return whether a class is another one, or below it."""
        return other in self.ancestors(term)

    def super_properties(self, term: Term) -> tuple[Term, ...]:
        """Return a property, followed by all that it implies."""
        return (term, *sorted(self.properties.get(term, frozenset()) - {term}))

    @cached_property
    def numbers(self) -> Mapping[Term, int]:
        """The classes, numbered from zero without gaps; equal taxonomies have equal numbers."""
        return {term: number for number, term in enumerate(sorted(self.classes))}

    @cached_property
    def reach(self) -> tuple[array[int], array[int]]:
        """The offsets and numbers of the ancestors of each class, including itself, as arrays for kernels."""
        starts, numbers = array("i", [0]), array("i")
        for term in self.numbers:
            numbers.extend(sorted(self.numbers[above] for above in self.classes[term]))
            starts.append(len(numbers))
        return starts, numbers


def taxonomy_of(*graphs: Graph) -> Taxonomy:
    """Build the taxonomy of several files; blank nodes are local to each file."""
    files = [graph.edges for graph in graphs]
    named = [[_separate_blank_nodes(edge, file) for edge in edges] for file, edges in enumerate(files)]
    return merged(*(Taxonomy(frozenset(filter(_counts, edges))) for edges in named))


def merged(*taxonomies: Taxonomy) -> Taxonomy:
    return Taxonomy(frozenset().union(*(taxonomy.statements for taxonomy in taxonomies)))


def _counts(edge: Edge) -> bool:
    """Return whether an edge is relevant. In RDFS every class is below itself, which is not a cycle."""
    if edge.property.text not in _READ:
        return False
    if edge.object.kind is TermKind.LITERAL:
        name = edge.property.text.rpartition("#")[2]
        where = f"{_show_term(edge.subject)} {name}"
        raise SchemaError(
            "a literal cannot be a class or a property", where=where, received=repr(edge.object.text)
        )
    return edge.property.text == TYPE or edge.subject != edge.object


def _separate_blank_nodes(edge: Edge, file: int) -> Edge:
    return Edge(*(blank(f"{file}.{term.text}") if term.kind is TermKind.BLANK else term for term in edge))


def _pairs(statements: Iterable[Edge], named: str) -> dict[Term, frozenset[Term]]:
    pairs: dict[Term, set[Term]] = {}
    for subject, property, object in statements:
        if property.text == named:
            pairs.setdefault(subject, set()).add(object)
    return {subject: frozenset(objects) for subject, objects in pairs.items()}


def _above(parents: Mapping[Term, frozenset[Term]], roots: Iterable[Term], name: str) -> Above:
    """Compute the ancestors of each term, without recursion: a taxonomy may be deep."""
    ancestors: dict[Term, frozenset[Term]] = {}
    names = {*parents, *(parent for terms in parents.values() for parent in terms), *roots}
    for first in sorted(names):
        path, open_ = [first], {first}
        while path:
            waiting = sorted(parent for parent in parents.get(path[-1], ()) if parent not in ancestors)
            if not waiting:
                term = path.pop()
                open_.discard(term)
                ancestors[term] = frozenset((term,)).union(
                    *(ancestors[parent] for parent in parents.get(term, ()))
                )
            elif waiting[0] in open_:
                raise _cycle([*path[path.index(waiting[0]) :], waiting[0]], name)
            else:
                path.append(waiting[0])
                open_.add(waiting[0])
    return ancestors


def _cycle(path: list[Term], name: str) -> SchemaError:
    return SchemaError(
        "the taxonomy has a cycle",
        where=name,
        received=" → ".join(map(_show_term, path)),
        accepted="a hierarchy without cycles",
        hint="remove one of these statements",
    )


def _show_term(term: Term) -> str:
    return f"_:{term.text}" if term.kind is TermKind.BLANK else f"<{term.text}>"
