"""Oracle of rules: a rule as a SPARQL query over the resources as RDF, evaluated by Oxigraph.

It shares no code with the tested implementation: classes use rdfs:subClassOf, a comparison is an EXISTS with a triple
for each step, and `and` and `or` are those of SPARQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count
from urllib.parse import quote

import pyoxigraph as ox

from tidings.metadata.resources import Ref, Resource, Value
from tidings.metadata.rules.syntax import And, Comparison, Condition, Constant, Operator, Path, Rule
from tidings.metadata.schema.model import Schema
from tidings.values import Kind, Scalar

RDF, RDFS, XSD = (
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "http://www.w3.org/2000/01/rdf-schema#",
    "http://www.w3.org/2001/XMLSchema#",
)
_IS_A = f"<{RDF}type>/<{RDFS}subClassOf>*"


def sparql_results(
    rule: Rule, resources: Iterable[Resource], schema: Schema, rules: Mapping[str, Rule] | None = None
) -> set[str]:
    """Return the URIs of the resources that a rule registers."""
    listed = list(resources)
    uris = {_iri("r", each.uri): each.uri for each in listed}
    solutions = store_of(listed, schema).query(query_of(rule, schema, rules or {}))
    assert isinstance(solutions, ox.QuerySolutions)
    return {uris[solution[0].value] for solution in solutions}


def store_of(resources: Iterable[Resource], schema: Schema) -> ox.Store:
    """Store resources and classes as triples."""
    store = ox.Store()
    node, type_, below = ox.NamedNode, ox.NamedNode(RDF + "type"), ox.NamedNode(RDFS + "subClassOf")
    for cls in schema.classes.values():
        for parent in cls.parents:
            store.add(ox.Quad(node(_iri("c", cls.name)), below, node(_iri("c", parent))))
    for each in resources:
        subject = node(_iri("r", each.uri))
        store.add(ox.Quad(subject, type_, node(_iri("c", each.cls))))
        for name, values in each.values.items():
            property = schema.property_of(each.cls, name)
            assert property is not None
            for value in values:
                store.add(ox.Quad(subject, node(_iri("p", name)), _term(value, property.kind)))
    return store


def _iri(kind: str, name: str) -> str:
    return f"urn:{kind}:{quote(name, safe='')}"


def _term(value: Value, kind: Kind | None) -> ox.NamedNode | ox.Literal:
    if isinstance(value, Ref):
        return ox.NamedNode(_iri("r", value.uri))
    return ox.Literal(_lexical(value), datatype=ox.NamedNode(XSD + _datatype(value, kind)))


def _lexical(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _datatype(value: Scalar, kind: Kind | None) -> str:
    if kind is Kind.INSTANT:
        return "dateTime"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    return "integer" if isinstance(value, int) else "decimal"


def query_of(rule: Rule, schema: Schema, rules: Mapping[str, Rule]) -> str:
    """Write the query of a rule."""
    return _Query(schema, rules, count()).select(rule)


class _Query:
    """Writer of queries, which numbers variables so that those of nested rules differ."""

    def __init__(self, schema: Schema, rules: Mapping[str, Rule], numbers: Iterable[int]) -> None:
        self.schema, self.rules = schema, rules
        self.numbers = iter(numbers)

    def new(self) -> str:
        return f"?v{next(self.numbers)}"

    def select(self, rule: Rule, register: str | None = None) -> str:
        named = {each.variable: self.new() for each in rule.searched}
        if register:
            named[rule.register] = register
        classes = {each.variable: self.type_of(each.extension) for each in rule.searched}
        body = " ".join(self.extension(named[each.variable], each.extension) for each in rule.searched)
        if rule.where is not None:
            body += f" FILTER({self.condition(rule.where, named, classes)})"
        return f"SELECT DISTINCT {named[rule.register]} WHERE {{ {body} }}"

    def type_of(self, extension: str) -> str:
        if extension in self.schema.classes:
            return extension
        rule = self.rules[extension]
        return self.type_of(next(e.extension for e in rule.searched if e.variable == rule.register))

    def extension(self, variable: str, extension: str) -> str:
        if extension in self.schema.classes:
            return f"{variable} {_IS_A} <{_iri('c', extension)}> ."
        return f"{{ {self.select(self.rules[extension], variable)} }}"

    def condition(self, condition: Condition, named: Mapping[str, str], classes: Mapping[str, str]) -> str:
        if isinstance(condition, Comparison):
            return self.comparison(condition, named, classes)
        word = " && " if isinstance(condition, And) else " || "
        return word.join(f"({self.condition(part, named, classes)})" for part in condition.parts)

    def comparison(self, comparison: Comparison, named: Mapping[str, str], classes: Mapping[str, str]) -> str:
        assert isinstance(comparison.left, Path)
        triples, left, kind = self.path(comparison.left, named, classes)
        if isinstance(comparison.right, Path):
            more, right, _ = self.path(comparison.right, named, classes)
            triples += more
        else:
            right = _constant(comparison.right, kind)
        operator = comparison.operator
        test = (
            f"CONTAINS({left}, {right})"
            if operator is Operator.CONTAINS
            else f"{left} {operator.value} {right}"
        )
        return f"EXISTS {{ {triples} FILTER({test}) }}" if triples else test

    def path(
        self, path: Path, named: Mapping[str, str], classes: Mapping[str, str]
    ) -> tuple[str, str, Kind | None]:
        """Return the triples of a path, the variable at its end and the kind of its values."""
        at, cls, kind, triples = named[path.variable], classes[path.variable], None, ""
        for number, step in enumerate(path.steps):
            if number:
                triples += f"{at} {_IS_A} <{_iri('c', cls)}> . "
            property = self.schema.property_of(cls, step.property)
            assert property is not None
            following = self.new()
            triples += f"{at} <{_iri('p', step.property)}> {following} . "
            at, cls, kind = following, property.leads_to or "", property.kind
        return triples, at, kind


def _constant(constant: Constant, kind: Kind | None) -> str:
    if kind is None:
        return f"<{_iri('r', str(constant.value))}>"
    text = str(constant.value)
    if kind is Kind.INSTANT and "T" not in text:
        text += "T00:00:00Z"
    elif not isinstance(constant.value, str):
        text = _lexical(constant.value)
    return str(ox.Literal(text, datatype=ox.NamedNode(XSD + _datatype(constant.value, kind))))
