"""RDF Schema into a schema of metadata. Whatever makes no sense is told at once.

    :serverInformation a rdf:Property ;
        rdfs:domain :CycleProvider ; rdfs:range :ServerInformation ; md:reference md:strong .

Classes and properties have to be declared: RDFS would take any subject of rdfs:subClassOf for a class, so a slip of the
pen would make a new one. Several domains are several classes that have the property, as in the RDF Schema of the
paper's time; since 2004 RDFS reads them as all at once, and no rule could make use of that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from tidings.core.suggest import did_you_mean, printable
from tidings.graphs.gql.gql_tree import show_term
from tidings.graphs.model import RDF, RDFS, TYPE, Edge, Graph, Term, TermKind, iri
from tidings.graphs.values import meaning
from tidings.metadata.schema.findings import Finding, MetadataSchemaError
from tidings.metadata.schema.literals import DATATYPE_KINDS, DATE
from tidings.metadata.schema.model import Class, Property, Reference, Schema
from tidings.metadata.schema.vocabulary import assign_short_names, local_name

# What a graph says about classes and properties, before anybody asked whether it makes sense.


TIDINGS_NAMESPACE = "https://tidings.dev/metadata#"
"""The namespace of what RDF Schema has no words for (section 2.4 of paper 001)."""

SEVERAL, REFERENCE = TIDINGS_NAMESPACE + "several", TIDINGS_NAMESPACE + "reference"
SUBCLASS, DOMAIN, RANGE = RDFS + "subClassOf", RDFS + "domain", RDFS + "range"
CLASS, PROPERTY = RDFS + "Class", RDF + "Property"
RDFS_RESOURCE = RDFS + "Resource"
REFERENCE_STRENGTHS: Mapping[Term, Reference] = {
    iri(TIDINGS_NAMESPACE + each.value): each for each in Reference
}


@dataclass(frozen=True)
class SchemaStatements:
    """The objects of each subject by property, and the declared classes and properties, in the order written.

    Each of these has its short name; None where there is none that is its own.
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
        """Those right above. That a class is below itself, or below everything, is no news."""
        found = (each.text for each in self.about(cls, SUBCLASS))
        return [each for each in found if each not in (cls, RDFS_RESOURCE)]

    @cached_property
    def names(self) -> Mapping[str, str]:
        """The short names of what has one."""
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
    """Whether a term says yes; None if it says neither yes nor no."""
    found = meaning(term)
    return bool(found.value) if found is not None and found.kind == "boolean" else None


# What may be wrong with an RDF Schema, one small check after the other; reading `CHECKS` is reading the rules.


def check_classes_exist(said: SchemaStatements) -> Iterator[Finding]:
    if not said.classes and not said.nameless:
        accepted = "at least one subject of type rdfs:Class"
        yield Finding("the schema", "there is no class in it", accepted=accepted, hint=_instead(said))


def _instead(said: SchemaStatements) -> str | None:
    """What may have been meant by something without classes."""
    types = {term.text for about in said.objects.values() for term in about.get(TYPE, ())}
    if any(each.endswith("#Class") for each in types):
        return "other vocabularies have classes, too: a class is said to be an rdfs:Class here"
    return "resources are registered: tidings provider register URI FILE" if types else None


def check_iris(said: SchemaStatements) -> Iterator[Finding]:
    for each in said.nameless:
        yield Finding(f"_:{each.text}", "a class or a property without a name", accepted="an IRI")


def check_distinct_kinds(said: SchemaStatements) -> Iterator[Finding]:
    for each in said.classes:
        if each in said.properties:
            yield Finding(each, "a class and a property at once", accepted="one of them")


def check_declared(said: SchemaStatements) -> Iterator[Finding]:
    for subject, about in said.objects.items():
        if SUBCLASS in about and subject not in said.classes:
            yield _undeclared(subject, "rdfs:subClassOf", "rdfs:Class")
        used = [each for each in (DOMAIN, RANGE, SEVERAL, REFERENCE) if each in about]
        if used and subject not in said.properties:
            yield _undeclared(subject, _prefixed(used[0]), "rdf:Property")


