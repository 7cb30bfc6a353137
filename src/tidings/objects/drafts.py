"""What a model says before it is checked: names, marks and tagged values as they were written, each with its place.

The three readers make drafts and nothing else, so that a mark means the same in each of them: what it means, what it
may be limited to and what is refused is decided once, in `checking`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidings.objects.model import ANY, Cardinality
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
    """`name` is None if nobody said one."""

    name: str | None
    at: Spot
    source: DraftEnd
    target: DraftEnd
    marks: Marks = ()

    @property
    def called(self) -> str:
        """Without a name: the role of the target, or its class with a small letter, as a program would call it."""
        plain = self.target.cls.text
        return self.name or self.target.role or plain[:1].lower() + plain[1:]


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
