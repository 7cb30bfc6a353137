"""Whether a resource that somebody else tells of is one that the schema allows."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tidings.errors import InputError
from tidings.metadata.resources import Ref, Resource, Value
from tidings.metadata.schema import Property, Schema
from tidings.values import Kind, kind_of


def check_fits(resource: Resource, schema: Schema) -> None:
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
