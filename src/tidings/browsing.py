"""Looking around at a provider: classes with their counts, their resources, and references in both directions.

browser = Browser(store)
browser.classes()                                           a tree, with counts
browser.instances("CycleProvider")                          a page of resources
browser.resource("http://example.org/doc.rdf#host")         values, references out and in
browser.pick("http://example.org/doc.rdf#host").text        the rule that caches it
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tidings.errors import Absent, InputError
from tidings.languages.rules_refusals import near
from tidings.metadata.dates import dated
from tidings.metadata.picking import name_for, rule_for
from tidings.metadata.resources import Ref, Resource
from tidings.metadata.schema import Reference, Schema
from tidings.provider import Provider
from tidings.store import Store
from tidings.store.metadata_browsing import Instance, Mark, Referrer, Seen
from tidings.values import Scalar, show

PAGE, LARGEST_PAGE = 50, 1_000
"""How many resources are on a page, when nothing is said and at most."""

_NEIGHBOURS = 1_000
"""Among so many resources of a document, one is looked for that somebody may have meant."""


_IN_URIS = re.compile(r"[:/#]")


@dataclass(frozen=True, slots=True)
class ClassSeen:
    """A class: how many resources it has itself, and with those of the classes below it."""

    name: str
    parents: tuple[str, ...]
    own: int
    all: int


@dataclass(frozen=True, slots=True)
class Instances:
    """A page of the resources of a class; `more` is where the next page begins, if there is one."""

    of: ClassSeen
    found: tuple[Instance, ...]
    more: str | None


@dataclass(frozen=True, slots=True)
class Link:
    """A reference, to or from another resource.

    `cls` is the class of the other one, if that is there. A reference leads nowhere if it is not, or if it is of
    another class than the schema says.
    """

    property: str
    uri: str
    cls: str | None
    reference: Reference
    leads: bool


@dataclass(frozen=True, slots=True)
class ResourceSeen:
    """A resource, what it refers to, and a page of who refers to it; `more` is where the next page begins."""

    resource: Resource
    document: str
    references: tuple[Link, ...]
    referrers: tuple[Link, ...]
    more: str | None


@dataclass(frozen=True, slots=True)
class Picked:
    """The rule for what somebody picked, and a name for it."""

    name: str
    text: str


class Browser:
    """Looks around in the metadata of a store."""

    def __init__(self, store: Store) -> None:
        self._stored, self._provider = store.metadata_browsing, Provider(store)

    def classes(self) -> tuple[ClassSeen, ...]:
        """All classes, in the order of the schema."""
        schema, counts = self._provider.schema, self._stored.counts()
        return tuple(_class_seen(schema, name, counts) for name in schema.classes)

    def instances(self, cls: str, after: str = "", limit: int = PAGE) -> Instances:
        """The resources of a class and of those below it, in the order of their URIs."""
        _check_limit(limit)
        schema = self._provider.schema
        if cls not in schema.classes:
            raise _no_class(cls, schema)
        found = self._stored.instances(schema.at_or_below(cls), after, limit + 1)
        more = found[limit - 1].uri if len(found) > limit else None
        return Instances(_class_seen(schema, cls, self._stored.counts()), found[:limit], more)

    def resource(self, uri: str, after: str = "", limit: int = PAGE) -> ResourceSeen:
        """A resource with its references, and a page of those that refer to it."""
        _check_limit(limit)
        schema = self._provider.schema
        seen = self._stored.resource(uri, _references(schema), _mark(after), limit + 1)
        if seen is None:
            raise self._no_resource(uri, schema)
        cls, referrers = seen.placed.resource.cls, seen.referrers[:limit]
        links = tuple(_from(schema, each, cls) for each in referrers)
        last = links[-1] if len(seen.referrers) > limit else None
        more = f"{last.property} {last.uri}" if last else None
        shown = dated(seen.placed.resource, schema)
        return ResourceSeen(shown, seen.placed.document, tuple(_to(schema, seen)), links, more)

    def is_class(self, what: str) -> bool:
        """Whether a word that may be either is the name of a class, or meant to be one."""
        classes = self._provider.schema.classes
        return what in classes or not _IN_URIS.search(what) or near(what, classes) is not None

    def pick(self, what: str) -> Picked:
        """The rule that registers all resources of a class, or the one resource with a URI."""
        if self.is_class(what):
            cls = self.instances(what, limit=1).of.name
            return Picked(name_for(cls), rule_for(cls))
        resource = self.resource(what, limit=1).resource
        return Picked(name_for(resource.cls, what), rule_for(resource.cls, what))

    def _no_resource(self, uri: str, schema: Schema) -> Absent:
        hint = near(uri, self._stored.neighbours(uri.partition("#")[0], _NEIGHBOURS))
        for found in self._stored.referrers(uri, _references(schema), 1):
            hint = f"{found.uri} refers to it ({found.property}), but no document that describes it is registered"
        return Absent("there is no such resource", received=uri, hint=hint)


def tree(classes: tuple[ClassSeen, ...]) -> Iterator[tuple[int, ClassSeen]]:
    """Classes below each other with their depths.

    One that has several parents stands below each of them, but what is below it only the first time: each further
    diamond would double what is shown.
    """
    below: dict[str, list[ClassSeen]] = {each.name: [] for each in classes}
    for each in classes:
        for parent in each.parents:
            below[parent].append(each)
    waiting = [(0, each) for each in reversed(classes) if not each.parents]
    while waiting:
        depth, cls = waiting.pop()
        yield depth, cls
        waiting += ((depth + 1, each) for each in reversed(below.pop(cls.name, [])))


def shown(value: Scalar) -> str:
    """A value as people read it: a text as it is."""
    return value if isinstance(value, str) else show(value)


def _class_seen(schema: Schema, name: str, counts: dict[str, int]) -> ClassSeen:
    everything = sum(counts.get(each, 0) for each in schema.at_or_below(name))
    return ClassSeen(name, schema.classes[name].parents, counts.get(name, 0), everything)


def _references(schema: Schema) -> set[str]:
    """The properties that are references for some class."""
    return {name for name, found in schema.properties.items() if any(each.leads_to for each in found)}


def _to(schema: Schema, seen: Seen) -> Iterator[Link]:
    resource = seen.placed.resource
    for name, values in resource.values.items():
        for value in values:
            if isinstance(value, Ref):
                cls = seen.classes.get(value.uri)
                yield _link(schema, name, resource.cls, value.uri, cls, cls)


def _from(schema: Schema, referrer: Referrer, cls: str) -> Link:
    return _link(schema, referrer.property, referrer.cls, referrer.uri, referrer.cls, cls)


def _link(schema: Schema, name: str, source: str, other: str, cls: str | None, target: str | None) -> Link:
    """A reference by a property of a resource of class `source` to one of class `target`."""
    declared = schema.property_of(source, name)
    reference = (declared and declared.reference) or Reference.WEAK
    leads = bool(declared and target and declared.leads_to in schema.at_or_above(target))
    return Link(name, other, cls, reference, leads)


def _no_class(name: str, schema: Schema) -> Absent:
    accepted = ", ".join(schema.classes) if len(schema.classes) <= 10 else "a class of the schema"
    return Absent(f"there is no class '{name}'", accepted=accepted, hint=near(name, schema.classes))


def _mark(after: str) -> Mark:
    property, space, uri = after.partition(" ")
    if after and not space:
        accepted = "what the page before said comes next: a property, a space, and a URI"
        raise InputError("no place where a page begins", where="after", received=after, accepted=accepted)
    return Mark(property, uri)


def _check_limit(limit: int) -> None:
    if not 1 <= limit <= LARGEST_PAGE:
        raise InputError(
            "no size for a page", where="limit", received=str(limit), accepted=f"1 to {LARGEST_PAGE:,}"
        )
