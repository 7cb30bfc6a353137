"""Short names of classes and properties, and lookup of a schema by IRIs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

from tidings.metadata.schema.model import Property, Schema

# Short names:
#
#     http://example.org/servers#memory       memory
#     http://example.org/disks#memory         together with the one above: servers:memory and disks:memory
#
# Characters that a rule cannot contain become underscores. Prefixes are derived from the IRI: graphs do not keep the
# prefixes they were written with, and two documents may use different ones for the same namespace.


_SEPARATORS = re.compile(r"[/#:?&=]+")
_NON_WORD = re.compile(r"[^\w-]+")


def assign_short_names(iris: Iterable[str]) -> Mapping[str, str | None]:
    """Return the short name of each IRI; None where there is no unique one."""
    parts = {iri: _words(iri) for iri in iris}
    by_name: dict[str | None, list[str]] = defaultdict(list)
    for iri, words in parts.items():
        by_name[_name(words, 1)].append(iri)
    assigned: dict[str, str | None] = {}
    for name, same in by_name.items():
        names = _add_prefixes({iri: parts[iri] for iri in same}) if len(same) > 1 else {same[0]: name}
        assigned |= {iri: names.get(iri) for iri in same}
    return {iri: assigned[iri] for iri in parts}


def local_name(iri: str) -> str:
    """Return the last part of an IRI unchanged."""
    return _SEPARATORS.split(iri)[-1]


def _add_prefixes(parts: Mapping[str, list[str]]) -> Mapping[str, str | None]:
    """Return names with the shortest prefixes that make them unique; nothing if none do."""
    longest = max(map(len, parts.values()))
    for length in range(2, longest + 1):
        names = {iri: _name(words, length) for iri, words in parts.items()}
        if len(set(names.values())) == len(names):
            return names
    return {}


def _words(iri: str) -> list[str]:
    """Split an IRI into words. Parts that begin with a digit, such as versions and years, are dropped."""
    *before, last = (_NON_WORD.sub("_", part) for part in _SEPARATORS.split(iri))
    return [*filter(_is_word, before), last]


def _name(words: list[str], length: int) -> str | None:
    *prefix, end = words[-length:]
    return ":".join(["_".join(prefix), end] if prefix else [end]) if _is_word(end) else None


def _is_word(text: str) -> bool:
    return text[:1].isalpha() or text[:1] == "_"


class Vocabulary:
    """Lookup of the classes and properties of a schema by IRI."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._classes = {each.iri: each.name for each in schema.classes.values()}
        self._properties = {each.iri: name for name, same in schema.properties.items() for each in same}
        self._places = {name: place for place, name in enumerate(schema.properties)}
        self._resolved: dict[tuple[str, str], Property | None] = {}

    def class_of(self, iri: str) -> str | None:
        return self._classes.get(iri)

    def property_of(self, cls: str, iri: str) -> Property | None:
        """Return the property that an IRI means for the instances of a class."""
        name = self._properties.get(iri)
        if name is None:
            return None  # not cached: documents with arbitrary IRIs would fill the memory
        key = (cls, name)
        if key not in self._resolved:
            self._resolved[key] = self.schema.property_of(cls, name)
        return self._resolved[key]

    def place_of(self, name: str) -> int:
        """Return the place of a property in the schema, which is its place in resources, too."""
        return self._places[name]

    def short(self, iri: str) -> str:
        """Return the short name of an IRI, or its last part if the schema does not declare it."""
        return self._classes.get(iri) or self._properties.get(iri) or local_name(iri)

    def properties(self, cls: str) -> list[str]:
        """List the names of the properties that instances of a class may have."""
        return [name for name in self.schema.properties if self.schema.property_of(cls, name)]

    def classes_with(self, iri: str) -> list[str]:
        """List the classes that declare a property."""
        return [property.of for property in self.schema.properties.get(self._properties.get(iri, ""), ())]
