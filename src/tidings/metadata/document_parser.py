"""One metadata document on its way from edges to resources. What is wrong with it is collected, not raised."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence

from tidings.graphs.model import TYPE, Graph, Term, TermKind, iri
from tidings.metadata.resources import Ref, Resource, Value
from tidings.metadata.schema import findings
from tidings.metadata.schema.findings import Finding
from tidings.metadata.schema.literals import parse_literal
from tidings.metadata.schema.model import Property
from tidings.metadata.schema.schema_parser import CLASS, PROPERTY
from tidings.metadata.schema.vocabulary import Vocabulary

# URI references for resources that have none: nested ones without rdf:ID, blank nodes in any syntax.
#
#     doc.rdf#host/serverInformation          what the host's serverInformation is
#     doc.rdf#host/disks, #host/disks/2       of several, in the order they are written
#     doc.rdf#/CycleProvider                  one that nothing leads to; #/CycleProvider/2 is the next
#
# Such a name stays while the way to the resource does, whatever its values become: it is changed, not another one. A
# name made of the values would be another resource after each change, and one made of the place in the document (b0,
# b1 ...) would move with everything above it. A slash cannot stand in rdf:ID, so names do not meet by chance.


NameShortener = Callable[[str], str]
"""How a class or a property is called, by its IRI."""


def name_blank_nodes(graph: Graph, document: str, short: NameShortener) -> Mapping[Term, str]:
    """The URI reference of each blank node of a document."""
    nodes = [node for edge in graph.edges for node in (edge.subject, edge.object)]
    blanks = dict.fromkeys(node for node in nodes if node.kind is TermKind.BLANK)
    if not blanks:
        return {}
    led_to = {edge.object for edge in graph.edges}
    naming = _Naming(graph, document, short)
    naming.follow(dict.fromkeys(node for node in nodes if node.kind is TermKind.IRI))
    naming.begin(blank for blank in blanks if blank not in led_to)
    naming.begin(blanks)  # what is left runs in circles
    return naming.names


class _Naming:
    """Goes along the edges, from what has a name to what has none, the nearest first."""

    def __init__(self, graph: Graph, document: str, short: NameShortener) -> None:
        self.names: dict[Term, str] = {}
        self._start, self._short = f"{document}#", short
        self._times: dict[str, int] = defaultdict(int)
        self._edges: dict[Term, list[tuple[str, Term]]] = defaultdict(list)
        self._types: dict[Term, str] = {}
        for subject, property, object in graph.edges:
            if property.text == TYPE:
                self._types.setdefault(subject, object.text)
            elif object.kind is TermKind.BLANK:
                self._edges[subject].append((property.text, object))

    def begin(self, blanks: Iterable[Term]) -> None:
        for blank in blanks:
            if blank not in self.names:
                self._call(blank, f"{self._start}/{self._short(self._types.get(blank, ''))}")
                self.follow([blank])

    def follow(self, nodes: Iterable[Term]) -> None:
        waiting = deque(nodes)
        while waiting:
            node = waiting.popleft()
            for property, blank in self._edges.get(node, ()):
                if blank not in self.names:
                    self._call(blank, f"{self._owner(node)}/{self._short(property)}")
                    waiting.append(blank)

    def _owner(self, node: Term) -> str:
        """The document may describe itself: its name has no fragment yet."""
        name = self.names.get(node, node.text)
        return name if "#" in name else f"{name}#"

    def _call(self, blank: Term, name: str) -> None:
        self._times[name] += 1
        self.names[blank] = name if self._times[name] == 1 else f"{name}/{self._times[name]}"


class DocumentParser:
    """What a document says of each of its resources."""

    def __init__(self, graph: Graph, uri: str, vocabulary: Vocabulary) -> None:
        self.findings: list[Finding] = []
        self._uri, self._vocabulary, self._schema = uri, vocabulary, vocabulary.schema
        self._blanks = name_blank_nodes(graph, uri, vocabulary.short)
        self._described = _by_subject(graph, self._blanks)
        self._classes: dict[str, str] = {}

    def resources(self) -> list[Resource]:
        """The resources; they count only if there are no findings."""
        self._belong()
        for subject, about in self._described.items():
            self._classify(self._name(subject), about)
        found = []
        for subject, about in self._described.items():
            name = self._name(subject)
            cls = self._classes.get(name)
            if cls is not None:
                found.append(Resource(name, cls, self._values_of(name, cls, about)))
        return found

    def is_schema(self) -> bool:
        """Whether the document says what classes and properties there are, and nothing of resources."""
        declared = any(
            term.text in (CLASS, PROPERTY) for each in self._described.values() for term in each.types
        )
        return declared and not self._classes

    def _name(self, node: Term) -> str:
        return node.text if node.kind is TermKind.IRI else self._blanks[node]

    def _named(self, term: Term) -> Term:
        """As people see it: the label of a blank node tells them nothing."""
        return iri(self._blanks[term]) if term.kind is TermKind.BLANK else term

    def _belong(self) -> None:
        """Whoever describes a resource of another document could change it behind its owner's back."""
        made, start = set(self._blanks.values()), f"{self._uri}#"
        for subject in self._described:
            if subject.kind is not TermKind.IRI:
                continue
            if subject.text != self._uri and not subject.text.startswith(start):
                self.findings.append(findings.foreign_resource(subject.text, self._uri))
            if subject.text in made:
                self.findings.append(findings.name_collision(subject.text))

    def _classify(self, name: str, about: _Described) -> None:
        named = {term: self._class_of(term) for term in about.types}
        unknown = [term for term, cls in named.items() if cls is None]
        self.findings += [findings.unknown_class(name, term, self._vocabulary) for term in unknown]
        classes = [cls for cls in named.values() if cls is not None]
        lowest = [cls for cls in classes if self._schema.at_or_above(cls).issuperset(classes)]
        if lowest:
            self._classes[name] = lowest[0]
        elif classes:
            self.findings.append(findings.unrelated_classes(name, classes))
        elif not unknown:
            self.findings.append(findings.missing_class(name, about.values))

    def _class_of(self, term: Term) -> str | None:
        return self._vocabulary.class_of(term.text) if term.kind is TermKind.IRI else None

    def _values_of(self, name: str, cls: str, about: _Described) -> Mapping[str, tuple[Value, ...]]:
        found: dict[str, tuple[Value, ...]] = {}
        for said, terms in about.values.items():
            property = self._vocabulary.property_of(cls, said)
            if property is None:
                self.findings.append(findings.unknown_property(name, cls, said, self._vocabulary))
                continue
            values = self._values(name, property, terms)
            if values:
                found[property.name] = values
        return {each: found[each] for each in sorted(found, key=self._vocabulary.place_of)}

    def _values(self, name: str, property: Property, terms: Sequence[Term]) -> tuple[Value, ...]:
        """The values in order, each once: two documents that say the same are the same."""
        read = self._reference if property.kind is None else self._literal
        values = {value for term in terms if (value := read(name, property, term)) is not None}
        if len(values) > 1 and not property.several:
            self.findings.append(findings.too_many_values(name, property, list(map(self._named, terms))))
        return tuple(sorted(values))

    def _reference(self, name: str, property: Property, term: Term) -> Value | None:
        """Where a reference leads in another document is not known here, and may change; in this one it is."""
        if term.kind is TermKind.LITERAL:
            self.findings.append(findings.literal_for_reference(name, property, term))
            return None
        target = self._name(term)
        cls = self._classes.get(target)
        if cls is not None and property.leads_to not in self._schema.at_or_above(cls):
            self.findings.append(findings.wrong_class(name, property, target, cls))
        return Ref(target)

    def _literal(self, name: str, property: Property, term: Term) -> Value | None:
        if term.kind is not TermKind.LITERAL:
            self.findings.append(findings.reference_for_literal(name, property, self._named(term)))
            return None
        assert property.kind is not None
        value = parse_literal(term, property.kind)
        if value is None:
            self.findings.append(findings.wrong_datatype(name, property, term))
        return value


class _Described:
    """What is said of one subject, term by term."""

    __slots__ = ("types", "values")

    def __init__(self) -> None:
        self.types: list[Term] = []
        self.values: dict[str, list[Term]] = {}


def _by_subject(graph: Graph, blanks: Mapping[Term, str]) -> Mapping[Term, _Described]:
    """By subject, in the order written. Blank nodes are there even if nothing is said of them."""
    found: dict[Term, _Described] = {}
    for subject, property, object in graph.edges:
        about = found.get(subject)
        if about is None:
            about = found[subject] = _Described()
        if property.text == TYPE:
            about.types.append(object)
        else:
            about.values.setdefault(property.text, []).append(object)
    return found | {blank: _Described() for blank in blanks if blank not in found}
