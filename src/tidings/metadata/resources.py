"""Resources: what a metadata document says of one thing, called by its URI reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tidings.values import Scalar

SUBJECT = "rdf#subject"
"""The property whose value is the resource itself: a rule may ask for a single resource (section 3.2 of paper 001)."""


class Ref(NamedTuple):
    """A reference to a resource, by its URI reference. Whether it is there is another question."""

    uri: str


Value = Scalar | Ref


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource: its class, and its values by property, each in a fixed order, none of them twice."""

    uri: str
    cls: str
    values: Mapping[str, tuple[Value, ...]]

    def atoms(self) -> Iterator[Atom]:
        """The resource as rows of figure 4: first itself, then property by property."""
        yield Atom(self.uri, self.cls, SUBJECT, Ref(self.uri))
        for name, values in self.values.items():
            for value in values:
                yield Atom(self.uri, self.cls, name, value)


class Atom(NamedTuple):
    """A row of the paper's FilterData."""

    uri: str
    cls: str
    property: str
    value: Value
