"""Examples of each subscription language, one click away: each is taken as it is where the schema knows its names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Example:
    """A text, and what it asks for."""

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
            Example("price < 200", "a value that is compared"),
            Example(
                "furniture_category is a 'dining room' and price < 200",
                "a place in a hierarchy, and a value: both",
            ),
            Example(
                "period in ('XVI', 'XVII') or quantity between 5 and 10", "one of several values, or a range"
            ),
            Example(
                "exists period and not furniture_category = 'table'", "what is there, and what is not so"
            ),
            Example("event_type = 'antiques' and price >= 1000", "events of a type"),
        ),
    ),
    Language(
        "xpath",
        "XPath",
        "documents: XML",
        (
            Example('//stock[symbol = "YHOO" and price > 50]', "an element anywhere, by what is in it"),
            Example("/quotes/stock/@exchange", "a path from the top, to an attribute"),
            Example(
                '//stock[contains(name, "Motor") or not(dividend)]', "a part of a text, or what is missing"
            ),
            Example('//ref[sector = "tech"]', "what a reference table adds"),
        ),
    ),
    Language(
        "gql",
        "GQL",
        "graphs: RDF",
        (
            Example(
                "PREFIX dc: <http://purl.org/dc/elements/1.1/>\n"
                "SELECT ?page WHERE (?page, dc:date, ?d) AND ?d >= 2004",
                "an edge, and a condition on its end",
            ),
            Example(
                "PREFIX dc: <http://purl.org/dc/elements/1.1/>\nPREFIX ex: <http://example.org/>\n"
                "SELECT ?page WHERE (?page, dc:subject, ?s) AND ?s <= ex:Academia",
                "a class of a taxonomy, and all below it",
            ),
            Example(
                "PREFIX dc: <http://purl.org/dc/elements/1.1/>\n"
                'SELECT ?page WHERE { ?page dc:title ?t . FILTER(CONTAINS(?t, "Spark")) }',
                "the same as a pattern of SPARQL",
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
                "by what they refer to",
            ),
            Example(
                "search CycleProvider c register c where c.serverHost contains 'uni-passau.de' and c.serverPort = 5874",
                "by several properties",
            ),
        ),
    ),
)
"""In the order in which they are offered."""

NAMES = tuple(language.name for language in LANGUAGES)
