"""Generated domains, schemas, extensions of schemas, and events that are instances of them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tidings.core.suggest import is_name
from tidings.events.schema.domains import BUILT_IN, LISTED, Domain, DomainKind
from tidings.events.schema.event_schema import Attribute, EventSchema, EventType, Member, SchemaParts

ODD = (
    "no",
    "null",
    "~",
    "1",
    "1.5",
    "true",
    " x ",
    "a: b",
    "- c",
    "#d",
    "[e]",
    "'f'",
    '"g"',
    "<<",
    "=",
    "日本",
    "é",
)
odd_names = st.sampled_from(ODD) | st.text(min_size=1, max_size=6).filter(is_name)
MOMENTS = ("2026-01-31", "2026-01-31T12:30:00Z", "2026-01-31T12:30:00.5+02:00")


def names(prefix: str) -> st.SearchStrategy[str]:
    """Names, mostly plain, some of which YAML or SQL could misinterpret."""
    plain = [f"{prefix}{number}" for number in range(8)]
    return st.sampled_from([*plain, *(f"{odd}{prefix}" for odd in ODD), *(f"{prefix}.{odd}" for odd in ODD)])


@st.composite
def orders(draw: st.DrawFn, ordered: bool = True) -> dict[str, tuple[str, ...]]:
    """A DAG in which each value may be below earlier values."""
    values = draw(st.lists(odd_names, min_size=1, max_size=8, unique=True))
    below: dict[str, tuple[str, ...]] = {}
    for value in values:
        above = st.lists(st.sampled_from(sorted(below)), max_size=3) if below and ordered else st.just([])
        below[value] = tuple(draw(above))
    return {value: below[value] for value in draw(st.permutations(values))}


@st.composite
def domains(draw: st.DrawFn, name: st.SearchStrategy[str]) -> Domain:
    kind = draw(st.sampled_from(list(DomainKind)))
    if kind in LISTED:
        return Domain(draw(name), kind, draw(orders(draw(st.booleans()))))
    if kind is DomainKind.NUMERIC:
        bounds = sorted(draw(st.lists(st.integers(-5, 5) | st.floats(-5, 5), min_size=2, max_size=2)))
        return Domain(draw(name), kind, {}, *(draw(st.sampled_from([bound, None])) for bound in bounds))
    return Domain(draw(name), kind)


@st.composite
def parts(draw: st.DrawFn, base: SchemaParts, prefix: str) -> SchemaParts:
    """New domains, attributes and event types, which may use those of the base."""
    free = names(prefix)
    new_domains = draw(st.lists(domains(free.filter(lambda n: n not in base.domains)), max_size=3))
    known = [*BUILT_IN, *base.domains, *(domain.name for domain in new_domains)]
    attribute = st.builds(Attribute, free.filter(lambda n: n not in base.attributes), st.sampled_from(known))
    new_attributes = draw(st.lists(attribute, max_size=5))
    members = _members([*base.attributes, *(each.name for each in new_attributes)])
    event_type = st.builds(
        EventType, free.filter(lambda n: n not in base.event_types), members, st.booleans()
    )
    return SchemaParts.of(new_domains, new_attributes, draw(st.lists(event_type, max_size=3)))


def _members(attributes: list[str]) -> st.SearchStrategy[tuple[Member, ...]]:
    if not attributes:
        return st.just(())
    one = st.builds(Member, st.sampled_from(attributes), st.booleans(), st.booleans())
    return st.lists(one, max_size=5, unique_by=lambda member: member.attribute).map(tuple)


@st.composite
def schemas(draw: st.DrawFn) -> EventSchema:
    made = draw(parts(SchemaParts(), "a"))
    return EventSchema(made.domains, made.attributes, made.event_types)


@st.composite
def additions(draw: st.DrawFn, schema: EventSchema) -> SchemaParts:
    """An extension of the schema by all four rules, which repeats some existing declarations."""
    made = draw(parts(schema, "b"))
    attributes = [*schema.attributes, *made.attributes]
    types = dict(made.event_types)
    for name, old in schema.event_types.items():
        new = [Member(each.attribute, False, each.multiple) for each in draw(_members(attributes))]
        fresh = tuple(member for member in new if old.member(member.attribute) is None)
        types[name] = EventType(name, (*old.members[:2], *fresh), old.open)
    again = draw(st.booleans())
    return SchemaParts(
        {**made.domains, **(schema.domains if again else {})},
        {**made.attributes, **(schema.attributes if again else {})},
        types,
    )


def values(domain: Domain) -> st.SearchStrategy[Any]:
    """Values that the domain accepts."""
    if domain.kind in LISTED:
        return st.sampled_from(domain.values)
    if domain.kind is DomainKind.NUMERIC:
        low, high = (domain.minimum, domain.maximum)
        bounds = [bound for bound in (low, high) if bound is not None]
        return st.sampled_from(bounds) if bounds else st.integers(-9, 9) | st.floats(-9, 9)
    if domain.kind is DomainKind.BOOLEAN:
        return st.booleans()
    return st.sampled_from(MOMENTS)


@st.composite
def instances(draw: st.DrawFn, schema: EventSchema, unnamed: bool = False) -> dict[str, list[Any]]:
    """An event of some of the schema's types; `unnamed` adds an attribute that only open types allow."""
    types = draw(st.lists(st.sampled_from(sorted(schema.event_types)), min_size=1, unique=True))
    view = schema.view(types)
    event: dict[str, list[Any]] = {"event_type": types}
    if unnamed and view.open:
        event["something else"] = [1, "x"]
    for member in view.members.values():
        domain = schema.domain_of(member.attribute)
        assert domain is not None
        if member.mandatory or draw(st.booleans()):
            size = 3 if member.multiple else 1
            event[member.attribute] = draw(st.lists(values(domain), min_size=1, max_size=size))
    return event
