"""Arrays of a schema's rules for the fast decoder: the paths it reads, and the values allowed there.

    conformity = Conformity(schema, wanted=["price"], id_field="id")
    decode_many(buffer, starts, ends, conformity.paths, "id", conformity)

An event that the kernel accepts is consistent. Every other one goes to the specification,
`tidings.events.schema.consistency`, which accepts it after all or explains the violation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from tidings.core.suggest import EVENT_TYPE
from tidings.events.json_decoder import ID_FIELD
from tidings.events.path_table import PathTable, build_key_table
from tidings.events.schema.domains import LISTED, Domain, DomainKind
from tidings.events.schema.event_schema import EventSchema, EventType, Member
from tidings.matching.kernels.decode import conformity as kernel

_VALUES = {
    DomainKind.NUMERIC: kernel.IS_NUMBER,
    DomainKind.STRING: kernel.IS_STRING,
    DomainKind.BOOLEAN: kernel.IS_BOOLEAN,
    DomainKind.INSTANT: kernel.IS_INSTANT,
    DomainKind.ENUMERATED: kernel.IS_LISTED,
    DomainKind.HIERARCHICAL: kernel.IS_LISTED,
}


class Conformity:
    """The rules of a schema with event types. `paths` are the wanted paths, followed by those needed for checking."""

    def __init__(self, schema: EventSchema, wanted: Iterable[str], id_field: str | None) -> None:
        self.schema, self.id_field = schema, id_field
        wanted = tuple(wanted)
        common = (EVENT_TYPE, ID_FIELD, id_field or ID_FIELD)
        loose = {name for name in schema.attributes if _is_loose(schema.domain_of(name))}
        self.paths = PathTable([*wanted, *schema.attributes, *common], loose - {*wanted, *common})
        self.rules = _rules(schema, self.paths.paths, {*common})

    def work(self) -> kernel.Work:
        """Allocate the kernel's working memory for one call."""
        first, last = np.full((2, len(self.paths.paths)), -1, np.int64)
        return kernel.Work(np.zeros(len(first), np.uint8), first, last, np.zeros(kernel.MOST_TYPES, np.int32))


def _is_loose(domain: Domain | None) -> bool:
    """Return whether the content of an attribute's strings does not matter."""
    return domain is not None and domain.kind not in (*LISTED, DomainKind.INSTANT)


def _rules(schema: EventSchema, paths: tuple[str, ...], common: set[str]) -> kernel.Rules:
    numbers = {path: number for number, path in enumerate(paths)}
    domains = [schema.domain_of(path) if path in schema.attributes else None for path in paths]
    lists = {domain.name: number for number, domain in enumerate(_listed(schema), 1)}
    members = [_members(event_type, numbers) for event_type in schema.event_types.values()]
    return kernel.Rules(
        event_type=numbers[EVENT_TYPE],
        values=np.array([_values(domain) for domain in domains], np.uint8),
        low=np.array([_bound(domain.minimum if domain else None, -np.inf) for domain in domains]),
        high=np.array([_bound(domain.maximum if domain else None, np.inf) for domain in domains]),
        values_list=np.array([lists.get(domain.name, -1) if domain else -1 for domain in domains], np.int32),
        common=np.array([path in common for path in paths], np.bool_),
        member_start=np.cumsum([0, *map(len, members)]),
        member_path=np.array([path for pairs in members for path, _ in pairs], np.int32),
        member_flags=np.array([flags for pairs in members for _, flags in pairs], np.uint8),
        open=np.array([event_type.open for event_type in schema.event_types.values()], np.bool_),
        words=build_key_table(list(_words(schema))),
    )


def _listed(schema: EventSchema) -> list[Domain]:
    return [domain for domain in schema.domains.values() if domain.kind in LISTED]


def _words(schema: EventSchema) -> Iterator[tuple[int, bytes]]:
    """Yield list number and word: first the event types, then the values of each listed domain."""
    for name in schema.event_types:
        yield kernel.EVENT_TYPES, name.encode()
    for number, domain in enumerate(_listed(schema), 1):
        for value in domain.values:
            yield number, value.encode()


def _members(event_type: EventType, numbers: dict[str, int]) -> list[tuple[int, int]]:
    return [(numbers[member.attribute], _flags(member)) for member in event_type.members]


def _flags(member: Member) -> int:
    return kernel.NAMED | kernel.MANDATORY * member.mandatory | kernel.MULTIPLE * member.multiple


def _values(domain: Domain | None) -> int:
    if domain is None or not (_is_exact(domain.minimum) and _is_exact(domain.maximum)):
        return kernel.OTHER
    return _VALUES[domain.kind]


def _is_exact(bound: int | float | None) -> bool:
    """Return whether a double represents the bound exactly; 2**53 + 1 and 10**400 have no exact double."""
    try:
        return bound is None or float(bound) == bound
    except OverflowError:
        return False


def _bound(bound: int | float | None, otherwise: float) -> float:
    return float(bound) if bound is not None and _is_exact(bound) else otherwise
