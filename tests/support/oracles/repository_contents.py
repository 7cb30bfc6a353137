"""Contents of a repository by specification, and documents with many references to each other.

SCHEMA                                  hosts with parts, strong and in cycles; weak neighbours; disks
made_by(chance, uri)                    the resources of a document
by_definition(members, there, SCHEMA)   the resources that members reach, which a repository stores
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random

from tests.support.strategies.metadata import DOCUMENTS, FRAGMENTS, A
from tidings.metadata.resources import Ref, Resource
from tidings.metadata.schema.model import Class, Property, Reference, Schema
from tidings.values import Kind

URIS = tuple(f"{document}#{name}" for document in DOCUMENTS for name in FRAGMENTS)


def leads(name: str, to: str, reference: Reference, several: bool) -> tuple[Property]:
    return (Property(name, A + name, "Host", leads_to=to, reference=reference, several=several),)


# Many references, also in cycles; a Disk is no Host, so references to hosts do not lead to disks.
SCHEMA = Schema(
    {
        name: Class(name, A + name, above)
        for name, above in {"Host": (), "Info": ("Host",), "Disk": ()}.items()
    },
    {
        "parts": leads("parts", "Host", Reference.STRONG, True),
        "info": leads("info", "Info", Reference.STRONG, False),
        "near": leads("near", "Host", Reference.WEAK, False),
        "size": (Property("size", A + "size", "Host", kind=Kind.NUMBER),),
    },
)


def by_definition(
    members: Iterable[str], there: Mapping[str, Resource], schema: Schema
) -> dict[str, Resource]:
    """Return the resources that members reach, by adding resources until there are no more."""
    held = {uri: there[uri] for uri in members if uri in there}
    while True:
        more = {
            uri: there[uri]
            for uri in there
            if uri not in held and any(refers(each, there[uri], schema) for each in held.values())
        }
        if not more:
            return held
        held |= more


def refers(one: Resource, other: Resource, schema: Schema) -> bool:
    return any(
        Ref(other.uri) in values and strong(schema.property_of(one.cls, name), other.cls, schema)
        for name, values in one.values.items()
    )


def strong(declared: Property | None, cls: str, schema: Schema) -> bool:
    assert declared is not None
    return declared.reference is Reference.STRONG and declared.leads_to in schema.at_or_above(cls)


def without(there: Mapping[str, Resource], documents: Iterable[str]) -> dict[str, Resource]:
    gone = set(documents)
    return {uri: each for uri, each in there.items() if uri.partition("#")[0] not in gone}


def made_by(chance: Random, uri: str) -> tuple[Resource, ...]:
    """Generate the resources of a document. Hypothesis draws only the seed: otherwise documents would be small."""
    names = [name for name in FRAGMENTS if chance.random() < 0.7]
    return tuple(one_by(chance, f"{uri}#{name}") for name in names)


def one_by(chance: Random, uri: str) -> Resource:
    def somewhere(most: int) -> tuple[Ref, ...]:
        return tuple(Ref(each) for each in sorted(chance.sample(URIS, chance.randint(0, most))))

    cls = chance.choice(("Host", "Host", "Host", "Info", "Disk"))
    if cls == "Disk":
        return Resource(uri, cls, {})
    values = {
        "parts": somewhere(3),
        "info": somewhere(1),
        "near": somewhere(1),
        "size": (chance.randint(0, 2),),
    }
    return Resource(uri, cls, {name: found for name, found in values.items() if found})
