"""A schema in one line, for people."""

from __future__ import annotations

from tidings.schema.domains import DomainKind
from tidings.schema.event_schema import SchemaParts


def summary(schema: SchemaParts) -> str:
    """`2 event types, 5 attributes, 3 domains (furniture_category: 14 concepts)`."""
    counts = [
        _count(len(schema.event_types), "event type"),
        _count(len(schema.attributes), "attribute"),
        _count(len(schema.domains), "domain"),
    ]
    hierarchies = [domain for domain in schema.domains.values() if domain.kind is DomainKind.HIERARCHICAL]
    sizes = ", ".join(f"{domain.name}: {_count(len(domain.below), 'concept')}" for domain in hierarchies)
    return ", ".join(counts) + (f" ({sizes})" if sizes else "")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
