"""Tables for the JSON kernels: wanted paths, and the rules of a schema.

    conformity = Conformity(schema, wanted=["price"], id_field="id")
    decode_many(buffer, starts, ends, conformity.paths, "id", conformity)

An event that the kernel accepts is consistent. Every other one goes to the specification,
`tidings.events.schema.consistency`, which accepts it after all or explains the violation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np

from tidings.core.suggest import EVENT_TYPE
from tidings.events.json_decoder import ID_FIELD
from tidings.events.schema.domains import LISTED, Domain, DomainKind
from tidings.events.schema.event_schema import EventSchema, EventType, Member
from tidings.matching.kernels.decode import conformity as kernel
from tidings.matching.kernels.decode.json_objects import NO_ID, ROOT, Paths
from tidings.matching.kernels.decode.names import Keys, fill_slots

_CLOUD_EVENT = "specversion"


class PathTable:
    """Wanted paths for `json_batch_decoder.decode_many`. Build it once per set of paths and use it for many
    batches.

    A path's number in the atoms is its place in `paths`. The strings of `loose` paths are never read, so one
    with an escape may keep its raw bytes.
    """

    def __init__(self, paths: Iterable[str], loose: Collection[str] = ()) -> None:
        self.paths = tuple(dict.fromkeys(paths))
        self._exact = np.array([path not in loose for path in self.paths], np.bool_)
        self._with_id: dict[str | None, Paths] = {}

    def with_id(self, id_field: str | None) -> Paths:
        """Return the kernel's arrays; `id_field` is the path of the id, if that is wanted too."""
        if id_field not in self._with_id:
            self._with_id[id_field] = self._arrays(id_field)
        return self._with_id[id_field]

    def _arrays(self, id_field: str | None) -> Paths:
        nodes = _nodes([*self.paths, _CLOUD_EVENT, *([] if id_field is None else [id_field])])
        path_numbers = np.full(len(nodes) + 1, -1, np.int32)
        for number, path in enumerate(self.paths):
            path_numbers[nodes[path]] = number
        keys = build_key_table([(-1, b""), *((_parent(path, nodes), _key(path)) for path in nodes)])
        id_node = NO_ID if id_field is None else nodes[id_field]
        return Paths(*keys, path_numbers, self._exact, id_node, nodes[_CLOUD_EVENT])


def build_key_table(entries: Sequence[tuple[int, bytes]]) -> Keys:
    """Build a hash table of parents and keys."""
    lengths = np.array([len(key) for _, key in entries], np.int32)
    table = Keys(
        parent=np.array([parent for parent, _ in entries], np.int32),
        key_start=np.cumsum(lengths, dtype=np.int32) - lengths,
        key_length=lengths,
        key_hash=np.zeros(len(entries), np.uint64),
        key_word=np.array([int.from_bytes(key[:8], "little") for _, key in entries], np.uint64),
        keys=np.frombuffer(b"".join(key for _, key in entries), np.uint8),
        slots=np.full(1 << (2 * len(entries)).bit_length(), -1, np.int32),
    )
    fill_slots(table)
    return table


def _nodes(paths: Iterable[str]) -> dict[str, int]:
    """Number each path and each prefix of one from 1, parents first. The document itself is node 0."""
    nodes: dict[str, int] = {}
    for path in paths:
        segments = path.split(".")
        for depth in range(1, len(segments) + 1):
            nodes.setdefault(".".join(segments[:depth]), len(nodes) + 1)
    return nodes


def _parent(path: str, nodes: dict[str, int]) -> int:
    above, dot, _ = path.rpartition(".")
    return nodes[above] if dot else ROOT


def _key(path: str) -> bytes:
    """Encode the last segment. Half a surrogate pair becomes bytes that are not UTF-8, so it is never found."""
    return path.rpartition(".")[2].encode(errors="surrogatepass")


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

    def __init__(self, schema: EventSchema, paths: Iterable[str], id_field: str | None) -> None:
        self.schema, self.id_field = schema, id_field
        paths = tuple(paths)
        common = (EVENT_TYPE, ID_FIELD, id_field or ID_FIELD)
        loose = {name for name in schema.attributes if _is_loose(schema.domain_of(name))}
        self.paths = PathTable([*paths, *schema.attributes, *common], loose - {*paths, *common})
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
    lists = {domain.name: number for number, domain in enumerate(_listed_domains(schema), 1)}
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


def _listed_domains(schema: EventSchema) -> list[Domain]:
    return [domain for domain in schema.domains.values() if domain.kind in LISTED]


def _words(schema: EventSchema) -> Iterator[tuple[int, bytes]]:
    """Yield list number and word: first the event types, then the values of each listed domain."""
    for name in schema.event_types:
        yield kernel.EVENT_TYPES, name.encode()
    for number, domain in enumerate(_listed_domains(schema), 1):
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
