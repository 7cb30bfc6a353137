"""The schema of metadata: classes, properties with their ranges, and the strength of references.

    CycleProvider --serverInformation (strong)--> ServerInformation --memory--> number

Rules use short names: the last part of an IRI, with a prefix where two would collide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from tidings.errors import SchemaError
from tidings.values import Kind

MAX_ANCESTORS = 500
"""The limit of a class and its superclasses. A resource is indexed once for each; thousands would take minutes."""


class Reference(Enum):
    """The strength of a reference: the target of a strong one is always sent along, that of a weak one never."""

    STRONG = "strong"
    WEAK = "weak"


@dataclass(frozen=True, slots=True)
class Class:
    """A class with its direct superclasses."""

    name: str
    iri: str
    parents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Property:
    """A property of the instances of a class and its subclasses.

    `kind` is the kind of its literals; for references it is None, and `leads_to` is the class of the targets. Without
    `several` (set-valued in the paper) it has at most one value. `dates` are instants that are shown as days.
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
    """All classes and properties by name. The class hierarchy is computed once."""

    classes: Mapping[str, Class]
    properties: Mapping[str, tuple[Property, ...]]
    """By name: two classes may have different properties of the same name."""

    _above: Mapping[str, frozenset[str]] = field(init=False, repr=False, compare=False)
    _resolved: dict[tuple[str, str], Property] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        """Compute superclasses, parents first. Without recursion: hierarchies can be deep."""
        above: dict[str, frozenset[str]] = {}
        pending, visited = list(self.classes), set[str]()
        while pending:
            name = pending[-1]
            parents = self.classes[name].parents
            missing = [parent for parent in parents if parent not in above]
            if missing and name in visited:  # reached again before its parents were done
                raise SchemaError("cyclic class hierarchy", where=name)
            visited.add(name)
            if missing:
                pending.extend(missing)
            else:
                pending.pop()
                above[name] = frozenset({name}).union(*(above[parent] for parent in parents))
                if len(above[name]) > MAX_ANCESTORS:
                    what = f"a class has more than {MAX_ANCESTORS - 1:,} superclasses"
                    raise SchemaError(what, where=name, hint="flatten the class hierarchy")
        object.__setattr__(self, "_above", above)

    def at_or_above(self, name: str) -> frozenset[str]:
        """Return a class and all its superclasses."""
        return self._above[name]

    def at_or_below(self, name: str) -> frozenset[str]:
        """Return a class and all its subclasses."""
        return frozenset(other for other, above in self._above.items() if name in above)

    def property_of(self, cls: str, name: str) -> Property | None:
        """Return the property that a name means for the instances of a class."""
        property = self._resolved.get((cls, name))
        if property is None:
            above = self._above[cls]
            property = next((each for each in self.properties.get(name, ()) if each.of in above), None)
            if property is not None:
                self._resolved[cls, name] = property
        return property
