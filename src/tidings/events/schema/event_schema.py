"""The integrated event schema of paper 004, section 2.1: domains, attributes and event types.

An event may have several types. The *view* over them merges what they say: what is mandatory for one of them
is mandatory, and what may have several values in one of them may have several.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

from tidings.core.arguments import accepts, check_fields, each_is
from tidings.core.suggest import EVENT_TYPE, did_you_mean, is_name, printable, shorten_list
from tidings.errors import ConsistencyProblem, Place, SchemaError
from tidings.events.schema.domains import BUILT_IN, Domain, DomainKind

MOST_VIEWS = 256
"""How many views a schema remembers: publishers use few, and could make up many."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute and its domain's name. Its own name may have dots: `seller.city` is a path."""

    name: str
    domain: str


@dataclass(frozen=True, slots=True)
class Member:
    """What an event type says of an attribute: the paper's (A, mandatory | optional, unique | multiple)."""

    attribute: str
    mandatory: bool = False
    multiple: bool = False

    @property
    def words(self) -> str:
        """The two annotations: `mandatory unique`, `optional multiple` ..."""
        return f"{'mandatory' if self.mandatory else 'optional'} {'multiple' if self.multiple else 'unique'}"

    def merged(self, other: Member) -> Member:
        """What holds when both are said: mandatory and multiple have priority (section 2.1, property 3)."""
        return Member(self.attribute, self.mandatory or other.mandatory, self.multiple or other.multiple)


@dataclass(frozen=True, slots=True)
class EventType:
    """An event type: its members, and whether events of it may carry attributes it does not name (`open`)."""

    name: str
    members: tuple[Member, ...] = ()
    open: bool = False

    def member(self, attribute: str) -> Member | None:
        return next((member for member in self.members if member.attribute == attribute), None)


@dataclass(frozen=True, slots=True)
class View:
    """What a set of event types says together."""

    types: tuple[str, ...]
    members: Mapping[str, Member]
    open: bool


@dataclass(frozen=True)
class SchemaParts:
    """Domains, attributes and event types that may lean on others which are not among them: what a file says.

    `places` tells where in the file each part stands, by its names: `("attributes", "price")`.
    """

    domains: Mapping[str, Domain] = field(default_factory=dict)
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    event_types: Mapping[str, EventType] = field(default_factory=dict)
    places: Mapping[tuple[str, ...], Place] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    @accepts()
    def of(
        cls,
        domains: Iterable[Domain] = (),
        attributes: Iterable[Attribute] = (),
        event_types: Iterable[EventType] = (),
    ) -> Self:
        """The same from plain lists."""
        return cls(
            {domain.name: domain for domain in each_is("domains", domains, Domain)},
            {attribute.name: attribute for attribute in each_is("attributes", attributes, Attribute)},
            {event_type.name: event_type for event_type in each_is("event_types", event_types, EventType)},
        )

    def problem(
        self, at: tuple[str, ...], what: str, accepted: str | None = None, hint: str | None = None
    ) -> SchemaError:
        """An error about the part of that name, with its place where there is a file."""
        return SchemaError(what, place=self.places.get(at), accepted=accepted, hint=hint)

    def domain(self, name: str) -> Domain | None:
        """A domain of the schema, or a built-in one: numeric, string, boolean, instant."""
        return self.domains.get(name) or BUILT_IN.get(name)


