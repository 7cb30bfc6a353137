"""A schema as documents see it: by IRIs. What it says of a class and a property is looked up once."""

from __future__ import annotations

from tidings.metadata.schema import Property, Schema
from tidings.metadata.short_names import local


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
        return self._classes.get(iri) or self._properties.get(iri) or local(iri)

    def properties(self, cls: str) -> list[str]:
        """The names of the properties that instances of a class may have."""
        return [name for name in self.schema.properties if self.schema.property_of(cls, name)]

    def having(self, iri: str) -> list[str]:
        """The classes that have a property."""
        found = self.schema.properties.get(self._properties.get(iri, ""), ())
        return [each.of for each in found]
