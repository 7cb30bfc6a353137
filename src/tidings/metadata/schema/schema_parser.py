"""Parser of RDF Schema; all problems are reported together.

    :serverInformation a rdf:Property ;
        rdfs:domain :CycleProvider ; rdfs:range :ServerInformation ; md:reference md:strong .

Classes and properties must be declared: in RDFS, any subject of rdfs:subClassOf is a class, so a typo would create a
new one. Several domains are alternatives, as in the RDF Schema of the paper's time. Since 2004, RDFS reads them as an
intersection, which no rule could use.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from tidings.core.suggest import did_you_mean, printable
from tidings.graphs.model import RDF, RDFS, TYPE, Edge, Graph, Term, TermKind, iri, meaning
from tidings.graphs.patterns.pattern_tree import show_term
from tidings.graphs.rdf import rdf_decoder
from tidings.metadata.schema.findings import Finding, MetadataSchemaError
from tidings.metadata.schema.model import (
    DATATYPE_KINDS,
    DATE,
    Class,
    Property,
    Reference,
    Schema,
    assign_short_names,
    local_name,
)

TIDINGS_NAMESPACE = "https://tidings.dev/metadata#"
"""The namespace for statements that RDF Schema cannot express (section 2.4 of paper 001)."""

SEVERAL, REFERENCE = TIDINGS_NAMESPACE + "several", TIDINGS_NAMESPACE + "reference"
SUBCLASS, DOMAIN, RANGE = RDFS + "subClassOf", RDFS + "domain", RDFS + "range"
CLASS, PROPERTY = RDFS + "Class", RDF + "Property"
RDFS_RESOURCE = RDFS + "Resource"
REFERENCE_STRENGTHS: Mapping[Term, Reference] = {
    iri(TIDINGS_NAMESPACE + each.value): each for each in Reference
}


@dataclass(frozen=True)
class SchemaStatements:
    """The unchecked statements of a schema in document order.

    `objects` are by subject and property. Declared classes and properties have their short names, or None where there
    is no unique one.
    """

    objects: Mapping[str, Mapping[str, tuple[Term, ...]]]
    classes: Mapping[str, str | None]
    properties: Mapping[str, str | None]
    nameless: tuple[Term, ...]
    """Blank nodes that are declared as a class or a property."""

    def about(self, subject: str, property: str) -> tuple[Term, ...]:
        return self.objects.get(subject, {}).get(property, ())

    def is_class(self, term: Term) -> bool:
        return term.kind is TermKind.IRI and term.text in self.classes

    def parents(self, cls: str) -> list[str]:
        """List the direct superclasses, without the class itself and rdfs:Resource."""
        above = (term.text for term in self.about(cls, SUBCLASS))
        return [iri for iri in above if iri not in (cls, RDFS_RESOURCE)]

    @cached_property
    def names(self) -> Mapping[str, str]:
        """The short names of declared classes and properties by IRI."""
        return {each: name for each, name in (*self.classes.items(), *self.properties.items()) if name}


def collect_statements(graph: Graph) -> SchemaStatements:
    objects: dict[str, dict[str, tuple[Term, ...]]] = defaultdict(dict)
    for subject, property, object in graph.edges:
        if subject.kind is TermKind.IRI:
            about = objects[subject.text]
            about[property.text] = (*about.get(property.text, ()), object)
    classes, properties = (
        assign_short_names(each for each, about in objects.items() if iri(kind) in about.get(TYPE, ()))
        for kind in (CLASS, PROPERTY)
    )
    nameless = tuple(edge.subject for edge in graph.edges if _declares_blank(edge))
    return SchemaStatements(dict(objects), classes, properties, nameless)


def _declares_blank(edge: Edge) -> bool:
    declares = edge.property.text == TYPE and edge.object in (iri(CLASS), iri(PROPERTY))
    return declares and edge.subject.kind is TermKind.BLANK


def parse_boolean(term: Term) -> bool | None:
    """Parse a term as a boolean; None if it is not one."""
    parsed = meaning(term)
    return bool(parsed.value) if parsed is not None and parsed.kind == "boolean" else None


# The checks of a schema, listed in `SCHEMA_CHECKS`.


def check_classes_exist(statements: SchemaStatements) -> Iterator[Finding]:
    if not statements.classes and not statements.nameless:
        accepted = "at least one subject of type rdfs:Class"
        yield Finding(
            "the schema",
            "the schema declares no class",
            accepted=accepted,
            hint=_suggest_alternative(statements),
        )


def _suggest_alternative(statements: SchemaStatements) -> str | None:
    """Suggest the possible format of an input without classes."""
    types = {term.text for about in statements.objects.values() for term in about.get(TYPE, ())}
    if any(each.endswith("#Class") for each in types):
        return "declare classes as rdfs:Class; classes of other vocabularies (such as owl:Class) are not recognized"
    return "this may be a document: tidings provider register URI FILE" if types else None


def check_iris(statements: SchemaStatements) -> Iterator[Finding]:
    for term in statements.nameless:
        yield Finding(f"_:{term.text}", "a class or a property without an IRI", accepted="an IRI")


def check_distinct_kinds(statements: SchemaStatements) -> Iterator[Finding]:
    for name in statements.classes:
        if name in statements.properties:
            yield Finding(name, "both a class and a property", accepted="one of them")


def check_declared(statements: SchemaStatements) -> Iterator[Finding]:
    for subject, about in statements.objects.items():
        if SUBCLASS in about and subject not in statements.classes:
            yield _undeclared(subject, "rdfs:subClassOf", "rdfs:Class")
        used = [each for each in (DOMAIN, RANGE, SEVERAL, REFERENCE) if each in about]
        if used and subject not in statements.properties:
            yield _undeclared(subject, _prefix_name(used[0]), "rdf:Property")


def _undeclared(subject: str, property: str, kind: str) -> Finding:
    message, hint = (
        f"{property} on something that is not declared as {kind}",
        f"declare it: <{subject}> a {kind} .",
    )
    return Finding(subject, message, property, hint=hint)


def check_names(statements: SchemaStatements) -> Iterator[Finding]:
    for kind, names in (("class", statements.classes), ("property", statements.properties)):
        for subject, name in names.items():
            if name is None:
                message = f"no usable short name for this {kind}: rules call it by the end of its IRI"
                accepted = "an IRI that ends with a word, different from the short name of any other IRI"
                yield Finding(subject, message, accepted=accepted)


def check_superclasses(statements: SchemaStatements) -> Iterator[Finding]:
    for cls in statements.classes:
        for above in statements.about(cls, SUBCLASS):
            if not statements.is_class(above) and above.text != RDFS_RESOURCE:
                yield _unknown_class(statements, cls, "rdfs:subClassOf", above)


def _unknown_class(
    statements: SchemaStatements, subject: str, property: str, term: Term, alternatives: str = ""
) -> Finding:
    hint = did_you_mean(local_name(term.text), list(map(local_name, statements.classes)))
    accepted = "a class that the schema declares" + alternatives
    return Finding(subject, "not a class of the schema", property, _show(term), accepted, hint)


def check_acyclic(statements: SchemaStatements) -> Iterator[Finding]:
    """Report each cycle once, starting at the first of its classes."""
    reported: set[str] = set()
    for cls in _classes_without_root(statements):
        cycle = _find_cycle(statements, cls) if cls not in reported else []
        if cycle:
            reported.update(cycle)
            shown = " → ".join(f"<{each}>" for each in (*cycle, cls))
            hint = "remove one of these statements"
            yield Finding(cls, "cyclic class hierarchy", "rdfs:subClassOf", shown, hint=hint)


def _classes_without_root(statements: SchemaStatements) -> list[str]:
    """List the classes in a cycle or below one, by topological sorting. Most schemas have none."""
    pending = {cls: len(set(statements.parents(cls))) for cls in statements.classes}
    below: dict[str, set[str]] = defaultdict(set)
    for cls in statements.classes:
        for above in statements.parents(cls):
            below[above].add(cls)
    done = [cls for cls, parents in pending.items() if not parents]
    done += [above for above in below if above not in pending]
    for cls in done:  # grows while it is iterated
        for child in below[cls]:
            pending[child] -= 1
            if not pending[child]:
                done.append(child)
    return [cls for cls, parents in pending.items() if parents]


def _find_cycle(statements: SchemaStatements, cls: str) -> list[str]:
    """Return the shortest path from a class upwards to itself, without its end; empty if there is none."""
    below: dict[str, str] = {}
    level = [cls]
    while level and cls not in below:
        steps = {above: each for each in level for above in statements.parents(each) if above not in below}
        below |= steps
        level = list(steps)
    if cls not in below:
        return []
    path = [below[cls]]
    while path[-1] != cls:
        path.append(below[path[-1]])
    return path[::-1]


def check_domains(statements: SchemaStatements) -> Iterator[Finding]:
    for property in statements.properties:
        domains = statements.about(property, DOMAIN)
        if not domains:
            message, accepted = "the property has no domain", "one or more classes"
            yield Finding(property, message, "rdfs:domain", accepted=accepted)
        for domain in domains:
            if not statements.is_class(domain):
                yield _unknown_class(statements, property, "rdfs:domain", domain)


def check_ranges(statements: SchemaStatements) -> Iterator[Finding]:
    for property in statements.properties:
        ranges = statements.about(property, RANGE)
        if len(ranges) != 1:
            message = "the property has several ranges" if ranges else "the property has no range"
            accepted = "one class of the schema or one datatype; rdfs:Literal for strings"
            yield Finding(property, message, "rdfs:range", _show_all(ranges), accepted)
        elif not statements.is_class(ranges[0]) and not _is_datatype(ranges[0]):
            alternatives = (
                "; or xsd:string, xsd:boolean, xsd:dateTime, xsd:date, a number of XSD, rdfs:Literal"
            )
            yield _unknown_class(statements, property, "rdfs:range", ranges[0], alternatives)


def _is_datatype(term: Term) -> bool:
    return term.kind is TermKind.IRI and term.text in DATATYPE_KINDS


def check_cardinality(statements: SchemaStatements) -> Iterator[Finding]:
    for property in statements.properties:
        terms = statements.about(property, SEVERAL)
        if terms and (len(terms) > 1 or parse_boolean(terms[0]) is None):
            yield Finding(property, "not a boolean", "md:several", _show_all(terms), "true or false, once")


def check_reference_strength(statements: SchemaStatements) -> Iterator[Finding]:
    for property in statements.properties:
        terms = statements.about(property, REFERENCE)
        if terms and (len(terms) > 1 or terms[0] not in REFERENCE_STRENGTHS):
            accepted = f"one of {' and '.join(map(_show, REFERENCE_STRENGTHS))}"
            yield Finding(property, "neither strong nor weak", "md:reference", _show_all(terms), accepted)
        elif terms and any(map(_is_datatype, statements.about(property, RANGE))):
            message, accepted = "a literal is neither strong nor weak", "a range that is a class"
            yield Finding(property, message, "md:reference", _show_all(terms), accepted)


def check_vocabulary(statements: SchemaStatements) -> Iterator[Finding]:
    """Report unknown terms of the Tidings namespace, and RDFS terms that rules would ignore."""
    for subject, about in statements.objects.items():
        for property in about:
            if property.startswith(TIDINGS_NAMESPACE) and property not in (SEVERAL, REFERENCE):
                accepted = f"<{SEVERAL}> and <{REFERENCE}>"
                yield Finding(
                    subject, "unknown term of the Tidings namespace", f"<{property}>", accepted=accepted
                )
        if RDFS + "subPropertyOf" in about:
            message = "subproperties are not supported: rules would not see them"
            yield Finding(subject, message, "rdfs:subPropertyOf", accepted="independent properties")


def _show(term: Term) -> str:
    return printable(show_term(term), 200)


def _show_all(terms: tuple[Term, ...]) -> str | None:
    return " and ".join(map(_show, terms)) or None


def _prefix_name(property: str) -> str:
    return property.replace(RDFS, "rdfs:").replace(TIDINGS_NAMESPACE, "md:")


SCHEMA_CHECKS = (
    check_classes_exist,
    check_iris,
    check_distinct_kinds,
    check_declared,
    check_names,
    check_superclasses,
    check_acyclic,
    check_domains,
    check_ranges,
    check_cardinality,
    check_reference_strength,
    check_vocabulary,
)


def parse_schema(graph: Graph) -> Schema:
    """Parse the schema in a graph, or raise MetadataSchemaError with all findings."""
    statements = collect_statements(graph)
    findings = [finding for check in SCHEMA_CHECKS for finding in check(statements)]
    if findings:
        raise MetadataSchemaError("the schema", findings)
    classes = Schema({each.name: each for each in _build_classes(statements)}, {})
    properties = {
        statements.names[each]: _build_properties(statements, each, classes) for each in statements.properties
    }
    return Schema(classes.classes, properties)


def parse_schema_file(body: bytes, media_type: str) -> Schema:
    """Parse the schema in an RDF file."""
    return parse_schema(rdf_decoder.decode(body, media_type))


def _build_classes(statements: SchemaStatements) -> list[Class]:
    names = statements.names
    return [
        Class(names[iri], iri, tuple(names[above] for above in statements.parents(iri)))
        for iri in statements.classes
    ]


def _build_properties(statements: SchemaStatements, property: str, classes: Schema) -> tuple[Property, ...]:
    """Return the property for each topmost class that declares it; subclasses inherit it."""
    of = [statements.names[each.text] for each in statements.about(property, DOMAIN)]
    tops = [each for each in of if not (classes.at_or_above(each) - {each}).intersection(of)]
    return tuple(_declare_property(statements, property, each) for each in tops)


def _declare_property(statements: SchemaStatements, property: str, cls: str) -> Property:
    (range_,) = statements.about(property, RANGE)
    name, several = statements.names[property], any(map(parse_boolean, statements.about(property, SEVERAL)))
    if range_.text in DATATYPE_KINDS:
        return Property(
            name, property, cls, kind=DATATYPE_KINDS[range_.text], several=several, dates=range_.text == DATE
        )
    stated = (REFERENCE_STRENGTHS[each] for each in statements.about(property, REFERENCE))
    reference = next(stated, Reference.WEAK)
    return Property(name, property, cls, None, statements.names[range_.text], reference, several)
