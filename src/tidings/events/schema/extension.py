"""Schema extension by the four rules of paper 004, section 2.2; every other change is refused.

An extension never removes declarations. Repeating an existing declaration changes
nothing, so a publisher may submit its whole schema each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tidings.core.suggest import join_words, shorten_list
from tidings.errors import SchemaError
from tidings.events.schema.domains import Domain
from tidings.events.schema.event_schema import (
    EventSchema,
    EventType,
    Member,
    SchemaParts,
    check_attributes,
    check_domain_names,
    check_event_types,
)


@dataclass(frozen=True, slots=True)
class Change:
    """One addition, and the rule that allows it."""

    rule: str
    what: str


@dataclass(frozen=True, slots=True)
class ExtensionResult:
    """The extended schema and its additions."""

    schema: EventSchema
    changes: tuple[Change, ...]


Step = tuple[EventSchema, list[Change]]
Rule = Callable[[EventSchema, SchemaParts], Step]


def extend(schema: EventSchema, addition: SchemaParts) -> ExtensionResult:
    """Extend the schema by the addition, completely or not at all; a SchemaError explains the first problem."""
    for refusal in refusals(schema, addition):
        raise refusal
    changes: list[Change] = []
    for rule in RULES:
        schema, made = rule(schema, addition)
        changes += made
    return ExtensionResult(schema, tuple(changes))


def domain_creation(schema: EventSchema, addition: SchemaParts) -> Step:
    """Add new domains with their comparisons."""
    check_domain_names(addition, schema)
    new = {name: domain for name, domain in addition.domains.items() if name not in schema.domains}
    extended = EventSchema({**schema.domains, **new}, schema.attributes, schema.event_types)
    return extended, [Change("domain creation", f"domain {d.name}: {d.describe()}") for d in new.values()]


def attribute_creation(schema: EventSchema, addition: SchemaParts) -> Step:
    """Add new attributes over existing domains."""
    check_attributes(addition, schema)
    new = {name: made for name, made in addition.attributes.items() if name not in schema.attributes}
    extended = EventSchema(schema.domains, {**schema.attributes, **new}, schema.event_types)
    return extended, [Change("attribute creation", f"attribute {a.name}: {a.domain}") for a in new.values()]


def event_schema_creation(schema: EventSchema, addition: SchemaParts) -> Step:
    """Add new event types with their members, including mandatory ones."""
    check_event_types(addition, schema)
    new = {name: made for name, made in addition.event_types.items() if name not in schema.event_types}
    extended = EventSchema(schema.domains, schema.attributes, {**schema.event_types, **new})
    return extended, [Change("event schema creation", f"event type {name}") for name in new]


def event_schema_extension(schema: EventSchema, addition: SchemaParts) -> Step:
    """Add optional members to existing event types."""
    types, made = dict(schema.event_types), []
    for old, member in _new_members(schema, addition):
        types[old.name] = EventType(old.name, (*types[old.name].members, member), old.open)
        made.append(Change("event schema extension", f"{old.name}.{member.attribute}: {member.words}"))
    return EventSchema(schema.domains, schema.attributes, types), made


RULES: tuple[Rule, ...] = (domain_creation, attribute_creation, event_schema_creation, event_schema_extension)
"""Ordered so that later rules may use the additions of earlier ones."""

ACCEPTED = (
    "the four extensions: a new domain, a new attribute over an existing domain, a new event type, "
    "a new optional attribute for an existing event type"
)


def refusals(schema: EventSchema, addition: SchemaParts) -> Iterator[SchemaError]:
    """Yield an error for everything in the addition that would change an existing part."""
    for look in (_changed_domains, _retyped_attributes, _changed_types, _changed_members, _new_duties):
        yield from look(schema, addition)


def _changed_domains(schema: EventSchema, addition: SchemaParts) -> Iterator[SchemaError]:
    for name, new in addition.domains.items():
        old = schema.domains.get(name)
        if old is not None and old != new:
            message = f"domain {name} exists and cannot be changed ({_difference(old, new)})"
            hint = "create a domain with another name, and an attribute over it"
            yield addition.problem(("domains", name), message, ACCEPTED, hint)


def _retyped_attributes(schema: EventSchema, addition: SchemaParts) -> Iterator[SchemaError]:
    for name, new in addition.attributes.items():
        old = schema.attributes.get(name)
        if old is not None and old != new:
            message = f"attribute {name} exists and cannot move from domain {old.domain} to {new.domain}"
            yield addition.problem(
                ("attributes", name), message, ACCEPTED, "create an attribute with another name"
            )


def _changed_types(schema: EventSchema, addition: SchemaParts) -> Iterator[SchemaError]:
    for old, new in _iter_restated_types(schema, addition):
        if old.open != new.open:
            was, requested = ("open", "closed") if old.open else ("closed", "open")
            message = f"event type {old.name} is {was} and cannot become {requested}"
            hint = f"write open: {str(old.open).lower()}, or create an event type with another name"
            yield addition.problem(("event_types", old.name), message, ACCEPTED, hint)


def _changed_members(schema: EventSchema, addition: SchemaParts) -> Iterator[SchemaError]:
    for old, new in _iter_restated_types(schema, addition):
        for member in new.members:
            existing = old.member(member.attribute)
            if existing is not None and existing != member:
                was, requested = existing.words, member.words
                message = f"{member.attribute} is {was} for {old.name} and cannot become {requested}"
                path = ("event_types", old.name, member.attribute)
                yield addition.problem(path, message, ACCEPTED, f"leave it {was}")


def _new_duties(schema: EventSchema, addition: SchemaParts) -> Iterator[SchemaError]:
    for old, member in _new_members(schema, addition):
        if member.mandatory:
            message = f"{member.attribute} cannot become mandatory for {old.name}: events without it are valid today"
            path = ("event_types", old.name, member.attribute)
            yield addition.problem(path, message, ACCEPTED, "make it optional, or create a new event type")


def _iter_restated_types(schema: EventSchema, addition: SchemaParts) -> Iterator[tuple[EventType, EventType]]:
    for name, new in addition.event_types.items():
        if name in schema.event_types:
            yield schema.event_types[name], new


def _new_members(schema: EventSchema, addition: SchemaParts) -> Iterator[tuple[EventType, Member]]:
    for old, new in _iter_restated_types(schema, addition):
        for member in new.members:
            if old.member(member.attribute) is None:
                yield old, member


def _difference(old: Domain, new: Domain) -> str:
    if old.kind != new.kind:
        return f"from {old.kind} to {new.kind}"
    removed = [f"'{value}'" for value in old.below if value not in new.below]
    added = [f"'{value}'" for value in new.below if value not in old.below]
    parts = [("without", removed), ("with", added)]
    differences = [f"{word} {shorten_list(values, 4)}" for word, values in parts if values]
    if differences:
        return join_words(differences)
    return "with a different order" if old.below else f"from {old.describe()} to {new.describe()}"
