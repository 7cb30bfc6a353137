"""Reader of metadata documents: RDF in, resources out, checked against the schema.

    DocumentReader(schema).read(body, "application/rdf+xml", "http://example.org/doc.rdf")

A document describes its own resources only: the one with the URI of the document, and those with a fragment of it.
Nesting makes no difference (section 2.1 of paper 001). A document that breaks the schema is rejected as a whole, with
all findings at once.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tidings.core.suggest import printable
from tidings.errors import DecodeProblem
from tidings.graphs.model import STRING, TYPE, Graph, Term, TermKind, iri, literal
from tidings.graphs.rdf import rdf_decoder
from tidings.graphs.rdf.statements import Statement, statements
from tidings.metadata.resources import Ref, Resource, Value
from tidings.metadata.schema import findings
from tidings.metadata.schema.findings import Finding, MetadataError
from tidings.metadata.schema.model import Property, Schema, Vocabulary, parse_literal
from tidings.metadata.schema.schema_parser import CLASS, PROPERTY
from tidings.parsers.parser_pool import run_isolated
from tidings.values import Kind

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
    """Parser of the graph of one document; `findings` lists its errors."""

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

    def _readable_name(self, term: Term) -> Term:
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
            self.findings.append(
                findings.too_many_values(name, property, list(map(self._readable_name, terms)))
            )
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
            self.findings.append(findings.reference_for_literal(name, property, self._readable_name(term)))
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


# The fast path for valid documents, straight from statements to resources. It reports no problems: on None, the
# document is read again by `DocumentParser`, which collects findings.


_Statements = dict[str, list[tuple[str, str]]]
"""The statements about one subject: property IRI to objects with their datatypes."""

_MAX_DIGITS = 18
"""Whole numbers with this many digits are below 2**63."""


def parse_simple_document(
    statements: Iterable[Statement], uri: str, vocabulary: Vocabulary
) -> tuple[Resource, ...] | None:
    """Return the resources ordered by URI; None if something is wrong or needs `DocumentParser`."""
    by_subject: dict[str, _Statements] = {}
    classes: dict[str, str] = {}
    for subject, property, object, datatype in statements:
        if property != TYPE:
            by_subject.setdefault(subject, {}).setdefault(property, []).append((object, datatype))
            continue
        cls = None if datatype else vocabulary.class_of(object)
        if cls is None or subject in classes:  # of several classes, DocumentParser finds the lowest
            return None
        classes[subject] = cls
    if not by_subject.keys() <= classes.keys() or not _all_in_document(classes, uri):
        return None
    resources = []
    for subject in sorted(classes):
        values = _parse_values(classes[subject], by_subject.get(subject, {}), classes, vocabulary)
        if values is None:
            return None
        resources.append(Resource(subject, classes[subject], values))
    return tuple(resources)


def _all_in_document(subjects: Iterable[str], uri: str) -> bool:
    start = f"{uri}#"
    return all(subject.startswith(start) or subject == uri for subject in subjects)


def _parse_values(
    cls: str, statements: _Statements, classes: Mapping[str, str], vocabulary: Vocabulary
) -> Mapping[str, tuple[Value, ...]] | None:
    by_name: dict[str, tuple[Value, ...]] = {}
    for property_iri, objects in statements.items():
        property = vocabulary.property_of(cls, property_iri)
        if property is None or property.name in by_name or (len(objects) > 1 and not property.several):
            return None
        values = [_parse_value(*object, property, classes, vocabulary) for object in objects]
        if None in values:
            return None
        by_name[property.name] = tuple(sorted(set(values))) if len(values) > 1 else tuple(values)  # type: ignore[arg-type]
    return {name: by_name[name] for name in sorted(by_name, key=vocabulary.place_of)}


def _parse_value(
    object: str, datatype: str, property: Property, classes: Mapping[str, str], vocabulary: Vocabulary
) -> Value | None:
    kind = property.kind
    if kind is None or not datatype:
        is_reference = kind is None and not datatype
        return (
            Ref(object) if is_reference and _is_valid_target(object, property, classes, vocabulary) else None
        )
    if kind is Kind.NUMBER and datatype == STRING and len(object) <= _MAX_DIGITS and _is_whole(object):
        return int(object)
    if kind is Kind.STRING and datatype == STRING:
        return object
    return parse_literal(literal(object, datatype), kind)


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _is_valid_target(
    target: str, property: Property, classes: Mapping[str, str], vocabulary: Vocabulary
) -> bool:
    """Whether a target has the class of the reference; in other documents, the class is not known here."""
    cls = classes.get(target)
    return cls is None or property.leads_to in vocabulary.schema.at_or_above(cls)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed document: its resources ordered by URI reference, independent of the RDF syntax."""

    uri: str
    resources: tuple[Resource, ...]


class DocumentReader:
    """Reader of documents for one schema."""

    def __init__(self, schema: Schema) -> None:
        self._vocabulary = Vocabulary(schema)

    def read(self, body: bytes, media_type: str, uri: str, isolate: bool = False) -> Document:
        """Parse a document. Relative references are resolved against its URI.

        `isolate` is for untrusted new input: it is parsed in a parser process, if there are any. A document that was
        accepted before is parsed in this process, where no deadline can reject it.
        """
        simple = self._read_simple(body, media_type, uri, isolate)
        if simple is not None:
            return simple
        check_uri(uri)
        return self.read_graph(_decode(rdf_decoder.decode, isolate, body, media_type, uri), uri)

    def _read_simple(self, body: bytes, media_type: str, uri: str, isolate: bool) -> Document | None:
        """Parse a document by the fast path; None if that is not possible."""
        if "#" in uri:
            return None
        try:
            parsed = _decode(statements, isolate, body, media_type, uri)
        except DecodeProblem:
            return None  # a wrong URI is reported first
        resources = parse_simple_document(parsed, uri, self._vocabulary) if parsed is not None else None
        return None if resources is None else Document(uri, resources)

    def read_graph(self, graph: Graph, uri: str) -> Document:
        """Convert a graph to a document, or raise MetadataError with all findings."""
        parser = DocumentParser(graph, uri, self._vocabulary)
        resources = parser.resources()
        if parser.findings:
            problems = [findings.schema_in_document(uri)] if parser.is_schema() else parser.findings
            raise MetadataError(uri, problems)
        return Document(uri, tuple(sorted(resources, key=lambda resource: resource.uri)))


def _decode(
    decoder: Callable[[bytes, str, str], T], isolate: bool, body: bytes, media_type: str, uri: str
) -> T:
    return run_isolated(decoder, body, media_type, uri) if isolate else decoder(body, media_type, uri)


def check_uri(uri: str) -> None:
    """Raise DecodeProblem if a URI cannot be that of a document."""
    if "#" in uri:
        message, accepted = "the URI of a document has a fragment", "http://example.org/doc.rdf"
        hint = "fragments name the resources of a document"
        raise DecodeProblem(message, received=printable(uri), accepted=accepted, hint=hint)
    rdf_decoder.check_base(uri)