def _undeclared(subject: str, property: str, kind: str) -> Finding:
    what, hint = f"{property} is said of what is no {kind}", f"declare it: <{subject}> a {kind} ."
    return Finding(subject, what, property, hint=hint)


def check_names(said: SchemaStatements) -> Iterator[Finding]:
    for kind, names in (("class", said.classes), ("property", said.properties)):
        for subject, name in names.items():
            if name is None:
                what = f"rules have no name for this {kind}: they call it by the end of its IRI"
                accepted = "an IRI whose end is a word, and no other that comes to the same name"
                yield Finding(subject, what, accepted=accepted)


def check_superclasses(said: SchemaStatements) -> Iterator[Finding]:
    for cls in said.classes:
        for above in said.about(cls, SUBCLASS):
            if not said.is_class(above) and above.text != RDFS_RESOURCE:
                yield _no_class(said, cls, "rdfs:subClassOf", above)


def _no_class(said: SchemaStatements, subject: str, property: str, term: Term, more: str = "") -> Finding:
    hint = did_you_mean(local_name(term.text), list(map(local_name, said.classes)))
    accepted = "a class that the schema declares" + more
    return Finding(subject, "not a class of the schema", property, _shown(term), accepted, hint)


def check_acyclic(said: SchemaStatements) -> Iterator[Finding]:
    """Each circle once, from the first of its classes on."""
    told: set[str] = set()
    for cls in _without_top(said):
        circle = _circle(said, cls) if cls not in told else []
        if circle:
            told.update(circle)
            shown = " → ".join(f"<{each}>" for each in (*circle, cls))
            hint = "one of these statements must go"
            yield Finding(cls, "classes run in a circle", "rdfs:subClassOf", shown, hint=hint)


def _without_top(said: SchemaStatements) -> list[str]:
    """Classes from which no way upwards ends: those of a circle and below one. In most schemas there are none."""
    waiting = {cls: len(set(said.parents(cls))) for cls in said.classes}
    below: dict[str, set[str]] = defaultdict(set)
    for cls in said.classes:
        for above in said.parents(cls):
            below[above].add(cls)
    done = [cls for cls, parents in waiting.items() if not parents]
    done += [above for above in below if above not in waiting]
    for cls in done:  # grows while it is gone through
        for each in below[cls]:
            waiting[each] -= 1
            if not waiting[each]:
                done.append(each)
    return [cls for cls, parents in waiting.items() if parents]


def _circle(said: SchemaStatements, cls: str) -> list[str]:
    """The shortest way from a class upwards to itself, without its end; empty if there is none."""
    below: dict[str, str] = {}
    level = [cls]
    while level and cls not in below:
        steps = {above: each for each in level for above in said.parents(each) if above not in below}
        below |= steps
        level = list(steps)
    if cls not in below:
        return []
    way = [below[cls]]
    while way[-1] != cls:
        way.append(below[way[-1]])
    return way[::-1]


def check_domains(said: SchemaStatements) -> Iterator[Finding]:
    for property in said.properties:
        domains = said.about(property, DOMAIN)
        if not domains:
            what, accepted = "nothing says what has this property", "one class or several"
            yield Finding(property, what, "rdfs:domain", accepted=accepted)
        for domain in domains:
            if not said.is_class(domain):
                yield _no_class(said, property, "rdfs:domain", domain)


def check_ranges(said: SchemaStatements) -> Iterator[Finding]:
    for property in said.properties:
        ranges = said.about(property, RANGE)
        if len(ranges) != 1:
            what = "several ranges, and no value is of all" if ranges else "nothing says what its values are"
            accepted = "one class of the schema or one datatype; rdfs:Literal for texts"
            yield Finding(property, what, "rdfs:range", _all(ranges), accepted)
        elif not said.is_class(ranges[0]) and not _is_datatype(ranges[0]):
            more = "; or xsd:string, xsd:boolean, xsd:dateTime, xsd:date, a number of XSD, rdfs:Literal"
            yield _no_class(said, property, "rdfs:range", ranges[0], more)


