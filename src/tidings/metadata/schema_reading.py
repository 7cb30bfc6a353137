"""RDF Schema into a schema of metadata. Whatever makes no sense is told at once.

    :serverInformation a rdf:Property ;
        rdfs:domain :CycleProvider ; rdfs:range :ServerInformation ; md:reference md:strong .

Classes and properties have to be declared: RDFS would take any subject of rdfs:subClassOf for a class, so a slip of the
pen would make a new one. Several domains are several classes that have the property, as in the RDF Schema of the
paper's time; since 2004 RDFS reads them as all at once, and no rule could make use of that.
"""

from __future__ import annotations

from tidings.graphs import Graph
from tidings.metadata.literals import DATE, KINDS
from tidings.metadata.problems import MetadataSchemaError
from tidings.metadata.schema import Class, Property, Reference, Schema
from tidings.metadata.schema_checks import CHECKS
from tidings.metadata.schema_statements import (
    CLOSENESS,
    DOMAIN,
    RANGE,
    REFERENCE,
    SEVERAL,
    Statements,
    statements_of,
    truth,
)


def read_schema(graph: Graph) -> Schema:
    """The schema that a graph says."""
    said = statements_of(graph)
    findings = [finding for check in CHECKS for finding in check(said)]
    if findings:
        raise MetadataSchemaError("the schema", findings)
    classes = Schema({each.name: each for each in _classes(said)}, {})
    properties = {said.names[each]: _property(said, each, classes) for each in said.properties}
    return Schema(classes.classes, properties)


def _classes(said: Statements) -> list[Class]:
    names = said.names
    return [
        Class(names[each], each, tuple(names[above] for above in said.parents(each))) for each in said.classes
    ]


def _property(said: Statements, property: str, classes: Schema) -> tuple[Property, ...]:
    """The property for each class that has it. Classes below others of these have it from there."""
    of = [said.names[each.text] for each in said.about(property, DOMAIN)]
    tops = [each for each in of if not (classes.at_or_above(each) - {each}).intersection(of)]
    return tuple(_property_of(said, property, each) for each in tops)


def _property_of(said: Statements, property: str, cls: str) -> Property:
    (range_,) = said.about(property, RANGE)
    name, several = said.names[property], any(map(truth, said.about(property, SEVERAL)))
    if range_.text in KINDS:
        return Property(
            name, property, cls, kind=KINDS[range_.text], several=several, dates=range_.text == DATE
        )
    stated = (CLOSENESS[each] for each in said.about(property, REFERENCE))
    reference = next(stated, Reference.WEAK)
    return Property(name, property, cls, None, said.names[range_.text], reference, several)
