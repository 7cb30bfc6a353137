"""Differences between two versions of a document (section 3.5 of paper 001), and explanations of changed results.

    before                     after
    doc.rdf#host               doc.rdf#host               unchanged
    doc.rdf#info  memory 92    doc.rdf#info  memory 32    changed: memory
                               doc.rdf#disk               new

A new document has a version without resources before it, a deleted one after it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice

from tidings.metadata.filter.explanation import MAX_REASONS, display_value, to_scalar
from tidings.metadata.resources import Resource
from tidings.metadata.rules.syntax import format_name
from tidings.model import Reason

TYPE_PROPERTY = "rdf#type"
"""The name of a changed class among changed properties."""


@dataclass(frozen=True, slots=True)
class ChangedResource:
    """A resource in two versions, and the properties that were changed, added or removed."""

    before: Resource
    after: Resource
    properties: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DocumentChanges:
    """The resources of two versions of a document, each in one of four groups."""

    new: tuple[Resource, ...] = ()
    changed: tuple[ChangedResource, ...] = ()
    deleted: tuple[Resource, ...] = ()
    unchanged: tuple[Resource, ...] = ()


def compare_versions(before: Iterable[Resource], after: Iterable[Resource]) -> DocumentChanges:
    """Compare two versions, in the order of their resources."""
    old, new = ({resource.uri: resource for resource in version} for version in (before, after))
    in_both = [(old[uri], resource) for uri, resource in new.items() if uri in old]
    return DocumentChanges(
        new=tuple(resource for uri, resource in new.items() if uri not in old),
        changed=tuple(
            ChangedResource(before_version, after_version, _changed_properties(before_version, after_version))
            for before_version, after_version in in_both
            if before_version != after_version
        ),
        deleted=tuple(resource for uri, resource in old.items() if uri not in new),
        unchanged=tuple(
            after_version for before_version, after_version in in_both if before_version == after_version
        ),
    )


def _changed_properties(old: Resource, new: Resource) -> tuple[str, ...]:
    """Return the properties with different values. Values are sorted, so tuples can be compared."""
    names = dict.fromkeys((*new.values, *old.values))
    values = [name for name in names if old.values.get(name) != new.values.get(name)]
    return (*([TYPE_PROPERTY] if old.cls != new.cls else []), *values)


# Reasons why a result of a rule changed: differences in it or in its strong closure, with the path to them.
#
#     changed     serverInformation.memory 128 was 92         at doc.rdf#info


MAX_VISITED = 300
"""Maximum number of resources searched for one notification; a change further away is not located."""

StrongReferences = Mapping[str, Iterable[tuple[str, str]]]
"""The strong references of resources by URI: properties and targets."""


@dataclass(slots=True)
class TouchedResources:
    """New, changed and deleted resources by URI."""

    new: dict[str, Resource] = field(default_factory=dict)
    changed: dict[str, ChangedResource] = field(default_factory=dict)
    deleted: dict[str, Resource] = field(default_factory=dict)

    @classmethod
    def of(cls, changes: Iterable[DocumentChanges]) -> TouchedResources:
        touched = cls()
        for change in changes:
            touched.new |= {resource.uri: resource for resource in change.new}
            touched.changed |= {changed.after.uri: changed for changed in change.changed}
            touched.deleted |= {resource.uri: resource for resource in change.deleted}
        return touched

    def class_before(self, uri: str) -> str | None:
        """Return the class that a changed or deleted resource had before."""
        previous = self.changed[uri].before if uri in self.changed else self.deleted.get(uri)
        return previous.cls if previous else None

    def reasons(self, uri: str, path: str) -> Iterator[Reason]:
        """Yield the reasons for a change of a resource at the end of a path."""
        if uri in self.changed:
            yield from _differences(self.changed[uri], path)
        elif uri in self.new:
            yield Reason(f"{path[:-1]} is new", None, uri)
        elif uri in self.deleted:
            yield Reason(f"{path[:-1]} was removed", None, uri)


def explain_change(uri: str, touched: TouchedResources, strong: StrongReferences) -> list[Reason]:
    """Return the reasons for a change, the nearest first."""
    reasons = list(islice(chain.from_iterable(_reasons(uri, touched, strong)), MAX_REASONS))
    return reasons or [Reason("the resource, or one that it refers to, has changed", None, uri)]


def _reasons(uri: str, touched: TouchedResources, strong: StrongReferences) -> Iterator[Iterator[Reason]]:
    visited, queue = {uri}, deque([(uri, "")])
    while queue and len(visited) <= MAX_VISITED:
        current, path = queue.popleft()
        yield touched.reasons(current, path)
        for name, target in strong.get(current, ()):
            if target not in visited:
                visited.add(target)
                queue.append((target, f"{path}{format_name(name)}."))


def _differences(changed: ChangedResource, path: str) -> Iterator[Reason]:
    previous, current, uri = changed.before, changed.after, changed.after.uri
    for name in changed.properties:
        if name == TYPE_PROPERTY:
            yield Reason(f"{path}class was {format_name(previous.cls)}", current.cls, uri)
            continue
        old, new = previous.values.get(name, ()), current.values.get(name, ())
        removed, added = [each for each in old if each not in new], [each for each in new if each not in old]
        label = f"{path}{format_name(name)}"
        if len(old) == len(new) == 1:
            yield Reason(f"{label} was {display_value(removed[0])}", to_scalar(added[0]), uri)
            continue
        yield from (Reason(f"{label} is new", to_scalar(value), uri) for value in added)
        yield from (Reason(f"{label} is no longer set", to_scalar(value), uri) for value in removed)
