"""One metadata document on its way from edges to resources. What is wrong with it is collected, not raised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidings.graphs import TYPE, Graph, Term, TermKind, iri
from tidings.metadata import document_findings as findings
from tidings.metadata.blank_names import blank_names
from tidings.metadata.literals import value_of
from tidings.metadata.problems import Finding
from tidings.metadata.resources import Ref, Resource, Value
from tidings.metadata.schema import Property
from tidings.metadata.schema_statements import CLASS, PROPERTY
from tidings.metadata.vocabulary import Vocabulary


class Reading:
    """What a document says of each of its resources."""

    def __init__(self, graph: Graph, uri: str, vocabulary: Vocabulary) -> None:
        self.findings: list[Finding] = []
        self._uri, self._vocabulary, self._schema = uri, vocabulary, vocabulary.schema
        self._blanks = blank_names(graph, uri, vocabulary.short)
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
                self.findings.append(findings.foreign(subject.text, self._uri))
            if subject.text in made:
                self.findings.append(findings.met(subject.text))

    def _classify(self, name: str, about: _Described) -> None:
        named = {term: self._class_of(term) for term in about.types}
        unknown = [term for term, cls in named.items() if cls is None]
        self.findings += [findings.unknown_class(name, term, self._vocabulary) for term in unknown]
        classes = [cls for cls in named.values() if cls is not None]
        lowest = [cls for cls in classes if self._schema.at_or_above(cls).issuperset(classes)]
        if lowest:
            self._classes[name] = lowest[0]
        elif classes:
            self.findings.append(findings.unrelated(name, classes))
        elif not unknown:
            self.findings.append(findings.no_class(name, about.values))

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
            self.findings.append(findings.several(name, property, list(map(self._named, terms))))
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
        value = value_of(term, property.kind)
        if value is None:
            self.findings.append(findings.wrong_kind(name, property, term))
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
