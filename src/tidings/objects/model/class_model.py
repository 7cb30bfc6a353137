"""Model graph: classes, associations between them, and marks that define who is notified of a change.

It follows definitions 1, 5, 7 and 8 of the paper on semantic notification: classes are vertices, associations are edges
with cardinalities; some classes are *subscribers*, some associations are *implicit* subscriptions, some *propagate*
changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum


class ChangeKind(Enum):
    """Kinds of changes of an object or of a link between two objects."""

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
    """A value of the objects of a class. The key is not an attribute: it identifies an object and never changes."""

    name: str
    type: str | None = None


@dataclass(frozen=True, slots=True)
class ModelClass:
    """A class with its own attributes; it has at most one parent, because a row refers to one parent row."""

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
    """Number of objects at one end per object at the other; `most` is None if unlimited."""

    least: int = 0
    most: int | None = None

    @property
    def is_one(self) -> bool:
        return self.most == 1

    def __str__(self) -> str:
        """`*`, `1`, `0..1`, `2..*`, as in UML."""
        if self.most is None:
            return f"{self.least}..*" if self.least else "*"
        return str(self.most) if self.least == self.most else f"{self.least}..{self.most}"


ANY_CARDINALITY = Cardinality()


@dataclass(frozen=True, slots=True)
class MarkLimits:
    """Limits of a mark to kinds of change, and for updates to attributes; None is unlimited."""

    attributes: frozenset[str] | None = None
    kinds: frozenset[ChangeKind] | None = None

    def admits(self, kind: ChangeKind, attributes: frozenset[str] = frozenset()) -> bool:
        """Return whether a change counts; `attributes` are those that an update changed."""
        if self.kinds is not None and kind not in self.kinds:
            return False
        return kind is not ChangeKind.UPDATE or self.attributes is None or bool(self.attributes & attributes)


@dataclass(frozen=True, slots=True)
class ImplicitMark:
    """Mark of an implicit subscription: objects at the end `notified` subscribe to those at the other end."""

    notified: End
    limits: MarkLimits = MarkLimits()


@dataclass(frozen=True, slots=True)
class PropagatesMark:
    """Mark of propagation: a change of an object is also a change of the objects linked to it at `towards`."""

    towards: End
    limits: MarkLimits = MarkLimits()


@dataclass(frozen=True, slots=True)
class Association:
    """Links from objects of a class to objects of another class, or of the same class.

    `source_cardinality` is the number of sources per target, which UML writes beside the source.
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
    """Classes by name, and associations; their order does not matter for equality."""

    classes: Mapping[str, ModelClass]
    associations: tuple[Association, ...] = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[object, ...]:
        classes = (
            (cls.name, frozenset(cls.attributes), cls.parents, cls.subscriber, cls.label)
            for cls in self.classes.values()
        )
        return frozenset(classes), frozenset(self.associations)

    def lineage(self, name: str) -> Iterator[ModelClass]:
        """Yield a class, its parent, and so on up to the topmost class."""
        current: str | None = name
        while current is not None:
            yield self.classes[current]
            current = self.classes[current].parent

    def family(self, name: str) -> str:
        """Return the topmost ancestor of a class; keys are unique within it."""
        return [each.name for each in self.lineage(name)][-1]

    def is_a(self, name: str, above: str) -> bool:
        return any(each.name == above for each in self.lineage(name))

    def subclasses_of(self, name: str) -> tuple[str, ...]:
        """Return all descendants of a class, without the class itself."""
        return tuple(each for each in self.classes if each != name and self.is_a(each, name))

    def attributes_of(self, name: str) -> tuple[Attribute, ...]:
        """Return own and inherited attributes, inherited ones first."""
        lineage = list(self.lineage(name))
        return tuple(attribute for cls in reversed(lineage) for attribute in cls.attributes)

    def associations_of(self, name: str) -> tuple[Association, ...]:
        """Return the associations with a class at either end, inherited ones included."""
        names = {each.name for each in self.lineage(name)}
        return tuple(each for each in self.associations if each.source in names or each.target in names)

    def is_subscriber(self, name: str) -> bool:
        """Return whether the class or an ancestor is marked as subscriber."""
        return any(each.subscriber for each in self.lineage(name))

    def label_of(self, name: str) -> str | None:
        """Return the attribute that names objects of a class for people; None if it is the key."""
        label = next((cls.label for cls in self.lineage(name) if cls.label is not None), None)
        if label is not None:
            return label
        attributes = {attribute.name for attribute in self.attributes_of(name)}
        return next((each for each in ("name", "title") if each in attributes), None)
