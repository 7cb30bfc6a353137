"""The example of the paper: cycle providers, and information about their servers."""

from __future__ import annotations

from tidings.metadata.resources import Ref, Resource
from tidings.metadata.rules.rule_parser import parse_rule
from tidings.metadata.rules.syntax import Rule
from tidings.metadata.rules.validation import check_rule
from tidings.metadata.schema.model import Class, Property, Reference, Schema
from tidings.values import Kind

_IRI = "http://example.org/servers#"


def _class(name: str, *parents: str) -> Class:
    return Class(name, _IRI + name, parents)


def _value(of: str, name: str, kind: Kind, several: bool = False) -> Property:
    return Property(name, _IRI + name, of, kind=kind, several=several)


def _reference(of: str, name: str, leads_to: str, several: bool = False) -> Property:
    return Property(name, _IRI + name, of, leads_to=leads_to, reference=Reference.STRONG, several=several)


def _schema(classes: list[Class], properties: list[Property]) -> Schema:
    by_name: dict[str, tuple[Property, ...]] = {}
    for each in properties:
        by_name[each.name] = (*by_name.get(each.name, ()), each)
    return Schema({each.name: each for each in classes}, by_name)


SCHEMA = _schema(
    [
        _class("Provider"),
        _class("CycleProvider", "Provider"),
        _class("DataProvider", "Provider"),
        _class("ServerInformation"),
    ],
    [
        _value("Provider", "serverHost", Kind.STRING),
        _value("Provider", "serverPort", Kind.NUMBER),
        _value("Provider", "since", Kind.INSTANT),
        _value("Provider", "open", Kind.BOOLEAN),
        _value("Provider", "tags", Kind.STRING, several=True),
        _reference("Provider", "serverInformation", "ServerInformation"),
        _reference("Provider", "partners", "Provider", several=True),
        _reference("Provider", "twin", "CycleProvider"),
        _value("CycleProvider", "synthValue", Kind.NUMBER),
        _value("DataProvider", "domain", Kind.STRING),
        _value("ServerInformation", "memory", Kind.NUMBER),
        _value("ServerInformation", "cpu", Kind.NUMBER),
        _reference("ServerInformation", "backup", "ServerInformation"),
    ],
)

FIGURE_1 = (
    Resource(
        "doc.rdf#host",
        "CycleProvider",
        {
            "serverHost": ("pirates.uni-passau.de",),
            "serverPort": (5874,),
            "serverInformation": (Ref("doc.rdf#info"),),
        },
    ),
    Resource("doc.rdf#info", "ServerInformation", {"memory": (92,), "cpu": (600,)}),
)


def rule(text: str, **types: str) -> Rule:
    """Parse and check a rule."""
    parsed = parse_rule(text)
    check_rule(parsed, SCHEMA, types, text)
    return parsed
