"""Samples of the predicate language: a guide with examples for people, and a rehearsal for compiled code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice

from tidings.events.schema.domains import Domain, DomainKind
from tidings.events.schema.event_schema import EventSchema
from tidings.kinds import JSON, Example, LanguageGuide, Rehearsal
from tidings.values import show

_NAME = r"(?:\"[^\"]+\"|[^\W\d][\w.:-]*)"
_WORDS = r"(?:is\s+an?|contains|starts\s+with|ends\s+with|in|between)\b"

PREDICATES = LanguageGuide(
    "predicates",
    "Predicates",
    "events: JSON objects",
    examples=(
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
    noun="predicates",
    begins=rf"[\s(]*(?:not\b[\s(]*)*(?:{_NAME}(?:\s*[=<>!]|\s+{_WORDS})|exists\s+{_NAME}\s*(?:$|and\b|or\b))",
)

REHEARSAL = Rehearsal(
    "predicates",
    (
        "price < 100 and quantity >= 2",
        "price > 400 and material = 'oak' and quantity = 1",
        "price between 10 and 400 and material in ('oak', 'iron')",
        "title starts with 'cuckoo' or title ends with 'clock' or title contains 'ship'",
        "not price = 100 and price != 90 and exists material",
        "event_type = 'furniture' and material != 'pine'",
        "sold.at > 2024-05-01 or sold = true",
    ),
    JSON,
    [
        json.dumps(
            {
                "event_type": ["antiques", "furniture"] if number % 3 else "furniture",
                "title": "cuckoo clock",
                "material": ("oak", "iron", "pine")[number % 3],
                "price": 10 * number,
                "quantity": number % 7,
                "maker": {"city": "Graz"},
            }
        ).encode()
        for number in range(60)
    ],
)


def generate_event_examples(schema: EventSchema) -> Iterator[Example]:
    """Yield one example for each kind of domain, then two of them combined."""
    examples: dict[DomainKind, Example] = {}
    for attribute in schema.attributes.values():
        domain = schema.domain(attribute.domain)
        if (
            domain is not None
            and domain.kind not in examples
            and (text := _sample_predicate(attribute.name, domain))
        ):
            examples[domain.kind] = Example(text, _EXPLANATIONS[domain.kind])
    yield from examples.values()
    if len(examples) > 1:
        yield Example(" and ".join(example.text for example in islice(examples.values(), 2)), "both")


_EXPLANATIONS = {
    DomainKind.NUMERIC: "compare a value",
    DomainKind.STRING: "part of a text",
    DomainKind.BOOLEAN: "a flag that is set",
    DomainKind.INSTANT: "at or after a time",
    DomainKind.ENUMERATED: "one of several values",
    DomainKind.HIERARCHICAL: "a category of a hierarchy and all below it",
}


def _sample_predicate(name: str, domain: Domain) -> str | None:
    """Return a predicate about an attribute, or `None` if its domain has no values."""
    if domain.kind is DomainKind.NUMERIC:
        bounds = [bound for bound in (domain.maximum, domain.minimum) if bound is not None]
        return f"{name} <= {show(bounds[0]) if bounds else 100}"
    if domain.kind is DomainKind.ENUMERATED and domain.values:
        return f"{name} in ({', '.join(map(show, domain.values[:2]))})"
    if domain.kind is DomainKind.HIERARCHICAL:
        tops = [one for above in domain.below.values() for one in above]
        return f"{name} is a {show(tops[0])}" if tops else None
    conditions = {
        DomainKind.STRING: "contains 'a'",
        DomainKind.BOOLEAN: "= true",
        DomainKind.INSTANT: ">= 2026-01-01T00:00:00Z",
    }
    return f"{name} {conditions[domain.kind]}" if domain.kind in conditions else None
