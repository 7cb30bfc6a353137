"""The model graph: classes, associations between them, and the marks that say whom a change concerns.

After definitions 1, 5, 7 and 8 of the paper on semantic notification: classes are vertices, associations are edges with
cardinalities; some classes are *subscribers*, some associations are *implicit* subscriptions, some *propagate* changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum


class ChangeKind(Enum):
    """What may happen to an object, or to a link between two."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    LINK = "link"
    UNLINK = "unlink"


class End(Enum):
    """One of the two ends of an association."""

    SOURCE = "source"
    TARGET = "target"

    @property
    def other(self) -> End:
        return End.TARGET if self is End.SOURCE else End.SOURCE


@dataclass(frozen=True, slots=True)
class Attribute:
    """A value that objects of a class have. The key of an object is none: it says which object it is, and stays."""

    name: str
    type: str | None = None


@dataclass(frozen=True, slots=True)
class ModelClass:
    """A class with its own attributes; `parents` has one name at most, because a table has one."""

    name: str
    attributes: tuple[Attribute, ...] = ()
    parents: tuple[str, ...] = ()
    subscriber: bool = False
    label: str | None = None

    @property
    def parent(self) -> str | None:
        return self.parents[0] if self.parents else None


@dataclass(frozen=True, slots=True)
class Cardinality:
    """How many objects at an end belong to one at the other; `most` is None for any number."""

    least: int = 0
    most: int | None = None

    @property
    def is_one(self) -> bool:
        return self.most == 1

    def __str__(self) -> str:
        """`*`, `1`, `0..1`, `2..*`: what UML writes."""
        if self.most is None:
            return f"{self.least}..*" if self.least else "*"
        return str(self.most) if self.least == self.most else f"{self.least}..{self.most}"


ANY_CARDINALITY = Cardinality()


@dataclass(frozen=True, slots=True)
class MarkLimits:
    """Limits: which kinds of change count, and of an update which attributes; None is no limit."""

    attributes: frozenset[str] | None = None
    kinds: frozenset[ChangeKind] | None = None

    def admits(self, kind: ChangeKind, attributes: frozenset[str] = frozenset()) -> bool:
        """Whether a change counts; `attributes` are those that an update changed."""
        if self.kinds is not None and kind not in self.kinds:
            return False
        return kind is not ChangeKind.UPDATE or self.attributes is None or bool(self.attributes & attributes)


@dataclass(frozen=True, slots=True)
class ImplicitMark:
    """The objects at the end `told` are subscribers of those at the other end."""

    told: End
    limits: MarkLimits = MarkLimits()


@dataclass(frozen=True, slots=True)
class PropagatesMark:
    """A change of an object counts as a change of the objects that are linked to it at the end `towards`."""

    towards: End
    limits: MarkLimits = MarkLimits()


@dataclass(frozen=True, slots=True)
class Association:
    """Links from objects of a class to those of another, or of the same.

    `source_cardinality` is how many sources one target has, as UML writes it beside the source.
    """

    name: str
    source: str
    target: str
    source_cardinality: Cardinality = ANY_CARDINALITY
    target_cardinality: Cardinality = ANY_CARDINALITY
    implicit: ImplicitMark | None = None
    propagates: PropagatesMark | None = None

    def at(self, end: End) -> str:
        return self.source if end is End.SOURCE else self.target

    def cardinality(self, end: End) -> Cardinality:
        return self.source_cardinality if end is End.SOURCE else self.target_cardinality


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """Classes by name, and associations. In which order they were written makes no difference."""

    classes: Mapping[str, ModelClass]
    associations: tuple[Association, ...] = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and self._said() == other._said()

    def __hash__(self) -> int:
        return hash(self._said())

    def _said(self) -> tuple[object, ...]:
        classes = (
            (each.name, frozenset(each.attributes), each.parents, each.subscriber, each.label)
            for each in self.classes.values()
        )
        return frozenset(classes), frozenset(self.associations)

    def lineage(self, name: str) -> Iterator[ModelClass]:
        """A class and those above it, upwards."""
        at: str | None = name
        while at is not None:
            yield self.classes[at]
            at = self.classes[at].parent

    def family(self, name: str) -> str:
        """The topmost class above a class: among its objects a key stands for one."""
        return [each.name for each in self.lineage(name)][-1]

    def is_a(self, name: str, above: str) -> bool:
        return any(each.name == above for each in self.lineage(name))

    def subclasses_of(self, name: str) -> tuple[str, ...]:
        """The classes below a class, the class itself not counted."""
        return tuple(each for each in self.classes if each != name and self.is_a(each, name))

    def attributes_of(self, name: str) -> tuple[Attribute, ...]:
        """Inherited attributes first."""
        above = list(self.lineage(name))
        return tuple(attribute for each in reversed(above) for attribute in each.attributes)

    def associations_of(self, name: str) -> tuple[Association, ...]:
        """The associations that objects of a class take part in, at either end, inherited ones included."""
        names = {each.name for each in self.lineage(name)}
        return tuple(each for each in self.associations if each.source in names or each.target in names)

    def is_subscriber(self, name: str) -> bool:
        """Whether the class or one above it is marked."""
        return any(each.subscriber for each in self.lineage(name))

    def label_of(self, name: str) -> str | None:
        """The attribute by which people know objects of a class; None is the key."""
        said = next((each.label for each in self.lineage(name) if each.label is not None), None)
        if said is not None:
            return said
        known = {attribute.name for attribute in self.attributes_of(name)}
        return next((each for each in ("name", "title") if each in known), None)
