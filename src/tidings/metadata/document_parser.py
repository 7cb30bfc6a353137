"""Parser of one metadata document, from graph edges to resources; it collects all findings."""

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

# Generated URI references for blank nodes, such as nested resources without rdf:ID:
#
#     doc.rdf#host/serverInformation          the value of the host's serverInformation
#     doc.rdf#host/disks, #host/disks/2       several values, in document order
#     doc.rdf#/CycleProvider                  one without an incoming edge; the next is #/CycleProvider/2
#
# A name depends on the path to the resource only, so a resource keeps its name while its values change. With a name
# made of the values, each change would make another resource; with one made of the place in the document (b0, b1 ...),
# an insertion would rename everything below. rdf:ID cannot contain a slash, so generated names rarely collide.


NameShortener = Callable[[str], str]
"""Maps the IRI of a class or a property to its short name."""


def name_blank_nodes(graph: Graph, document: str, short: NameShortener) -> Mapping[Term, str]:
    """Return the URI reference of each blank node of a document."""
    nodes = [node for edge in graph.edges for node in (edge.subject, edge.object)]
    blanks = dict.fromkeys(node for node in nodes if node.kind is TermKind.BLANK)
    if not blanks:
        return {}
    objects = {edge.object for edge in graph.edges}
    namer = _BlankNodeNamer(graph, document, short)
    namer.follow(dict.fromkeys(node for node in nodes if node.kind is TermKind.IRI))
    namer.start(blank for blank in blanks if blank not in objects)
    namer.start(blanks)  # those that are left are in cycles
    return namer.names


class _BlankNodeNamer:
    """Breadth-first walk from named nodes to blank nodes."""

    def __init__(self, graph: Graph, document: str, short: NameShortener) -> None:
        self.names: dict[Term, str] = {}
        self._start, self._short = f"{document}#", short
        self._counts: dict[str, int] = defaultdict(int)
        self._edges: dict[Term, list[tuple[str, Term]]] = defaultdict(list)
        self._types: dict[Term, str] = {}
        for subject, property, object in graph.edges:
            if property.text == TYPE:
                self._types.setdefault(subject, object.text)
            elif object.kind is TermKind.BLANK:
                self._edges[subject].append((property.text, object))

    def start(self, blanks: Iterable[Term]) -> None:
        for blank in blanks:
            if blank not in self.names:
                self._assign(blank, f"{self._start}/{self._short(self._types.get(blank, ''))}")
                self.follow([blank])

    def follow(self, nodes: Iterable[Term]) -> None:
        pending = deque(nodes)
        while pending:
            node = pending.popleft()
            for property, blank in self._edges.get(node, ()):
                if blank not in self.names:
                    self._assign(blank, f"{self._prefix(node)}/{self._short(property)}")
                    pending.append(blank)

    def _prefix(self, node: Term) -> str:
        """Return the name of a node with a fragment: that of the document itself has none."""
        name = self.names.get(node, node.text)
        return name if "#" in name else f"{name}#"

    def _assign(self, blank: Term, name: str) -> None:
        self._counts[name] += 1
        self.names[blank] = name if self._counts[name] == 1 else f"{name}/{self._counts[name]}"


