"""A schema in one line, for people."""

from __future__ import annotations

from tidings.counts import plural
from tidings.schema.domains import DomainKind
from tidings.schema.event_schema import SchemaParts


def summary(schema: SchemaParts) -> str:
    """`2 event types, 5 attributes, 3 domains (furniture_category: 14 concepts)`."""
    counts = [
        plural(len(schema.event_types), "event type"),
        plural(len(schema.attributes), "attribute"),
        plural(len(schema.domains), "domain"),
    ]
    hierarchies = [domain for domain in schema.domains.values() if domain.kind is DomainKind.HIERARCHICAL]
    sizes = ", ".join(f"{domain.name}: {plural(len(domain.below), 'concept')}" for domain in hierarchies)
    return ", ".join(counts) + (f" ({sizes})" if sizes else "")
