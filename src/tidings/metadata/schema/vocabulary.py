"""A schema as documents see it: by IRIs. What it says of a class and a property is looked up once."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

from tidings.metadata.schema.model import Property, Schema

# Short names: how rules call the classes and properties of a schema.
#
#     http://example.org/servers#memory       memory
#     http://example.org/disks#memory         with the one above: servers:memory and disks:memory
#
# A name is a word: what no rule could write becomes an underscore. Graphs do not keep the prefixes they were written
# with, and two documents may call one namespace differently; so prefixes are taken from the IRI.


_BETWEEN = re.compile(r"[/#:?&=]+")
_NO_WORD = re.compile(r"[^\w-]+")


def assign_short_names(iris: Iterable[str]) -> Mapping[str, str | None]:
    """The short name of each IRI; None for one that has none, or none of its own."""
    parts = {iri: _words(iri) for iri in iris}
    ends = {iri: _name(words, 1) for iri, words in parts.items()}
    sharing = _by_name(ends)
    found: dict[str, str | None] = {}
    for name, same in sharing.items():
        longer = _told_apart({iri: parts[iri] for iri in same}) if len(same) > 1 else {same[0]: name}
        found |= {iri: longer.get(iri) for iri in same}
    return {iri: found[iri] for iri in parts}


def local_name(iri: str) -> str:
    """The end of an IRI, as it is written there."""
    return _BETWEEN.split(iri)[-1]


def _by_name(names: Mapping[str, str | None]) -> Mapping[str | None, list[str]]:
    found: dict[str | None, list[str]] = defaultdict(list)
    for iri, name in names.items():
        found[name].append(iri)
    return found


def _told_apart(parts: Mapping[str, list[str]]) -> Mapping[str, str | None]:
    """Names with the shortest prefixes that make them different."""
    longest = max(map(len, parts.values()))
    for length in range(2, longest + 1):
        names = {iri: _name(words, length) for iri, words in parts.items()}
        if len(set(names.values())) == len(names):
            return names
    return {}


def _words(iri: str) -> list[str]:
    """What an IRI consists of, as words. A namespace's versions and years begin with a digit and say little."""
    *before, last = (_NO_WORD.sub("_", part) for part in _BETWEEN.split(iri))
    return [*filter(_is_word, before), last]


def _name(words: list[str], length: int) -> str | None:
    *prefix, end = words[-length:]
    return ":".join(["_".join(prefix), end] if prefix else [end]) if _is_word(end) else None


def _is_word(text: str) -> bool:
    return text[:1].isalpha() or text[:1] == "_"


class Vocabulary:
    """The classes and properties of a schema by their IRIs."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._classes = {each.iri: each.name for each in schema.classes.values()}
        self._properties = {each.iri: name for name, found in schema.properties.items() for each in found}
        self._places = {name: place for place, name in enumerate(schema.properties)}
        self._known: dict[tuple[str, str], Property | None] = {}

    def class_of(self, iri: str) -> str | None:
        return self._classes.get(iri)

    def property_of(self, cls: str, iri: str) -> Property | None:
        """What a property means for the instances of a class; None if it means nothing."""
        name = self._properties.get(iri)
        if name is None:
            return None  # not remembered: whoever publishes could fill the memory with names
        key = (cls, name)
        if key not in self._known:
            self._known[key] = self.schema.property_of(cls, name)
        return self._known[key]

    def place_of(self, name: str) -> int:
        """Where a property stands in the schema: resources have their properties in this order."""
        return self._places[name]

    def short(self, iri: str) -> str:
        """How the schema calls an IRI; the end of one it does not know."""
        return self._classes.get(iri) or self._properties.get(iri) or local_name(iri)

    def properties(self, cls: str) -> list[str]:
        """The names of the properties that instances of a class may have."""
        return [name for name in self.schema.properties if self.schema.property_of(cls, name)]

    def having(self, iri: str) -> list[str]:
        """The classes that have a property."""
        found = self.schema.properties.get(self._properties.get(iri, ""), ())
        return [each.of for each in found]