class DocumentParser:
    """Parser of the graph of one document; `findings` lists what is wrong with it."""

    def __init__(self, graph: Graph, uri: str, vocabulary: Vocabulary) -> None:
        self.findings: list[Finding] = []
        self._uri, self._vocabulary, self._schema = uri, vocabulary, vocabulary.schema
        self._blanks = name_blank_nodes(graph, uri, vocabulary.short)
        self._descriptions = _group_by_subject(graph, self._blanks)
        self._classes: dict[str, str] = {}

    def resources(self) -> list[Resource]:
        """Parse the resources, which are valid only if there are no findings."""
        self._check_ownership()
        for subject, about in self._descriptions.items():
            self._classify(self._name(subject), about)
        resources = []
        for subject, about in self._descriptions.items():
            name = self._name(subject)
            cls = self._classes.get(name)
            if cls is not None:
                resources.append(Resource(name, cls, self._parse_values(name, cls, about)))
        return resources

    def is_schema(self) -> bool:
        """Whether the document declares classes or properties, and describes no resources."""
        declared = any(
            term.text in (CLASS, PROPERTY) for about in self._descriptions.values() for term in about.types
        )
        return declared and not self._classes

    def _name(self, node: Term) -> str:
        return node.text if node.kind is TermKind.IRI else self._blanks[node]

    def _readable(self, term: Term) -> Term:
        """Replace a blank node, whose label is meaningless, by its generated name."""
        return iri(self._blanks[term]) if term.kind is TermKind.BLANK else term

    def _check_ownership(self) -> None:
        """Check that all subjects belong to this document: others can be changed by their own document only."""
        generated, start = set(self._blanks.values()), f"{self._uri}#"
        for subject in self._descriptions:
            if subject.kind is not TermKind.IRI:
                continue
            if subject.text != self._uri and not subject.text.startswith(start):
                self.findings.append(findings.foreign_resource(subject.text, self._uri))
            if subject.text in generated:
                self.findings.append(findings.name_collision(subject.text))

    def _classify(self, name: str, about: _Description) -> None:
        types = {term: self._class_of(term) for term in about.types}
        unknown = [term for term, cls in types.items() if cls is None]
        self.findings += [findings.unknown_class(name, term, self._vocabulary) for term in unknown]
        classes = [cls for cls in types.values() if cls is not None]
        lowest = [cls for cls in classes if self._schema.at_or_above(cls).issuperset(classes)]
        if lowest:
            self._classes[name] = lowest[0]
        elif classes:
            self.findings.append(findings.unrelated_classes(name, classes))
        elif not unknown:
            self.findings.append(findings.missing_class(name, about.values))

    def _class_of(self, term: Term) -> str | None:
        return self._vocabulary.class_of(term.text) if term.kind is TermKind.IRI else None

    def _parse_values(self, name: str, cls: str, about: _Description) -> Mapping[str, tuple[Value, ...]]:
        by_name: dict[str, tuple[Value, ...]] = {}
        for property_iri, terms in about.values.items():
            property = self._vocabulary.property_of(cls, property_iri)
            if property is None:
                self.findings.append(findings.unknown_property(name, cls, property_iri, self._vocabulary))
                continue
            values = self._parse_property(name, property, terms)
            if values:
                by_name[property.name] = values
        return {each: by_name[each] for each in sorted(by_name, key=self._vocabulary.place_of)}

    def _parse_property(self, name: str, property: Property, terms: Sequence[Term]) -> tuple[Value, ...]:
        """Return the values sorted and without duplicates, so that equivalent documents are equal."""
        parse = self._parse_reference if property.kind is None else self._parse_literal
        values = {value for term in terms if (value := parse(name, property, term)) is not None}
        if len(values) > 1 and not property.several:
            self.findings.append(findings.too_many_values(name, property, list(map(self._readable, terms))))
        return tuple(sorted(values))

    def _parse_reference(self, name: str, property: Property, term: Term) -> Value | None:
        """Parse a reference. Only targets in this document are checked: others are not known, and may change."""
        if term.kind is TermKind.LITERAL:
            self.findings.append(findings.literal_for_reference(name, property, term))
            return None
        target = self._name(term)
        cls = self._classes.get(target)
        if cls is not None and property.leads_to not in self._schema.at_or_above(cls):
            self.findings.append(findings.wrong_class(name, property, target, cls))
        return Ref(target)

    def _parse_literal(self, name: str, property: Property, term: Term) -> Value | None:
        if term.kind is not TermKind.LITERAL:
            self.findings.append(findings.reference_for_literal(name, property, self._readable(term)))
            return None
        assert property.kind is not None
        value = parse_literal(term, property.kind)
        if value is None:
            self.findings.append(findings.wrong_datatype(name, property, term))
        return value


class _Description:
    """The statements about one subject."""

    __slots__ = ("types", "values")

    def __init__(self) -> None:
        self.types: list[Term] = []
        self.values: dict[str, list[Term]] = {}


def _group_by_subject(graph: Graph, blanks: Mapping[Term, str]) -> Mapping[Term, _Description]:
    """Group statements by subject in document order. Blank nodes are included even without statements."""
    descriptions: dict[Term, _Description] = {}
    for subject, property, object in graph.edges:
        about = descriptions.get(subject)
        if about is None:
            about = descriptions[subject] = _Description()
        if property.text == TYPE:
            about.types.append(object)
        else:
            about.values.setdefault(property.text, []).append(object)
    return descriptions | {blank: _Description() for blank in blanks if blank not in descriptions}
