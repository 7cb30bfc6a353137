"""What is different between two versions of a document (section 3.5 of paper 001).

    before                     after
    doc.rdf#host               doc.rdf#host               unchanged
    doc.rdf#info  memory 92    doc.rdf#info  memory 32    changed: memory
                               doc.rdf#disk               new

A document that was not there, and one that is deleted, is one without resources.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tidings.metadata.resources import Resource

CLASS = "rdf#type"
"""Stands among the changed properties if the class is another one."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A resource in two versions, and the properties that were changed, added or removed."""

    before: Resource
    after: Resource
    properties: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Changes:
    """Each resource of two versions of a document stands in one of these."""

    new: tuple[Resource, ...] = ()
    changed: tuple[Changed, ...] = ()
    deleted: tuple[Resource, ...] = ()
    unchanged: tuple[Resource, ...] = ()


def compare(before: Iterable[Resource], after: Iterable[Resource]) -> Changes:
    """What became of each resource, in the order of the versions."""
    old, new = ({each.uri: each for each in version} for version in (before, after))
    both = [(old[uri], each) for uri, each in new.items() if uri in old]
    return Changes(
        new=tuple(each for uri, each in new.items() if uri not in old),
        changed=tuple(Changed(one, other, _different(one, other)) for one, other in both if one != other),
        deleted=tuple(each for uri, each in old.items() if uri not in new),
        unchanged=tuple(other for one, other in both if one == other),
    )


def _different(before: Resource, after: Resource) -> tuple[str, ...]:
    """Values are in a fixed order, so that two sets of them are equal if their tuples are."""
    names = dict.fromkeys((*after.values, *before.values))
    values = [name for name in names if before.values.get(name) != after.values.get(name)]
    return (*([CLASS] if before.cls != after.cls else []), *values)
