"""Resources as JSON, and back: how they travel from a provider to repositories and snapshots.

    {"uri": "http://example.org/doc.rdf#host", "class": "CycleProvider", "document": "http://example.org/doc.rdf",
     "values": {"serverPort": [5874], "serverInformation": [{"ref": "http://example.org/doc.rdf#info"}]}}

Instants are texts, as they are in resources.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidings.errors import InputError
from tidings.metadata.resources import Ref, Resource, Value


def to_json(resource: Resource) -> dict[str, Any]:
    """A resource as what `json.dumps` takes."""
    values = {name: [value_to_json(value) for value in each] for name, each in resource.values.items()}
    document = document_of(resource.uri)
    return {"uri": resource.uri, "class": resource.cls, "document": document, "values": values}


def from_json(record: Mapping[str, Any]) -> Resource:
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


def natural(given: object) -> int:
    """A position or a count. 1e999 is JSON, too, and no database keeps 10 to the 30th: those are none."""
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given < 2**63:
        raise ValueError(f"{str(given)[:40]} is no number of something")
    return given


def text(given: object) -> str:
    """A text that a database keeps."""
    if not isinstance(given, str) or "\x00" in given:
        raise ValueError(f"{repr(given)[:40]} is no text")
    given.encode()  # half a surrogate pair is a UnicodeError, which is a ValueError
    return given


def document_of(uri: str) -> str:
    """The URI of the document that a resource is of: its own resources are all that a document describes."""
    return uri.partition("#")[0]
