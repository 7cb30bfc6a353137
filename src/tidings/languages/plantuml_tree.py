"""What a class diagram of PlantUML says, line by line; words know where they stand in its text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Word:
    """The characters `start` to `end` of the text, without quotes."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Stereotype:
    """`<<propagates {kinds = update link}>>`; `name` is empty for tagged values that stand alone."""

    name: Word
    tags: tuple[tuple[Word, Word], ...] = ()


@dataclass(frozen=True, slots=True)
class Declared:
    """`class Student <<subscriber>> extends Person`, in packages."""

    kind: str
    name: Word
    stereotypes: tuple[Stereotype, ...] = ()
    extends: tuple[Word, ...] = ()
    implements: tuple[Word, ...] = ()
    within: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Member:
    """`name : String`, in the braces of a class or behind its name and a colon."""

    owner: Word
    name: Word
    type: str | None = None
    stereotypes: tuple[Stereotype, ...] = ()


@dataclass(frozen=True, slots=True)
class Related:
    """`Student "*" -- "1" Course : attends <<implicit>> >`."""

    left: Word
    right: Word
    arrow: Word
    left_said: Word | None = None
    right_said: Word | None = None
    label: Word | None = None
    reads: str = ""
    stereotypes: tuple[Stereotype, ...] = ()


@dataclass(frozen=True, slots=True)
class Puzzle:
    """Something in the text that is not understood."""

    at: Word
    what: str
    accepted: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Diagram:
    """All of it, in the order of the text; `others` are names of what has no objects: notes, interfaces."""

    text: str
    declared: tuple[Declared, ...]
    members: tuple[Member, ...]
    related: tuple[Related, ...]
    others: frozenset[str]
    puzzles: tuple[Puzzle, ...]
