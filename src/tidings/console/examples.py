"""Examples of each subscription language that are valid in this home.

Where the schema knows none of their names, examples are generated from its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice

from tidings.errors import InputError, SetupError
from tidings.events.schema.domains import Domain, DomainKind
from tidings.events.schema.event_schema import EventSchema
from tidings.metadata.schema.model import Schema
from tidings.service.subscriptions import SubscriptionCheck
from tidings.values import Kind, show

MOST = 5
"""Examples shown for each language."""


@dataclass(frozen=True, slots=True)
class Example:
    """A text, and a description of it."""

    text: str
    asks: str


@dataclass(frozen=True, slots=True)
class Language:
    """A subscription language, what it is about, and examples."""

    name: str
    title: str
    about: str
    examples: tuple[Example, ...]


LANGUAGES = (
    Language(
        "predicates",
        "Predicates",
        "events: JSON objects",
        (
            Example("price < 200", "compare a value"),
            Example(
                "furniture_category is a 'dining room' and price < 200",
                "a category of a hierarchy, and a value",
            ),
            Example(
                "period in ('XVI', 'XVII') or quantity between 5 and 10", "one of several values, or a range"
            ),
            Example(
                "exists period and not furniture_category = 'table'",
                "an attribute that exists, and another value",
            ),
            Example("event_type = 'antiques' and price >= 1000", "events of a type"),
        ),
    ),
    Language(
        "xpath",
        "XPath",
        "documents: XML",
        (
            Example('//stock[symbol = "YHOO" and price > 50]', "an element anywhere, by its content"),
            Example("/quotes/stock/@exchange", "a path from the root to an attribute"),
            Example(
                '//stock[contains(name, "Motor") or not(dividend)]', "part of a text, or a missing element"
            ),
            Example('//ref[sector = "tech"]', "a field that a reference table adds"),
        ),
    ),
    Language(
        "gql",
        "GQL",
        "graphs: RDF",
        (
            Example(
                "SELECT ?item WHERE (?item, dc:date, ?date) AND ?date >= 2024-01-01",
                "items of feeds by date: an edge, and a condition on its end",
            ),
            Example(
                'SELECT ?item ?title WHERE (?item, dc:subject, "clocks") (?item, rss:title, ?title)',
                "items of feeds by category, with their titles",
            ),
            Example(
                'SELECT ?item WHERE { ?item rss:title ?title . FILTER(CONTAINS(?title, "Spark")) }',
                "items of feeds by a part of their title, as a pattern of SPARQL",
            ),
            Example(
                "PREFIX ex: <http://example.org/>\n"
                "SELECT ?page WHERE (?page, dc:subject, ?s) AND ?s <= ex:Academia",
                "graphs by a class of a taxonomy and its subclasses",
            ),
        ),
    ),
    Language(
        "rules",
        "Rules",
        "resources: metadata",
        (
            Example("search CycleProvider c register c", "all resources of a class"),
            Example(
                "search CycleProvider c register c where c.serverInformation.memory > 64",
                "by a property of a referenced resource",
            ),
            Example(
                "search CycleProvider c register c where c.serverHost contains 'uni-passau.de' and c.serverPort = 5874",
                "by several properties",
            ),
        ),
    ),
)
"""The languages in the order of the form."""

NAMES = tuple(language.name for language in LANGUAGES)

Check = Callable[[str, str], SubscriptionCheck]
"""Compiles a text of a language, or raises."""


def list_languages(check: Check, events: EventSchema, metadata: Schema | None) -> tuple[Language, ...]:
    """Return the languages with the examples that are valid now."""
    made = {
        "predicates": generate_event_examples(events),
        "rules": generate_metadata_examples(metadata) if metadata else iter(()),
    }
    return tuple(_taken(check, one, made.get(one.name, iter(()))) for one in LANGUAGES)


def _taken(check: Check, language: Language, made: Iterator[Example]) -> Language:
    """Keep the valid examples; if fewer than two are, add generated ones, one for each description."""
    found = {one.asks: one for one in language.examples if _is_taken(check, language.name, one)}
    for one in made if len(found) < 2 else ():
        if one.asks not in found and _is_taken(check, language.name, one):
            found[one.asks] = one
    return replace(language, examples=tuple(islice(found.values(), MOST)))


def _is_taken(check: Check, language: str, one: Example) -> bool:
    """Return whether a text compiles without a warning: an example that cannot match is useless."""
    try:
        return not check(language, one.text).warnings
    except (InputError, SetupError):
        return False


def generate_event_examples(schema: EventSchema) -> Iterator[Example]:
    """Yield one example for each kind of domain, then two of them combined."""
    found: dict[DomainKind, Example] = {}
    for attribute in schema.attributes.values():
        domain = schema.domain(attribute.domain)
        if domain is not None and domain.kind not in found and (text := _about(attribute.name, domain)):
            found[domain.kind] = Example(text, _ASKS[domain.kind])
    yield from found.values()
    if len(found) > 1:
        yield Example(" and ".join(one.text for one in islice(found.values(), 2)), "both")


_ASKS = {
    DomainKind.NUMERIC: "compare a value",
    DomainKind.STRING: "part of a text",
    DomainKind.BOOLEAN: "a flag that is set",
    DomainKind.INSTANT: "at or after a time",
    DomainKind.ENUMERATED: "one of several values",
    DomainKind.HIERARCHICAL: "a category of a hierarchy and all below it",
}


def _about(name: str, domain: Domain) -> str | None:
    """Return a predicate about an attribute, or `None` if its domain has no values."""
    if domain.kind is DomainKind.NUMERIC:
        bounds = [bound for bound in (domain.maximum, domain.minimum) if bound is not None]
        return f"{name} <= {show(bounds[0]) if bounds else 100}"
    if domain.kind is DomainKind.ENUMERATED and domain.values:
        return f"{name} in ({', '.join(map(show, domain.values[:2]))})"
    if domain.kind is DomainKind.HIERARCHICAL:
        tops = [one for above in domain.below.values() for one in above]
        return f"{name} is a {show(tops[0])}" if tops else None
    asked = {
        DomainKind.STRING: "contains 'a'",
        DomainKind.BOOLEAN: "= true",
        DomainKind.INSTANT: ">= 2026-01-01T00:00:00Z",
    }
    return f"{name} {asked[domain.kind]}" if domain.kind in asked else None


def generate_metadata_examples(schema: Schema) -> Iterator[Example]:
    """Yield rules for all resources of a class, then for those with a property."""
    for name in schema.classes:
        yield Example(f"search {name} c register c", "all resources of a class")
    asked = {Kind.NUMBER: "> 64", Kind.STRING: "contains 'a'"}
    for each in chain.from_iterable(schema.properties.values()):
        if each.kind in asked:
            text = f"search {each.of} c register c where c.{each.name}{'?' if each.several else ''} {asked[each.kind]}"
            yield Example(text, "by a property")
