"""What an RDF Schema says: which classes and properties there are, what properties lead to, and how closely.

    CycleProvider --serverInformation (strong)--> ServerInformation --memory--> number

Rules call classes and properties by short names: the last part of an IRI, or with a prefix where two would be the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from tidings.errors import SchemaError
from tidings.values import Kind

MAX_ANCESTORS = 500
"""A class and those above it. A resource counts once for each of them: with thousands, one would take minutes."""


class Reference(Enum):
    """How closely a resource belongs to what it refers to.

    What is referred to strongly goes wherever the resource goes; what is referred to weakly never does.
    """

    STRONG = "strong"
    WEAK = "weak"


@dataclass(frozen=True, slots=True)
class Class:
    """A class. `parents` are those right above it; there may be several."""

    name: str
    iri: str
    parents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Property:
    """A property of the instances of a class, those of its subclasses included.

    `kind` says what its values are; of references it is None, and `leads_to` is the class they lead to. A property has
    one value at most, unless it is `several` (the paper's set-valued). `dates` are instants that are shown as days.
    """

    name: str
    iri: str
    of: str
    kind: Kind | None = None
    leads_to: str | None = None
    reference: Reference | None = None
    several: bool = False
    dates: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Schema:
    """All classes and properties by their names. Reachability is computed once."""

    classes: Mapping[str, Class]
    properties: Mapping[str, tuple[Property, ...]]
    """By name: two classes may have properties of one name that mean different things."""

    _above: Mapping[str, frozenset[str]] = field(init=False, repr=False, compare=False)
    _known: dict[tuple[str, str], Property] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        """Parents before children, without recursion: classes may stand far below each other."""
        above: dict[str, frozenset[str]] = {}
        pending, begun = list(self.classes), set[str]()
        while pending:
            name = pending[-1]
            parents = self.classes[name].parents
            missing = [parent for parent in parents if parent not in above]
            if missing and name in begun:  # it came back before what is above it was done
                raise SchemaError("classes run in a circle", where=name)
            begun.add(name)
            if missing:
                pending.extend(missing)
            else:
                pending.pop()
                above[name] = frozenset({name}).union(*(above[parent] for parent in parents))
                if len(above[name]) > MAX_ANCESTORS:
                    what = f"a class stands below more than {MAX_ANCESTORS - 1:,} others"
                    raise SchemaError(what, where=name, hint="with fewer levels, every rule says the same")
        object.__setattr__(self, "_above", above)

    def at_or_above(self, name: str) -> frozenset[str]:
        """A class and all that are above it."""
        return self._above[name]

    def at_or_below(self, name: str) -> frozenset[str]:
        """A class and all that are below it."""
        return frozenset(other for other, above in self._above.items() if name in above)

    def property_of(self, cls: str, name: str) -> Property | None:
        """What a property of this name means for the instances of a class."""
        found = self._known.get((cls, name))
        if found is None:
            above = self._above[cls]
            found = next((each for each in self.properties.get(name, ()) if each.of in above), None)
            if found is not None:
                self._known[cls, name] = found
        return found