def _is_datatype(term: Term) -> bool:
    return term.kind is TermKind.IRI and term.text in DATATYPE_KINDS


def check_cardinality(said: SchemaStatements) -> Iterator[Finding]:
    for property in said.properties:
        told = said.about(property, SEVERAL)
        if told and (len(told) > 1 or parse_boolean(told[0]) is None):
            yield Finding(property, "neither yes nor no", "md:several", _all(told), "true or false, once")


def check_reference_strength(said: SchemaStatements) -> Iterator[Finding]:
    for property in said.properties:
        told = said.about(property, REFERENCE)
        if told and (len(told) > 1 or told[0] not in REFERENCE_STRENGTHS):
            accepted = f"one of {' and '.join(map(_shown, REFERENCE_STRENGTHS))}"
            yield Finding(property, "neither strong nor weak", "md:reference", _all(told), accepted)
        elif told and any(map(_is_datatype, said.about(property, RANGE))):
            what, accepted = "a literal is neither strong nor weak", "a range that is a class"
            yield Finding(property, what, "md:reference", _all(told), accepted)


def check_vocabulary(said: SchemaStatements) -> Iterator[Finding]:
    """Words of ours that there are not, and what would mean something to RDFS and nothing here."""
    for subject, about in said.objects.items():
        for property in about:
            if property.startswith(TIDINGS_NAMESPACE) and property not in (SEVERAL, REFERENCE):
                accepted = f"<{SEVERAL}> and <{REFERENCE}>"
                yield Finding(subject, "Tidings has no such word", f"<{property}>", accepted=accepted)
        if RDFS + "subPropertyOf" in about:
            what = "a property below a property: rules would not see it"
            yield Finding(subject, what, "rdfs:subPropertyOf", accepted="properties that stand by themselves")


def _shown(term: Term) -> str:
    return printable(show_term(term), 200)


def _all(terms: tuple[Term, ...]) -> str | None:
    return " and ".join(map(_shown, terms)) or None


def _prefixed(property: str) -> str:
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
    """The schema that a graph says."""
    said = collect_statements(graph)
    findings = [finding for check in SCHEMA_CHECKS for finding in check(said)]
    if findings:
        raise MetadataSchemaError("the schema", findings)
    classes = Schema({each.name: each for each in _classes(said)}, {})
    properties = {said.names[each]: _property(said, each, classes) for each in said.properties}
    return Schema(classes.classes, properties)


def _classes(said: SchemaStatements) -> list[Class]:
    names = said.names
    return [
        Class(names[each], each, tuple(names[above] for above in said.parents(each))) for each in said.classes
    ]


def _property(said: SchemaStatements, property: str, classes: Schema) -> tuple[Property, ...]:
    """The property for each class that has it. Classes below others of these have it from there."""
    of = [said.names[each.text] for each in said.about(property, DOMAIN)]
    tops = [each for each in of if not (classes.at_or_above(each) - {each}).intersection(of)]
    return tuple(_property_of(said, property, each) for each in tops)


def _property_of(said: SchemaStatements, property: str, cls: str) -> Property:
    (range_,) = said.about(property, RANGE)
    name, several = said.names[property], any(map(parse_boolean, said.about(property, SEVERAL)))
    if range_.text in DATATYPE_KINDS:
        return Property(
            name, property, cls, kind=DATATYPE_KINDS[range_.text], several=several, dates=range_.text == DATE
        )
    stated = (REFERENCE_STRENGTHS[each] for each in said.about(property, REFERENCE))
    reference = next(stated, Reference.WEAK)
    return Property(name, property, cls, None, said.names[range_.text], reference, several)
