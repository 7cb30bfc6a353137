"""The integrated event schema of paper 004, section 2.1: domains, attributes and event types.

An event may have several types. The *view* over them merges their declarations: an attribute is mandatory if
one of them makes it mandatory, and multiple if one of them allows several values.
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
"""Maximum number of cached views of a schema: publishers use few, but could make up many."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute and the name of its domain. Its own name may have dots: `seller.city` is a path."""

    name: str
    domain: str


@dataclass(frozen=True, slots=True)
class Member:
    """An event type's declaration of an attribute: the paper's (A, mandatory | optional, unique | multiple)."""

    attribute: str
    mandatory: bool = False
    multiple: bool = False

    @property
    def words(self) -> str:
        """The two annotations: `mandatory unique`, `optional multiple` ..."""
        return f"{'mandatory' if self.mandatory else 'optional'} {'multiple' if self.multiple else 'unique'}"

    def merged(self, other: Member) -> Member:
        """Merge two declarations: mandatory and multiple have priority (section 2.1, property 3)."""
        return Member(self.attribute, self.mandatory or other.mandatory, self.multiple or other.multiple)


@dataclass(frozen=True, slots=True)
class EventType:
    """An event type: its members, and whether its events may have undeclared attributes (`open`)."""

    name: str
    members: tuple[Member, ...] = ()
    open: bool = False

    def member(self, attribute: str) -> Member | None:
        return next((member for member in self.members if member.attribute == attribute), None)


@dataclass(frozen=True, slots=True)
class View:
    """The merged declarations of a set of event types."""

    types: tuple[str, ...]
    members: Mapping[str, Member]
    open: bool


@dataclass(frozen=True)
class SchemaParts:
    """Domains, attributes and event types as in a file; they may refer to others that are not among them.

    `places` has the position of each part in the file, by its names: `("attributes", "price")`.
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
        """Make the parts from plain lists."""
        return cls(
            {domain.name: domain for domain in each_is("domains", domains, Domain)},
            {attribute.name: attribute for attribute in each_is("attributes", attributes, Attribute)},
            {event_type.name: event_type for event_type in each_is("event_types", event_types, EventType)},
        )

    def problem(
        self, path: tuple[str, ...], message: str, accepted: str | None = None, hint: str | None = None
    ) -> SchemaError:
        """Make an error about the part of that name, with its position if there is a file."""
        return SchemaError(message, place=self.places.get(path), accepted=accepted, hint=hint)

    def domain(self, name: str) -> Domain | None:
        """Return a domain of the schema, or a built-in one: numeric, string, boolean, instant."""
        return self.domains.get(name) or BUILT_IN.get(name)


@dataclass(frozen=True)
class EventSchema(SchemaParts):
    """A complete schema: everything it refers to exists. Validated on creation; the empty one accepts every event."""

    def __post_init__(self) -> None:
        check_fields(self, domains=Mapping, attributes=Mapping, event_types=Mapping, places=Mapping)
        parts = {"domains": Domain, "attributes": Attribute, "event_types": EventType}
        for name, kind in parts.items():
            section = getattr(self, name)
            for _ in each_is(name, section, str):
                pass
            for _ in each_is(name, section.values(), kind):
                pass
        for rule in WHOLE:
            rule(self, self)

    @property
    def is_empty(self) -> bool:
        """Whether the schema declares nothing."""
        return not (self.domains or self.attributes or self.event_types)

    @property
    def open(self) -> bool:
        """Whether events may have undeclared attributes: there are no event types, or an open one."""
        return not self.event_types or any(event_type.open for event_type in self.event_types.values())

    @cached_property
    def _types_as_domain(self) -> Domain:
        return Domain(EVENT_TYPE, DomainKind.ENUMERATED, dict.fromkeys(self.event_types, ()))

    def domain_of(self, attribute: str) -> Domain | None:
        """The paper's function dom; None for an attribute that is not in the schema."""
        if attribute == EVENT_TYPE and self.event_types:
            return self._types_as_domain
        declared = self.attributes.get(attribute)
        return self.domain(declared.domain) if declared else None

    def view(self, types: Iterable[str]) -> View:
        """Merge the declarations of the event types; a type that does not exist breaks rule R1."""
        names = tuple(dict.fromkeys(types))
        merged = self._views.get(names)
        if merged is None:
            if len(self._views) >= MOST_VIEWS:
                self._views.clear()
            merged = self._views[names] = self._merge_types(names)
        return merged

    @cached_property
    def _views(self) -> dict[tuple[str, ...], View]:
        return {}

    def _merge_types(self, names: tuple[str, ...]) -> View:
        chosen = [self._event_type(name) for name in names]
        members: dict[str, Member] = {}
        for event_type in chosen:
            for member in event_type.members:
                members[member.attribute] = member.merged(members.get(member.attribute, member))
        return View(names, members, any(each.open for each in chosen))

    def _event_type(self, name: str) -> EventType:
        event_type = self.event_types.get(name)
        if event_type is None:
            hint = did_you_mean(name, self.event_types)
            raise ConsistencyProblem(
                "R1", f"no event type '{printable(name)}'", accepted=shorten_list(self.event_types), hint=hint
            )
        return event_type


def check_domain_names(parts: SchemaParts, _: SchemaParts) -> None:
    """Check that no domain has a built-in name."""
    for name in parts.domains:
        if name in BUILT_IN or name == EVENT_TYPE:
            raise parts.problem(("domains", name), f"the domain {name} is built in", "another name")


def check_attributes(parts: SchemaParts, whole: SchemaParts) -> None:
    """Check that every attribute has a name of its own and an existing domain."""
    for name, attribute in parts.attributes.items():
        path = ("attributes", name)
        if not is_name(name):
            raise parts.problem(path, "an attribute needs a name", hint="without control characters")
        if name == EVENT_TYPE:
            raise parts.problem(path, f"{EVENT_TYPE} is in every schema; its domain is the event types")
        if whole.domain(attribute.domain) is None:
            names = [*BUILT_IN, *whole.domains]
            message = f"attribute {name} has an unknown domain '{attribute.domain}'"
            raise parts.problem(path, message, shorten_list(names), did_you_mean(attribute.domain, names))


def check_event_types(parts: SchemaParts, whole: SchemaParts) -> None:
    """Check that every event type has a name and declares each attribute at most once, and only existing ones."""
    for name, event_type in parts.event_types.items():
        if not is_name(name):
            raise parts.problem(("event_types", name), "an event type needs a name")
        seen: set[str] = set()
        for member in event_type.members:
            path = ("event_types", name, member.attribute)
            if member.attribute in seen:
                raise parts.problem(path, f"event type {name} declares {member.attribute} twice")
            if member.attribute not in whole.attributes:
                message = f"event type {name} has an unknown attribute '{member.attribute}'"
                hint = did_you_mean(member.attribute, whole.attributes)
                raise parts.problem(path, message, shorten_list(whole.attributes), hint)
            seen.add(member.attribute)


WHOLE = (check_domain_names, check_attributes, check_event_types)
"""Checks of a complete schema, called with the parts to check and with the parts they may refer to."""
