"""Strong references: what goes wherever a resource goes (section 2.4 of paper 001).

#host ══strong══▶ #info ──weak──▶ #owner          the closure of #host: #host, #info
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tidings.metadata.resources import Ref, Resource
from tidings.metadata.schema import Reference, Schema


def strong_references(resource: Resource, schema: Schema) -> Iterator[tuple[str, str]]:
    """The URIs that a resource refers to strongly, each with the class that has to be there."""
    for name, values in resource.values.items():
        declared = schema.property_of(resource.cls, name)
        if declared is None or declared.leads_to is None or declared.reference is not Reference.STRONG:
            continue
        for value in values:
            if isinstance(value, Ref):
                yield value.uri, declared.leads_to


def closure(roots: Iterable[str], resources: Mapping[str, Resource], schema: Schema) -> set[str]:
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
