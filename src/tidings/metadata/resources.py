"""Resources: what a metadata document says of one thing, called by its URI reference."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tidings.errors import InputError
from tidings.metadata.schema.model import Property, Reference, Schema
from tidings.values import Kind, Scalar, kind_of

SUBJECT = "rdf#subject"
"""The property whose value is the resource itself: a rule may ask for a single resource (section 3.2 of paper 001)."""


class Ref(NamedTuple):
    """A reference to a resource, by its URI reference. Whether it is there is another question."""

    uri: str


Value = Scalar | Ref


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource: its class, and its values by property, each in a fixed order, none of them twice."""

    uri: str
    cls: str
    values: Mapping[str, tuple[Value, ...]]

    def atoms(self) -> Iterator[Atom]:
        """The resource as rows of figure 4: first itself, then property by property."""
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


# Resources as JSON, and back: how they travel from a provider to repositories and snapshots.
#
#     {"uri": "http://example.org/doc.rdf#host", "class": "CycleProvider", "document": "http://example.org/doc.rdf",
#      "values": {"serverPort": [5874], "serverInformation": [{"ref": "http://example.org/doc.rdf#info"}]}}
#
# Instants are texts, as they are in resources.


def resource_to_json(resource: Resource) -> dict[str, Any]:
    """A resource as what `json.dumps` takes."""
    values = {name: [value_to_json(value) for value in each] for name, each in resource.values.items()}
    document = document_uri_of(resource.uri)
    return {"uri": resource.uri, "class": resource.cls, "document": document, "values": values}


def resource_from_json(record: Mapping[str, Any]) -> Resource:
    """The resource of `to_json`. Anything else is refused."""
    fields = record if isinstance(record, Mapping) else {}
    uri, cls, values = fields.get("uri"), fields.get("class"), fields.get("values")
    if not (isinstance(uri, str) and isinstance(cls, str) and isinstance(values, Mapping)):
        raise InputError("this is no resource", received=repr(record)[:200], accepted="uri, class, values")
    return Resource(uri, cls, {name: _values(name, each) for name, each in values.items()})


def _values(name: str, given: object) -> tuple[Value, ...]:
    if not isinstance(given, list):
        raise InputError("the values of a property are a list", where=name, received=repr(given)[:200])
    return tuple(map(value_from_json, given))


def value_to_json(value: Value) -> object:
    return {"ref": value.uri} if isinstance(value, Ref) else value


def value_from_json(given: object) -> Value:
    """A reference is an object: a text with a URI in it is a text."""
    if isinstance(given, str | int | float | bool):
        return given
    if isinstance(given, Mapping) and given.keys() == {"ref"} and isinstance(given["ref"], str):
        return Ref(given["ref"])
    raise InputError("this is no value", received=repr(given)[:200], accepted='a scalar, or {"ref": URI}')


def parse_natural(given: object) -> int:
    """A position or a count. 1e999 is JSON, too, and no database keeps 10 to the 30th: those are none."""
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given < 2**63:
        raise ValueError(f"{str(given)[:40]} is no number of something")
    return given


def parse_text(given: object) -> str:
    """A text that a database keeps."""
    if not isinstance(given, str) or "\x00" in given:
        raise ValueError(f"{repr(given)[:40]} is no text")
    given.encode()  # half a surrogate pair is a UnicodeError, which is a ValueError
    return given


def document_uri_of(uri: str) -> str:
    """The URI of the document that a resource is of: its own resources are all that a document describes."""
    return uri.partition("#")[0]


# Whether a resource that somebody else tells of is one that the schema allows.


def check_conformance(resource: Resource, schema: Schema) -> None:
    """Refuse one that does not. What references lead to was checked where the document was registered."""
    if resource.cls not in schema.classes:
        raise InputError("not a class of the schema", where=resource.uri, received=resource.cls)
    for name, values in resource.values.items():
        declared = schema.property_of(resource.cls, name)
        if declared is None or not _fit(values, declared):
            what = f"not what {name} of {resource.cls} may be"
            raise InputError(what, where=resource.uri, received=repr(values)[:200])


def _fit(values: Sequence[Value], declared: Property) -> bool:
    count = len(values)
    if not 1 <= count == len(set(values)) or (count > 1 and not declared.several):
        return False
    return all(_fits(each, declared) for each in values)


def _fits(value: Value, declared: Property) -> bool:
    if isinstance(value, Ref):
        return declared.leads_to is not None
    kind = Kind.STRING if declared.kind is Kind.INSTANT else declared.kind
    if kind is not kind_of(value):
        return False
    return isinstance(value, str) or abs(value) <= sys.float_info.max


# Strong references: what goes wherever a resource goes (section 2.4 of paper 001).
#
# #host ══strong══▶ #info ──weak──▶ #owner the closure of #host: #host, #info


def strong_references(resource: Resource, schema: Schema) -> Iterator[tuple[str, str]]:
    """The URIs that a resource refers to strongly, each with the class that has to be there."""
    for name, values in resource.values.items():
        declared = schema.property_of(resource.cls, name)
        if declared is None or declared.leads_to is None or declared.reference is not Reference.STRONG:
            continue
        for value in values:
            if isinstance(value, Ref):
                yield value.uri, declared.leads_to


def strong_closure(roots: Iterable[str], resources: Mapping[str, Resource], schema: Schema) -> set[str]:
    """Which of the resources are roots, or are reached from them by strong references, however far.

    A reference to something that is not among them, or is of another class, leads nowhere.
    """
    found = {uri for uri in roots if uri in resources}
    waiting = list(found)
    while waiting:
        for uri, cls in strong_references(resources[waiting.pop()], schema):
            if uri not in found and uri in resources and cls in schema.at_or_above(resources[uri].cls):
                found.add(uri)
                waiting.append(uri)
    return found
