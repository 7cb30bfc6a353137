"""Resources: the classes and property values that metadata documents state, by URI reference."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tidings.errors import InputError
from tidings.metadata.schema.model import Property, Reference, Schema
from tidings.values import Kind, Scalar, kind_of

SUBJECT = "rdf#subject"
"""The property whose value is the resource itself: a rule may name a single resource (section 3.2 of paper 001)."""


class Ref(NamedTuple):
    """A reference to a resource, which need not exist."""

    uri: str


Value = Scalar | Ref


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource: its class, and its values by property in a fixed order without duplicates."""

    uri: str
    cls: str
    values: Mapping[str, tuple[Value, ...]]

    def atoms(self) -> Iterator[Atom]:
        """Yield the resource as rows of figure 4: first itself, then property by property."""
        yield Atom(self.uri, self.cls, SUBJECT, Ref(self.uri))
        for name, values in self.values.items():
            for value in values:
                yield Atom(self.uri, self.cls, name, value)


class Atom(NamedTuple):
    """A row of the paper's FilterData."""

    uri: str
    cls: str
    property: str
    value: Value


# The JSON form of resources, for repositories and snapshots:
#
#     {"uri": "http://example.org/doc.rdf#host", "class": "CycleProvider", "document": "http://example.org/doc.rdf",
#      "values": {"serverPort": [5874], "serverInformation": [{"ref": "http://example.org/doc.rdf#info"}]}}
#
# Instants are strings, as in `Resource`.


def resource_to_json(resource: Resource) -> dict[str, Any]:
    """Convert a resource to a JSON object."""
    values = {name: [value_to_json(value) for value in values] for name, values in resource.values.items()}
    document = document_uri_of(resource.uri)
    return {"uri": resource.uri, "class": resource.cls, "document": document, "values": values}


def resource_from_json(record: Mapping[str, Any]) -> Resource:
    """Parse the result of `resource_to_json`; raise InputError for anything else."""
    fields = record if isinstance(record, Mapping) else {}
    uri, cls, values = fields.get("uri"), fields.get("class"), fields.get("values")
    if not (isinstance(uri, str) and isinstance(cls, str) and isinstance(values, Mapping)):
        raise InputError("not a resource", received=repr(record)[:200], accepted="uri, class, values")
    return Resource(uri, cls, {name: _values_from_json(name, listed) for name, listed in values.items()})


def _values_from_json(name: str, values: object) -> tuple[Value, ...]:
    if not isinstance(values, list):
        raise InputError("the values of a property must be a list", where=name, received=repr(values)[:200])
    return tuple(map(value_from_json, values))


def value_to_json(value: Value) -> object:
    return {"ref": value.uri} if isinstance(value, Ref) else value


def value_from_json(value: object) -> Value:
    """Parse a value. References are objects; a string with a URI in it stays a string."""
    if isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Mapping) and value.keys() == {"ref"} and isinstance(value["ref"], str):
        return Ref(value["ref"])
    raise InputError("not a value", received=repr(value)[:200], accepted='a scalar, or {"ref": URI}')


def parse_natural(value: object) -> int:
    """Check a position or a count. JSON also allows 1e999 and 10**30, which no database can store."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise ValueError(f"{str(value)[:40]} is not a number between 0 and 2**63 - 1")
    return value


def parse_text(value: object) -> str:
    """Check that a database can store a string."""
    if not isinstance(value, str) or "\x00" in value:
        raise ValueError(f"{repr(value)[:40]} is not a text")
    value.encode()  # half a surrogate pair is a UnicodeError, which is a ValueError
    return value


def document_uri_of(uri: str) -> str:
    """Return the URI of the document that describes a resource."""
    return uri.partition("#")[0]


def check_conformance(resource: Resource, schema: Schema) -> None:
    """Raise InputError if a resource from another provider breaks the schema.

    The targets of references are not checked: that happened where the document was registered.
    """
    if resource.cls not in schema.classes:
        raise InputError("not a class of the schema", where=resource.uri, received=resource.cls)
    for name, values in resource.values.items():
        declared = schema.property_of(resource.cls, name)
        if declared is None or not _are_valid(values, declared):
            message = f"not valid for {name} of {resource.cls}"
            raise InputError(message, where=resource.uri, received=repr(values)[:200])


def _are_valid(values: Sequence[Value], declared: Property) -> bool:
    count = len(values)
    if not 1 <= count == len(set(values)) or (count > 1 and not declared.several):
        return False
    return all(_is_valid(value, declared) for value in values)


def _is_valid(value: Value, declared: Property) -> bool:
    if isinstance(value, Ref):
        return declared.leads_to is not None
    kind = Kind.STRING if declared.kind is Kind.INSTANT else declared.kind
    if kind is not kind_of(value):
        return False
    return isinstance(value, str) or abs(value) <= sys.float_info.max


# Strong references: a resource is always sent together with its strong closure (section 2.4 of paper 001).
#
#     #host ══strong══▶ #info ──weak──▶ #owner        the closure of #host is #host, #info


def strong_references(resource: Resource, schema: Schema) -> Iterator[tuple[str, str]]:
    """Yield the URIs that a resource refers to strongly, each with the class that the target must have."""
    for name, values in resource.values.items():
        declared = schema.property_of(resource.cls, name)
        if declared is None or declared.leads_to is None or declared.reference is not Reference.STRONG:
            continue
        for value in values:
            if isinstance(value, Ref):
                yield value.uri, declared.leads_to


def strong_closure(roots: Iterable[str], resources: Mapping[str, Resource], schema: Schema) -> set[str]:
    """Return the roots and everything that strong references reach from them within `resources`.

    References to missing resources, and to resources of another class, are ignored.
    """
    closure = {uri for uri in roots if uri in resources}
    pending = list(closure)
    while pending:
        for uri, cls in strong_references(resources[pending.pop()], schema):
            if uri not in closure and uri in resources and cls in schema.at_or_above(resources[uri].cls):
                closure.add(uri)
                pending.append(uri)
    return closure
