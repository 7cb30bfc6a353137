"""Generated graphs, patterns and taxonomies, and the two notations of patterns.

There are few nodes, properties and values, so that patterns match by chance; most edges of a pattern are edges of a
graph with variables for some ends. Literals are in the form of pyoxigraph, which returns `5.0` as `5`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from hypothesis import strategies as st

from tidings.graphs.model import RDFS, STRING, TYPE, XSD, Edge, Graph, Term, TermKind, blank, iri, literal
from tidings.graphs.patterns.pattern_tree import (
    BLANK,
    Constraint,
    ConstraintKind,
    Pattern,
    PatternEdge,
    Variable,
    selected,
    show_term,
)
from tidings.graphs.taxonomy import SUBCLASS, SUBPROPERTY, Taxonomy, taxonomy_of

EX = "http://example.org/"
DECLARED = f"PREFIX ex: <{EX}>\nPREFIX xsd: <{XSD}>\nPREFIX rdfs: <{RDFS}>\n"

NODES = [iri(EX + name) for name in "abcde"]
BLANKS = [blank("b1"), blank("b2")]
PROPERTIES = [iri(EX + name) for name in "pqr"]
CLASSES = [iri(EX + name) for name in "ABCDEFG"]
VALUES = [
    literal("5", XSD + "integer"),
    literal("7", XSD + "integer"),
    literal("5", XSD + "decimal"),
    literal("6.5", XSD + "decimal"),
    literal("5", XSD + "double"),
    literal("oak"),
    literal("oak table"),
    literal("beech"),
    literal("oak", language="en"),
    literal("pine", language="de"),
    literal("5"),
    literal("true", XSD + "boolean"),
    literal("false", XSD + "boolean"),
    literal("2004-05-01T12:00:00Z", XSD + "dateTime"),
    literal("2005-01-01T00:00:00Z", XSD + "dateTime"),
]
NAMES = ["x", "y", "z", "w"]

nodes = st.sampled_from(NODES)
objects = st.one_of(nodes, nodes, st.sampled_from(BLANKS), st.sampled_from(VALUES))
subjects = st.one_of(nodes, nodes, st.sampled_from(BLANKS))
properties = st.sampled_from(PROPERTIES)
edges = st.builds(Edge, subjects, properties, objects)
typings = st.builds(Edge, subjects, st.just(iri(TYPE)), st.sampled_from(CLASSES[:4]))
graphs = st.lists(edges, min_size=1, max_size=14, unique=True).map(lambda found: Graph(tuple(found)))
typed_graphs = st.builds(
    lambda graph, types: Graph(tuple(dict.fromkeys((*graph.edges, *types)))),
    graphs,
    st.lists(typings, min_size=3, max_size=8),
)

ORDERED = [
    ConstraintKind.EQUAL,
    ConstraintKind.UNEQUAL,
    ConstraintKind.LESS,
    ConstraintKind.AT_MOST,
    ConstraintKind.GREATER,
    ConstraintKind.AT_LEAST,
]
INSIDE = [ConstraintKind.CONTAINS, ConstraintKind.STARTS_WITH]
OF_TERMS = [ConstraintKind.IS, ConstraintKind.IS_NOT]
OF_CLASSES = [
    ConstraintKind.AT_CLASS,
    ConstraintKind.NOT_AT_CLASS,
    ConstraintKind.AT_OR_BELOW,
    ConstraintKind.BELOW,
    ConstraintKind.AT_OR_ABOVE,
    ConstraintKind.ABOVE,
]


@st.composite
def taxonomies(draw: st.DrawFn) -> Taxonomy:
    """Classes below earlier ones, so that there is no cycle; instances; properties that imply others."""
    stated = []
    for below, above in draw(st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=9)):
        if below > above:
            stated.append(Edge(CLASSES[below], iri(SUBCLASS), CLASSES[above]))
    stated += draw(st.lists(st.builds(Edge, nodes, st.just(iri(TYPE)), st.sampled_from(CLASSES)), max_size=4))
    if draw(st.booleans()):
        stated.append(Edge(PROPERTIES[1], iri(SUBPROPERTY), PROPERTIES[0]))
    if draw(st.booleans()):
        stated.append(Edge(PROPERTIES[2], iri(SUBPROPERTY), PROPERTIES[1]))
    return taxonomy_of(Graph(tuple(stated)))


@st.composite
def patterns(draw: st.DrawFn, graph: Graph, of_classes: bool = False) -> Pattern:
    """A pattern whose edges are edges of the graph with variables, or random edges."""
    chance = random.Random(draw(st.integers(0, 2**32)))
    names: dict[Term, str] = {}
    edges = tuple(_edge(chance, graph, names) for _ in range(draw(st.integers(1, 4))))
    named = selected(Pattern((), edges))
    meant = {name: term for term, name in names.items()}
    constraints = tuple(
        _constraint(chance, name := chance.choice(named), of_classes, meant.get(name))
        for _ in range(draw(st.integers(int(of_classes), 2)) if named else 0)
    )
    select = (
        tuple(chance.sample(named, chance.randint(1, len(named)))) if named and chance.random() < 0.5 else ()
    )
    return Pattern(select, edges, constraints)


def _edge(chance: random.Random, graph: Graph, names: dict[Term, str]) -> PatternEdge:
    if chance.random() < 0.9:
        edge = chance.choice(graph.edges)
    else:
        edge = Edge(chance.choice(NODES), chance.choice(PROPERTIES), chance.choice([*NODES, *VALUES]))
    subject, object = (_open(chance, end, names, 0.6) for end in (edge.subject, edge.object))
    return PatternEdge(subject, _open(chance, edge.property, names, 0.15), object)


def _open(chance: random.Random, term: Term, names: dict[Term, str], how_often: float) -> Term | Variable:
    """Return the term or a variable, mostly the same for a term, so that edges share variables."""
    if term.kind is not TermKind.BLANK and chance.random() > how_often:
        return term
    if term not in names or chance.random() < 0.2:
        names[term] = chance.choice([*NAMES, f"{BLANK}n"] if term.kind is TermKind.BLANK else NAMES)
    property = term in PROPERTIES and names[term].startswith(BLANK)
    return Variable(NAMES[0] if property else names[term])


def _constraint(chance: random.Random, name: str, of_classes: bool, meant: Term | None) -> Constraint:
    """Return a constraint on a variable, sometimes on the term that it replaced, so that many hold."""
    if meant is not None and meant.kind is TermKind.IRI and chance.random() < (0.15 if of_classes else 0.4):
        return Constraint(name, chance.choice([ConstraintKind.IS, ConstraintKind.IN]), (meant,))
    if of_classes and chance.random() < 0.8:
        return Constraint(name, chance.choice(OF_CLASSES), (chance.choice([*CLASSES[:4], NODES[0]]),))
    kind = chance.randrange(4)
    if kind == 0:
        return Constraint(name, chance.choice(OF_TERMS), (chance.choice(NODES),))
    if kind == 1:
        return Constraint(name, chance.choice(INSIDE), (literal(chance.choice(["oak", "e", "tab"])),))
    if kind == 2:
        listed = chance.sample([*VALUES, *NODES], chance.randint(1, 4))
        return Constraint(name, ConstraintKind.IN, tuple(listed))
    return Constraint(name, chance.choice(ORDERED), (chance.choice(VALUES),))


_CALLED = {ConstraintKind.CONTAINS: "CONTAINS", ConstraintKind.STARTS_WITH: "STRSTARTS"}
_SIGNS = {ConstraintKind.IS: "=", ConstraintKind.IS_NOT: "!="}
_SPELLED = {**_SIGNS, **dict(zip(OF_CLASSES, ("=", "!=", "<=", "<", ">=", ">"), strict=True))}
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}


def sparql(pattern: Pattern, conditions: Sequence[str] | None = None, graph_edges: Sequence[str] = ()) -> str:
    """Write a pattern as plain SPARQL; `conditions` and `graph_edges` replace its constraints and edges."""
    triples = list(graph_edges) or [
        f"{end(e.subject)} {end(e.property)} {end(e.object)} ." for e in pattern.edges
    ]
    asked = [f"FILTER({condition(c)})" for c in pattern.constraints] if conditions is None else conditions
    select = " ".join(f"?{name}" for name in pattern.select) or "*"
    return f"{DECLARED}SELECT DISTINCT {select} WHERE {{ {' '.join([*triples, *asked])} }}"


def condition(constraint: Constraint) -> str:
    name, operands = end(Variable(constraint.variable)), [end(term) for term in constraint.operands]
    if constraint.kind in _CALLED:
        return f"{_CALLED[constraint.kind]}({name}, {operands[0]})"
    if constraint.kind is ConstraintKind.IN:
        return f"{name} IN ({', '.join(operands)})"
    return f"{name} {_SIGNS.get(constraint.kind, constraint.kind.value)} {operands[0]}"


def end(place: Term | Variable) -> str:
    """Write an end of an edge as in all notations, with dates in quotes."""
    if isinstance(place, Variable):
        return place.name if place.name.startswith(BLANK) else f"?{place.name}"
    if place.kind is TermKind.LITERAL and place.datatype != STRING and not place.language:
        return f'"{place.text}"^^<{place.datatype}>'
    return show_term(place, {"ex": EX, "xsd": XSD})


class Writer:
    """A writer of patterns in one of the equivalent forms of GQL."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def write(self, pattern: Pattern) -> str:
        select = self.word(" ", ", ").join(f"?{name}" for name in pattern.select) or "*"
        edges = [f"({self.ends(edge)})" for edge in pattern.edges]
        asked = [f"{self.case('and')} {self.condition(constraint)}" for constraint in pattern.constraints]
        joined = edges[0] + "".join(self.word(" ", "", ", ", " AND ", "\n") + edge for edge in edges[1:])
        head = f"{DECLARED}{self.case('select')} {select} {self.case('where')} "
        return " ".join([head + joined, *asked])

    def ends(self, edge: PatternEdge) -> str:
        property = "a" if edge.property == iri(TYPE) else end(edge.property)
        return self.word(",", ", ", " , ").join((end(edge.subject), property, end(edge.object)))

    def condition(self, constraint: Constraint) -> str:
        name, operands = (
            end(Variable(constraint.variable)),
            [self.operand(term) for term in constraint.operands],
        )
        if constraint.kind is ConstraintKind.IN:
            return f"{name} {self.case('in')} ({', '.join(operands)})"
        classes = constraint.kind in OF_CLASSES
        sign = _SPELLED[constraint.kind] if classes else constraint.kind.value
        if sign in _FLIPPED and self.chance.random() < 0.3:
            return f"{operands[0]} {_FLIPPED[sign]} {name}"
        return f"{name} {self.case(sign)} {operands[0]}"

    def operand(self, term: Term) -> str:
        return show_term(term) if self.chance.random() < 0.5 else end(term)

    def word(self, *ways: str) -> str:
        return self.chance.choice(ways)

    def case(self, word: str) -> str:
        return self.word(word, word.upper(), word.capitalize())
