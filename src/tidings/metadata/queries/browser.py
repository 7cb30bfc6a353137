"""Browsing the metadata of a provider: classes with counts, their resources, and references in both directions.

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
from typing import Any

from tidings.errors import InputError, NotFound
from tidings.metadata.provider.provider import Provider
from tidings.metadata.queries.answers import restore_dates
from tidings.metadata.resources import Ref, Resource, document_uri_of, resource_to_json
from tidings.metadata.rules.normal_form import variable_initial
from tidings.metadata.rules.rule_errors import suggest_name
from tidings.metadata.rules.syntax import Comparison, Constant, Operator, Path, Rule, Variable, format_rule
from tidings.metadata.schema.model import Reference, Schema
from tidings.metadata.sql.metadata_reader import InstanceRow, ReferrerCursor, ReferrerRow, ResourceRecord
from tidings.store.store import Store
from tidings.values import Scalar, show

# Rules that cache a class or a resource selected while browsing (section 2.2 of paper 001):
#
#     search CycleProvider c register c
#     search CycleProvider c register c where c = <http://example.org/doc.rdf#host>


_NON_WORD = re.compile(r"[^\w.]+")
_MAX_NAME_LENGTH = 80


def suggest_rule(cls: str, uri: str | None = None) -> str:
    """Return the rule that registers all resources of a class, or one of them."""
    variable = variable_initial(cls)
    where = uri and Comparison(Path(variable), Operator.EQUAL, Constant(uri, is_resource=True))
    return format_rule(Rule((Variable(cls, variable),), variable, where or None))


def suggest_rule_name(cls: str, uri: str | None = None) -> str:
    """Return a name for that rule: `all-CycleProvider`, `doc.rdf-host`."""
    if uri is None:
        return f"all-{_words(cls)}"
    document, _, fragment = uri.partition("#")
    return (
        _words(f"{document.rstrip('/').rpartition('/')[2]} {fragment}")[-_MAX_NAME_LENGTH:].strip("-.")
        or "picked"
    )


def _words(text: str) -> str:
    return _NON_WORD.sub("-", text).strip("-.")


PAGE_SIZE, MAX_PAGE_SIZE = 50, 1_000
"""The default and the maximal number of resources on a page."""

_NEIGHBOURS = 1_000
"""Maximum number of resources of a document that are searched for a similar URI."""

_IN_URIS = re.compile(r"[:/#]")


@dataclass(frozen=True, slots=True)
class ClassSummary:
    """A class with the number of its own resources, and of all including those of subclasses."""

    name: str
    parents: tuple[str, ...]
    own: int
    all: int


@dataclass(frozen=True, slots=True)
class InstancePage:
    """A page of the resources of a class; `more` is the cursor of the next page."""

    of: ClassSummary
    instances: tuple[InstanceRow, ...]
    more: str | None


@dataclass(frozen=True, slots=True)
class Link:
    """A reference to or from another resource.

    `cls` is the class of the other resource, if it exists. `leads` is false if the target is missing, or of another
    class than the schema declares.
    """

    property: str
    uri: str
    cls: str | None
    reference: Reference
    leads: bool


@dataclass(frozen=True, slots=True)
class ResourceView:
    """A resource, its references, and a page of its referrers; `more` is the cursor of the next page."""

    resource: Resource
    document: str
    references: tuple[Link, ...]
    referrers: tuple[Link, ...]
    more: str | None


@dataclass(frozen=True, slots=True)
class SuggestedRule:
    """A rule for a selected class or resource, with a name."""

    name: str
    text: str


class Browser:
    """Browsing of the metadata of a store."""

    def __init__(self, store: Store) -> None:
        self._stored, self._provider = store.metadata_browsing, Provider(store)

    def classes(self) -> tuple[ClassSummary, ...]:
        """List all classes in the order of the schema."""
        schema, counts = self._provider.schema, self._stored.counts()
        return tuple(_summarize_class(schema, name, counts) for name in schema.classes)

    def instances(self, cls: str, after: str = "", limit: int = PAGE_SIZE) -> InstancePage:
        """Return a page of the resources of a class and its subclasses, ordered by URI."""
        _check_limit(limit)
        schema = self._provider.schema
        if cls not in schema.classes:
            raise _unknown_class(cls, schema)
        rows = self._stored.instances(schema.at_or_below(cls), after, limit + 1)
        next_uri = rows[limit - 1].uri if len(rows) > limit else None
        return InstancePage(_summarize_class(schema, cls, self._stored.counts()), rows[:limit], next_uri)

    def resource(self, uri: str, after: str = "", limit: int = PAGE_SIZE) -> ResourceView:
        """Return a resource with its references and a page of its referrers."""
        _check_limit(limit)
        schema = self._provider.schema
        seen = self._stored.resource(uri, _references(schema), _parse_cursor(after), limit + 1)
        if seen is None:
            raise self._no_resource(uri, schema)
        cls, referrers = seen.resource.cls, seen.referrers[:limit]
        links = tuple(_link_from(schema, each, cls) for each in referrers)
        last = links[-1] if len(seen.referrers) > limit else None
        next_cursor = f"{last.property} {last.uri}" if last else None
        shown = restore_dates(seen.resource, schema)
        return ResourceView(shown, document_uri_of(uri), tuple(_links_to(schema, seen)), links, next_cursor)

    def is_class(self, text: str) -> bool:
        """Whether a text is the name of a class, or a misspelled one, rather than a URI."""
        classes = self._provider.schema.classes
        return text in classes or not _IN_URIS.search(text) or suggest_name(text, classes) is not None

    def pick(self, text: str) -> SuggestedRule:
        """Suggest the rule that registers all resources of a class, or the resource with a URI."""
        if self.is_class(text):
            cls = self.instances(text, limit=1).of.name
            return SuggestedRule(suggest_rule_name(cls), suggest_rule(cls))
        resource = self.resource(text, limit=1).resource
        return SuggestedRule(suggest_rule_name(resource.cls, text), suggest_rule(resource.cls, text))

    def _no_resource(self, uri: str, schema: Schema) -> NotFound:
        hint = suggest_name(uri, self._stored.neighbours(uri.partition("#")[0], _NEIGHBOURS))
        for referrer in self._stored.referrers(uri, _references(schema), 1):
            hint = f"{referrer.uri} refers to it ({referrer.property}), but no document that describes it is registered"
        return NotFound("there is no such resource", received=uri, hint=hint)


def class_tree(classes: tuple[ClassSummary, ...]) -> Iterator[tuple[int, ClassSummary]]:
    """Yield classes as a tree with their depths.

    A class with several parents appears below each of them, but its subclasses only the first time: each diamond would
    double the output.
    """
    below: dict[str, list[ClassSummary]] = {summary.name: [] for summary in classes}
    for summary in classes:
        for parent in summary.parents:
            below[parent].append(summary)
    waiting = [(0, summary) for summary in reversed(classes) if not summary.parents]
    while waiting:
        depth, cls = waiting.pop()
        yield depth, cls
        waiting += ((depth + 1, summary) for summary in reversed(below.pop(cls.name, [])))


def display_value(value: Scalar) -> str:
    """Format a value for display; texts stay as they are."""
    return value if isinstance(value, str) else show(value)


def _summarize_class(schema: Schema, name: str, counts: dict[str, int]) -> ClassSummary:
    everything = sum(counts.get(each, 0) for each in schema.at_or_below(name))
    return ClassSummary(name, schema.classes[name].parents, counts.get(name, 0), everything)


def _references(schema: Schema) -> set[str]:
    """Return the properties that are references of some class."""
    return {name for name, found in schema.properties.items() if any(each.leads_to for each in found)}


def _links_to(schema: Schema, seen: ResourceRecord) -> Iterator[Link]:
    resource = seen.resource
    for name, values in resource.values.items():
        for value in values:
            if isinstance(value, Ref):
                cls = seen.classes.get(value.uri)
                yield _link(schema, name, resource.cls, value.uri, cls, cls)


def _link_from(schema: Schema, referrer: ReferrerRow, cls: str) -> Link:
    return _link(schema, referrer.property, referrer.cls, referrer.uri, referrer.cls, cls)


def _link(schema: Schema, name: str, source: str, other: str, cls: str | None, target: str | None) -> Link:
    """Build a link for a reference from a resource of class `source` to one of class `target`."""
    declared = schema.property_of(source, name)
    reference = (declared and declared.reference) or Reference.WEAK
    leads = bool(declared and target and declared.leads_to in schema.at_or_above(target))
    return Link(name, other, cls, reference, leads)


def _unknown_class(name: str, schema: Schema) -> NotFound:
    accepted = ", ".join(schema.classes) if len(schema.classes) <= 10 else "a class of the schema"
    return NotFound(f"there is no class '{name}'", accepted=accepted, hint=suggest_name(name, schema.classes))


def _parse_cursor(after: str) -> ReferrerCursor:
    property, space, uri = after.partition(" ")
    if after and not space:
        accepted = "the cursor of the previous page: a property, a space, and a URI"
        raise InputError("not a cursor of a page", where="after", received=after, accepted=accepted)
    return ReferrerCursor(property, uri)


def _check_limit(limit: int) -> None:
    if not 1 <= limit <= MAX_PAGE_SIZE:
        accepted = f"1 to {MAX_PAGE_SIZE:,}"
        raise InputError("invalid page size", where="limit", received=str(limit), accepted=accepted)


def class_to_json(cls: ClassSummary) -> dict[str, Any]:
    return {"class": cls.name, "parents": list(cls.parents), "resources": cls.all, "own": cls.own}


def instances_to_json(page: InstancePage) -> dict[str, Any]:
    instances = [{"uri": instance.uri, "class": instance.cls} for instance in page.instances]
    return class_to_json(page.of) | {"instances": instances, "next": page.more}


def view_to_json(seen: ResourceView) -> dict[str, Any]:
    return {
        **resource_to_json(seen.resource),
        "references": [_link_to_json(each) for each in seen.references],
        "referrers": [_link_to_json(each) for each in seen.referrers],
        "next": seen.more,
    }


def _link_to_json(link: Link) -> dict[str, Any]:
    reference = {"class": link.cls, "reference": link.reference.value, "leads": link.leads}
    return {"property": link.property, "uri": link.uri, **reference}