@dataclass(frozen=True)
class EventSchema(SchemaParts):
    """A whole schema: it has everything it names. Checked when made; the empty one accepts every event."""

    def __post_init__(self) -> None:
        check_fields(self, domains=Mapping, attributes=Mapping, event_types=Mapping, places=Mapping)
        parts = {"domains": Domain, "attributes": Attribute, "event_types": EventType}
        for name, kind in parts.items():
            given = getattr(self, name)
            for _ in each_is(name, given, str):
                pass
            for _ in each_is(name, given.values(), kind):
                pass
        for rule in WHOLE:
            rule(self, self)

    @property
    def is_empty(self) -> bool:
        """Whether nothing at all is said."""
        return not (self.domains or self.attributes or self.event_types)

    @property
    def open(self) -> bool:
        """Whether events may carry attributes the schema does not name: no event types, or an open one."""
        return not self.event_types or any(event_type.open for event_type in self.event_types.values())

    @cached_property
    def _types_as_domain(self) -> Domain:
        return Domain(EVENT_TYPE, DomainKind.ENUMERATED, dict.fromkeys(self.event_types, ()))

    def domain_of(self, attribute: str) -> Domain | None:
        """The paper's function dom; None for an attribute the schema does not know."""
        if attribute == EVENT_TYPE and self.event_types:
            return self._types_as_domain
        known = self.attributes.get(attribute)
        return self.domain(known.domain) if known else None

    def view(self, types: Iterable[str]) -> View:
        """What the event types say together; a type that does not exist breaks rule R1."""
        names = tuple(dict.fromkeys(types))
        known = self._views.get(names)
        if known is None:
            if len(self._views) >= MOST_VIEWS:
                self._views.clear()
            known = self._views[names] = self._merged(names)
        return known

    @cached_property
    def _views(self) -> dict[tuple[str, ...], View]:
        return {}

    def _merged(self, names: tuple[str, ...]) -> View:
        chosen = [self._event_type(name) for name in names]
        members: dict[str, Member] = {}
        for event_type in chosen:
            for member in event_type.members:
                members[member.attribute] = member.merged(members.get(member.attribute, member))
        return View(names, members, any(each.open for each in chosen))

    def _event_type(self, name: str) -> EventType:
        found = self.event_types.get(name)
        if found is None:
            hint = did_you_mean(name, self.event_types)
            raise ConsistencyProblem(
                "R1", f"no event type '{printable(name)}'", accepted=shorten_list(self.event_types), hint=hint
            )
        return found


def check_domain_names(parts: SchemaParts, _: SchemaParts) -> None:
    """No domain takes a name that has a meaning already."""
    for name in parts.domains:
        if name in BUILT_IN or name == EVENT_TYPE:
            raise parts.problem(("domains", name), f"the domain {name} is built in", "another name")


def check_attributes(parts: SchemaParts, whole: SchemaParts) -> None:
    """Every attribute has a name of its own and a domain that exists."""
    for name, attribute in parts.attributes.items():
        at = ("attributes", name)
        if not is_name(name):
            raise parts.problem(at, "an attribute needs a name", hint="without control characters")
        if name == EVENT_TYPE:
            raise parts.problem(at, f"{EVENT_TYPE} is in every schema; its domain is the event types")
        if whole.domain(attribute.domain) is None:
            known = [*BUILT_IN, *whole.domains]
            what = f"attribute {name} has an unknown domain '{attribute.domain}'"
            raise parts.problem(at, what, shorten_list(known), did_you_mean(attribute.domain, known))


def check_event_types(parts: SchemaParts, whole: SchemaParts) -> None:
    """Every event type has a name and speaks at most once of an attribute, which exists."""
    for name, event_type in parts.event_types.items():
        if not is_name(name):
            raise parts.problem(("event_types", name), "an event type needs a name")
        seen: set[str] = set()
        for member in event_type.members:
            at = ("event_types", name, member.attribute)
            if member.attribute in seen:
                raise parts.problem(at, f"event type {name} names {member.attribute} twice")
            if member.attribute not in whole.attributes:
                what = f"event type {name} names an attribute '{member.attribute}' that does not exist"
                hint = did_you_mean(member.attribute, whole.attributes)
                raise parts.problem(at, what, shorten_list(whole.attributes), hint)
            seen.add(member.attribute)


WHOLE = (check_domain_names, check_attributes, check_event_types)
"""What makes parts whole: each is called with the parts to check and with all there is to lean on."""
