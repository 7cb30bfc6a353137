"""Draft of a model: names, marks and tagged values as written, each with its location, before validation.

The three readers only build drafts. The meaning of marks, their limits and all rejections are decided once for
all of them, in `validation`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tidings.core.text import plural
from tidings.errors import InputError, Place, TidingsError
from tidings.objects.model.class_model import ANY_CARDINALITY, Cardinality, End
from tidings.objects.model.notation import find_owning_end

MAX_SHOWN, MAX_FACTS = 20, 100
"""Maximum numbers of findings in a message, and in the facts of the API."""

SourceLocation = Place | str
"""A place in a text, or a description such as `line 7` or `Course.materials`."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem and its location."""

    at: SourceLocation
    what: str
    received: str | None = None
    accepted: str | None = None
    hint: str | None = None

    def error(self) -> TidingsError:
        """Return the finding as an error of its own."""
        place, where = (self.at, None) if isinstance(self.at, Place) else (None, self.at)
        return InputError(
            self.what,
            place=place,
            where=where,
            received=self.received,
            accepted=self.accepted,
            hint=self.hint,
        )


class ModelError(InputError):
    """An invalid model: the message is the only finding, or the number of findings followed by a list."""

    findings: tuple[Finding, ...]

    def __init__(self, findings: Iterable[Finding], name: str = "the model") -> None:
        self.findings = tuple(sorted(findings, key=_order))
        if len(self.findings) > 1:
            super().__init__(f"{name}: {plural(len(self.findings), 'problem')}")
            return
        only = self.findings[0].error()
        super().__init__(
            f"{name}: {only.what}",
            place=only.place,
            where=only.where,
            received=only.received,
            accepted=only.accepted,
            hint=only.hint,
        )

    def named(self, name: str) -> ModelError:
        """Return a copy under another name of the model."""
        return ModelError(self.findings, name)

    def message(self) -> str:
        return "\n".join((super().message(), *self._lines()))

    def _lines(self) -> Iterator[str]:
        if len(self.findings) > 1:
            for finding in self.findings[:MAX_SHOWN]:
                yield from (f"  {line}" for line in finding.error().message().split("\n"))
        if len(self.findings) > MAX_SHOWN:
            yield f"  and {len(self.findings) - MAX_SHOWN:,} more"

    def facts(self) -> dict[str, object]:
        problems = [finding.error().facts() for finding in self.findings[:MAX_FACTS]]
        for problem in problems:
            del problem["error"]
        return super().facts() | {"problems": problems}


def _order(finding: Finding) -> tuple[int, int]:
    """Sort by position in a text; findings without one keep their order."""
    return (finding.at.line, finding.at.column) if isinstance(finding.at, Place) else (0, 0)


@dataclass(frozen=True, slots=True)
class SourceText:
    """A word and its location."""

    text: str
    at: SourceLocation


TaggedValues = Mapping[str, SourceText]
"""Tagged values: `kinds = update link`."""


@dataclass(frozen=True, slots=True)
class DraftMark:
    """A stereotype: its name in lower case and its tagged values."""

    name: str
    at: SourceLocation
    tags: TaggedValues = field(default_factory=dict)


DraftMarks = tuple[DraftMark, ...]


@dataclass(frozen=True, slots=True)
class DraftAttribute:
    name: SourceText
    type: str | None = None
    marks: DraftMarks = ()


@dataclass(frozen=True, slots=True)
class DraftClass:
    name: SourceText
    attributes: tuple[DraftAttribute, ...] = ()
    parents: tuple[SourceText, ...] = ()
    marks: DraftMarks = ()


@dataclass(frozen=True, slots=True)
class DraftEnd:
    """An end of an association; `role` names the objects there, if the model gives a role."""

    cls: SourceText
    cardinality: Cardinality = ANY_CARDINALITY
    role: str | None = None


@dataclass(frozen=True, slots=True)
class DraftAssociation:
    """An association as written; `owner` and `has_table` describe its storage, if the reader determines it."""

    name: str | None
    at: SourceLocation
    source: DraftEnd
    target: DraftEnd
    marks: DraftMarks = ()
    owner: End | None = None
    has_table: bool = False

    @property
    def effective_name(self) -> str:
        """The name, or by default the role or class of the referenced end: `Order "1" -- "*" Item` is `order`.

        For a link table it is the target's. Using the target's everywhere would name that association `item`, and one
        from a product to its items, too.
        """
        referenced = self.end(End.TARGET if self.owning_end is None else self.owning_end.other)
        cls = referenced.cls.text
        return self.name or referenced.role or cls[:1].lower() + cls[1:]

    @property
    def owning_end(self) -> End | None:
        """The end whose table has the foreign key; None if the links have a table of their own."""
        if self.has_table or find_tag(self.marks, "table") is not None:
            return None
        return self.owner or find_owning_end(self.source.cardinality, self.target.cardinality)

    @property
    def users(self) -> tuple[str, ...]:
        """The classes in which the name is used: the source, and the class whose table has the foreign key."""
        ends = (end for end in (End.SOURCE, self.owning_end) if end is not None)
        return tuple(dict.fromkeys(self.end(end).cls.text for end in ends))

    def end(self, which: End) -> DraftEnd:
        return self.source if which is End.SOURCE else self.target


@dataclass(frozen=True, slots=True)
class Draft:
    """All classes and associations, and the problems that the reader found.

    It is incomplete if parts could not be parsed: then nothing is reported as missing.
    """

    classes: tuple[DraftClass, ...] = ()
    associations: tuple[DraftAssociation, ...] = ()
    findings: tuple[Finding, ...] = ()
    is_whole: bool = True


def find_tag(marks: DraftMarks, key: str) -> SourceText | None:
    """Return a tagged value of any of the marks."""
    return next((mark.tags[key] for mark in marks if key in mark.tags), None)


def find_mark(marks: DraftMarks, name: str) -> DraftMark | None:
    return next((mark for mark in marks if mark.name == name), None)


DEFAULT_KEY = "id"
"""Name of the key column of a class without a `key` tag."""
