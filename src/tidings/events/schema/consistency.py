"""Consistency rules R1, R2 and R3: whether an event is an instance of the schema (paper 004, section 2.1).

    R1  the event names its types, and they exist
    R2  mandatory attributes are present; values belong to their attribute's domain; unique attributes have one value
    R3  there are no other attributes, unless one of the event's types is open

A schema without event types has no rules: every event is consistent with it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from tidings.atoms import Event
from tidings.core.suggest import EVENT_TYPE, did_you_mean, join_words, printable, shorten_list
from tidings.errors import ConsistencyProblem
from tidings.events.schema.domains import LISTED, Domain, DomainKind
from tidings.events.schema.event_schema import EventSchema, Member, View
from tidings.values import Scalar, kind_of, show


def check(event: Event, schema: EventSchema, beside: Collection[str] = ()) -> None:
    """Raise the first violation, if there is one."""
    for violation in violations(event, schema, beside):
        raise violation


def violations(
    event: Event, schema: EventSchema, beside: Collection[str] = ()
) -> Iterator[ConsistencyProblem]:
    """Yield every rule the event breaks. `beside` are paths that came with the event but are not part of it."""
    if not schema.event_types:
        return
    try:
        view = _rule_1(event, schema)
    except ConsistencyProblem as problem:
        yield problem
        return
    for member in view.members.values():
        yield from _rule_2(event, schema, view, member)
    yield from _rule_3(event, view, beside)


def _rule_1(event: Event, schema: EventSchema) -> View:
    types = event.get(EVENT_TYPE, ())
    if not types:
        raise ConsistencyProblem("R1", f"{EVENT_TYPE} is missing", accepted=shorten_list(schema.event_types))
    for name in types:
        if not isinstance(name, str):
            message = f"{EVENT_TYPE} {printable(show(name))} is not a name"
            raise ConsistencyProblem("R1", message, accepted=shorten_list(schema.event_types))
    return schema.view(str(name) for name in types)


def _rule_2(event: Event, schema: EventSchema, view: View, member: Member) -> Iterator[ConsistencyProblem]:
    name, values = member.attribute, event.get(member.attribute, ())
    if member.mandatory and not values:
        yield ConsistencyProblem(
            "R2", f"{name} is mandatory for {_declaring_types(schema, view, name, mandatory=True)}"
        )
    domain = schema.domain_of(name)
    refused = next((value for value in values if domain is not None and not domain.accepts(value)), None)
    if domain is not None and refused is not None:
        declaring = _declaring_types(schema, view, name)
        message = f"{name} {printable(show(refused))} is not in the domain {domain.name}, for {declaring}"
        yield ConsistencyProblem("R2", message, accepted=accepted(domain), hint=_hint(domain, refused))
    if not member.multiple and len(values) > 1 and _distinct(values) > 1:
        shown = shorten_list([printable(show(value)) for value in values], 4)
        yield ConsistencyProblem(
            "R2", f"{name} is unique for {_declaring_types(schema, view, name)}", received=shown
        )


def _rule_3(event: Event, view: View, beside: Collection[str]) -> Iterator[ConsistencyProblem]:
    if view.open:
        return
    for name in event:
        if name != EVENT_TYPE and name not in view.members and name not in beside:
            message = f"{printable(name)} is not an attribute of {join_words(view.types, 'or')}"
            yield ConsistencyProblem(
                "R3", message, accepted=shorten_list(view.members), hint=did_you_mean(name, view.members)
            )


def _declaring_types(schema: EventSchema, view: View, attribute: str, mandatory: bool = False) -> str:
    """Join the event types of the view that declare the attribute, or make it mandatory."""
    members = ((name, schema.event_types[name].member(attribute)) for name in view.types)
    return join_words(name for name, member in members if member and (member.mandatory or not mandatory))


def _distinct(values: Sequence[Scalar]) -> int:
    """Count distinct values: 1 and 1.0 are one number, 1 and true are two values."""
    return len({(kind_of(value), value) for value in values})


def accepted(domain: Domain) -> str:
    """Describe the values of the domain."""
    if domain.kind in LISTED:
        return shorten_list(domain.below, shown=show)
    if domain.kind is DomainKind.NUMERIC:
        low = "" if domain.minimum is None else f" from {domain.minimum}"
        return f"a number{low}" + ("" if domain.maximum is None else f" up to {domain.maximum}")
    return _ACCEPTED[domain.kind]


_ACCEPTED = {
    DomainKind.STRING: "a string",
    DomainKind.BOOLEAN: "true or false",
    DomainKind.INSTANT: "a string with an ISO 8601 date or date-time, such as '2026-01-31T12:00:00Z'",
}


def _hint(domain: Domain, value: Scalar) -> str | None:
    if isinstance(value, str):
        return did_you_mean(value, domain.below)
    same = show(str(value))
    return f"{show(value)} is not the string {same}" if domain.accepts(str(value)) else None
