"""A schema as flat rows, for a database table.

    section     name                part           detail
    domain      furniture_category  hierarchical
    value       furniture_category  table          dining room     (one row per direct parent)
    attribute   price               numeric
    event_type  furniture           closed
    member      furniture           price          mandatory unique

An extended schema has the old rows and more: extending is inserting. `position` keeps the order of
declaration within the schema, the domain or the event type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tidings.core.text import plural
from tidings.errors import SchemaError
from tidings.events.schema.domains import Domain, DomainKind
from tidings.events.schema.event_schema import Attribute, EventSchema, EventType, Member, SchemaParts
from tidings.values import to_number


@dataclass(frozen=True, slots=True)
class SchemaRow:
    """One fact of a schema; rows of a schema differ in more than their position."""

    section: str
    name: str
    part: str
    detail: str = ""
    position: int = 0


SECTIONS = ("domain", "value", "attribute", "event_type", "member")


def to_rows(schema: EventSchema) -> list[SchemaRow]:
    """Convert the schema to rows."""
    return [
        *_number_rows(_domain_row(domain) for domain in schema.domains.values()),
        *(row for domain in schema.domains.values() for row in _number_rows(_value_rows(domain))),
        *_number_rows(
            SchemaRow("attribute", attribute.name, attribute.domain)
            for attribute in schema.attributes.values()
        ),
        *_number_rows(_type_row(event_type) for event_type in schema.event_types.values()),
        *(
            row
            for event_type in schema.event_types.values()
            for row in _number_rows(_member_rows(event_type))
        ),
    ]


def from_rows(rows: Iterable[SchemaRow]) -> EventSchema:
    """Restore the schema from its rows, in any order."""
    sections: dict[str, list[SchemaRow]] = {section: [] for section in SECTIONS}
    for row in sorted(rows, key=lambda row: row.position):
        if row.section not in sections:
            raise SchemaError(
                "unknown section in a schema row", received=repr(row), accepted=", ".join(SECTIONS)
            )
        sections[row.section].append(row)
    values, members = _by_name(sections["value"]), _by_name(sections["member"])
    return EventSchema.of(
        [_domain(row, values.get(row.name, [])) for row in sections["domain"]],
        [Attribute(row.name, row.part) for row in sections["attribute"]],
        [_event_type(row, members.get(row.name, [])) for row in sections["event_type"]],
    )


def _number_rows(rows: Iterable[SchemaRow]) -> Iterator[SchemaRow]:
    for position, row in enumerate(rows):
        yield SchemaRow(row.section, row.name, row.part, row.detail, position)


def _domain_row(domain: Domain) -> SchemaRow:
    bounds = (domain.minimum, domain.maximum)
    detail = "" if bounds == (None, None) else " ".join("-" if n is None else repr(n) for n in bounds)
    return SchemaRow("domain", domain.name, domain.kind.value, detail)


def _value_rows(domain: Domain) -> Iterator[SchemaRow]:
    for value, above in domain.below.items():
        for parent in above or ("",):
            yield SchemaRow("value", domain.name, value, parent)


def _type_row(event_type: EventType) -> SchemaRow:
    return SchemaRow("event_type", event_type.name, "open" if event_type.open else "closed")


def _member_rows(event_type: EventType) -> Iterator[SchemaRow]:
    for member in event_type.members:
        yield SchemaRow("member", event_type.name, member.attribute, member.words)


def _by_name(rows: Iterable[SchemaRow]) -> dict[str, list[SchemaRow]]:
    grouped: dict[str, list[SchemaRow]] = {}
    for row in rows:
        grouped.setdefault(row.name, []).append(row)
    return grouped


def _domain(row: SchemaRow, values: Iterable[SchemaRow]) -> Domain:
    low, high = (_bound(text) for text in (row.detail or "- -").split(" "))
    below: dict[str, tuple[str, ...]] = {}
    for value in values:
        below[value.part] = (*below.get(value.part, ()), *([value.detail] if value.detail else ()))
    return Domain(row.name, DomainKind(row.part), below, low, high)


def _bound(text: str) -> int | float | None:
    return None if text == "-" else to_number(text)


def _event_type(row: SchemaRow, members: Iterable[SchemaRow]) -> EventType:
    return EventType(row.name, tuple(_member(member) for member in members), row.part == "open")


def _member(row: SchemaRow) -> Member:
    words = row.detail.split(" ")
    return Member(row.part, "mandatory" in words, "multiple" in words)


def summary(schema: SchemaParts) -> str:
    """Summarise a schema: `2 event types, 5 attributes, 3 domains (furniture_category: 14 concepts)`."""
    counts = [
        plural(len(schema.event_types), "event type"),
        plural(len(schema.attributes), "attribute"),
        plural(len(schema.domains), "domain"),
    ]
    hierarchies = [domain for domain in schema.domains.values() if domain.kind is DomainKind.HIERARCHICAL]
    sizes = ", ".join(f"{domain.name}: {plural(len(domain.below), 'concept')}" for domain in hierarchies)
    return ", ".join(counts) + (f" ({sizes})" if sizes else "")
