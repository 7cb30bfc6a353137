"""What a model says before it is checked: names, marks and tagged values as they were written, each with its place.

The three readers make drafts and nothing else, so that a mark means the same in each of them: what it means, what it
may be limited to and what is refused is decided once, in `checking`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidings.objects.cardinalities import owning_end
from tidings.objects.model import ANY, Cardinality, End
from tidings.objects.problems import Finding, Spot


@dataclass(frozen=True, slots=True)
class Said:
    """A word, and where it was written."""

    text: str
    at: Spot


Tags = Mapping[str, Said]
"""Tagged values: `kinds = update link`."""


@dataclass(frozen=True, slots=True)
class DraftMark:
    """A stereotype: its name in small letters, and its tagged values."""

    name: str
    at: Spot
    tags: Tags = field(default_factory=dict)


Marks = tuple[DraftMark, ...]


@dataclass(frozen=True, slots=True)
class DraftAttribute:
    name: Said
    type: str | None = None
    marks: Marks = ()


@dataclass(frozen=True, slots=True)
class DraftClass:
    name: Said
    attributes: tuple[DraftAttribute, ...] = ()
    parents: tuple[Said, ...] = ()
    marks: Marks = ()


@dataclass(frozen=True, slots=True)
class DraftEnd:
    """An end of an association; `role` is what the objects there are called, if somebody said it."""

    cls: Said
    cardinality: Cardinality = ANY
    role: str | None = None


@dataclass(frozen=True, slots=True)
class DraftAssociation:
    """`name` is None if nobody said one. `owner` and `has_table` are how it is held, if the reader knows."""

    name: str | None
    at: Spot
    source: DraftEnd
    target: DraftEnd
    marks: Marks = ()
    owner: End | None = None
    has_table: bool = False

    @property
    def called(self) -> str:
        """Without a name: the role or class of the one that is referred to. `Order "1" -- "*" Item` is `order`.

        Of links it is the target's. Always the target's would call that one `item`, and the one of a product, too.
        """
        far = self.end(End.TARGET if self.holder is None else self.holder.other)
        plain = far.cls.text
        return self.name or far.role or plain[:1].lower() + plain[1:]

    @property
    def holder(self) -> End | None:
        """The end whose table has the other's key; None if links have a table, as many need one, or as it is said."""
        if self.has_table or tag(self.marks, "table") is not None:
            return None
        return self.owner or owning_end(self.source.cardinality, self.target.cardinality)

    def end(self, which: End) -> DraftEnd:
        return self.source if which is End.SOURCE else self.target


@dataclass(frozen=True, slots=True)
class Draft:
    """All of it, and what the reader found wrong already.

    It is not whole if something was not understood at all: then nothing is said about what seems to be missing.
    """

    classes: tuple[DraftClass, ...] = ()
    associations: tuple[DraftAssociation, ...] = ()
    findings: tuple[Finding, ...] = ()
    is_whole: bool = True


def tag(marks: Marks, key: str) -> Said | None:
    """A tagged value, whichever mark has it."""
    return next((mark.tags[key] for mark in marks if key in mark.tags), None)


def mark(marks: Marks, name: str) -> DraftMark | None:
    return next((each for each in marks if each.name == name), None)
