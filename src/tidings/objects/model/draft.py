"""Draft of a model: names, marks and tagged values as written, each with its location, before validation.

The three readers only build drafts. What a mark means, how it may be limited and what is rejected is decided once for
all of them, in `validation`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

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
        for each in problems:
            del each["error"]
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
    """An association as written; `owner` and `has_table` say how it is stored, if the reader knows."""

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

    def end(self, which: End) -> DraftEnd:
        return self.source if which is End.SOURCE else self.target


@dataclass(frozen=True, slots=True)
class Draft:
    """All classes and associations, and the problems that the reader found.

    It is not whole if parts could not be parsed: then nothing is reported as missing.
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


class _ClassPosition(NamedTuple):
    """Position of a class in the inheritance tree, and what it inherits.

    `first` numbers the classes in depth-first order, `last` is the highest number among its descendants: a class is a
    descendant if its number is between the two.
    """

    first: int
    last: int
    key: str
    is_subscriber: bool


class DraftView:
    """Queries that checks need on a draft: by name, and along inheritance, even if it has cycles.

    What classes inherit is computed in one traversal of the inheritance tree: walking up from each class would take
    quadratic time on a long chain. Classes with several parents or in a cycle are rejected later; they are in no tree.
    """

    def __init__(self, draft: Draft) -> None:
        self.draft = draft

    @cached_property
    def classes(self) -> Mapping[str, DraftClass]:
        by_name: dict[str, DraftClass] = {}
        for cls in self.draft.classes:
            by_name.setdefault(cls.name.text, cls)
        return by_name

    def lineage(self, name: str) -> Iterator[DraftClass]:
        """Yield a class and all its ancestors, each once; nothing if there is no such class."""
        queue, seen = [name], set[str]()
        for each in queue:  # grows during iteration
            if each in self.classes and each not in seen:
                seen.add(each)
                yield self.classes[each]
                queue += (parent.text for parent in self.classes[each].parents)

    def parents(self, name: str) -> set[str]:
        """Return the parents of a class that exist."""
        return {each.text for each in self.classes[name].parents if each.text in self.classes}

    @cached_property
    def _tree(self) -> Mapping[str, _ClassPosition]:
        children: dict[str, list[str]] = {}
        for name in self.classes:
            for parent in self.parents(name):
                children.setdefault(parent, []).append(name)
        roots = [name for name in self.classes if not self.parents(name)]
        positions: dict[str, _ClassPosition] = {}
        stack = [(root, DEFAULT_KEY, False) for root in reversed(roots)]
        order: list[str] = []
        while stack:
            name, key, is_subscriber = stack.pop()
            marks = self.classes[name].marks
            key_tag = find_tag(marks, "key")
            key = key_tag.text if key_tag else key
            is_subscriber = is_subscriber or bool(find_mark(marks, "subscriber"))
            positions[name] = _ClassPosition(len(order), len(order), key, is_subscriber)
            order.append(name)
            only_children = [child for child in children.get(name, ()) if len(self.parents(child)) == 1]
            stack += ((child, key, is_subscriber) for child in only_children)
        for name in reversed(order):  # children come after their parents
            for parent in self.parents(name):
                last = max(positions[parent].last, positions[name].last)
                positions[parent] = positions[parent]._replace(last=last)
        return positions

    def is_below(self, name: str, ancestor: str) -> bool:
        """Return whether a class is another class or one of its descendants."""
        position, above = self._tree.get(name), self._tree.get(ancestor)
        if position is not None and above is not None:
            return above.first <= position.first <= above.last
        return any(cls.name.text == ancestor for cls in self.lineage(name))

    def key(self, cls: DraftClass) -> str:
        if (position := self._tree.get(cls.name.text)) is not None:
            return position.key
        tags = (find_tag(each.marks, "key") for each in self.lineage(cls.name.text))
        return next((tag.text for tag in tags if tag is not None), DEFAULT_KEY)

    def own_attributes(self, cls: DraftClass) -> list[DraftAttribute]:
        """List the attributes of a class itself, without the key, which never changes."""
        key = self.key(cls) if cls.attributes else DEFAULT_KEY
        return [attribute for attribute in cls.attributes if attribute.name.text != key]

    def attributes(self, name: str) -> list[str]:
        """List own and inherited attributes."""
        return [each.name.text for cls in self.lineage(name) for each in self.own_attributes(cls)]

    def references(self, name: str) -> list[str]:
        """List the associations that count as attributes: the table of the class has their foreign key."""
        references = (each for cls in self.lineage(name) for each in self._references.get(cls.name.text, ()))
        return [association for _, association in sorted(references)]

    @cached_property
    def _references(self) -> Mapping[str, list[tuple[int, str]]]:
        """By class, the associations with a foreign key in its own table, with their positions in the draft."""
        by_class: dict[str, list[tuple[int, str]]] = {}
        for number, each in enumerate(self.draft.associations):
            if each.owning_end is not None and find_mark(each.marks, "propagates") is None:
                owner = each.end(each.owning_end).cls.text
                by_class.setdefault(owner, []).append((number, each.effective_name))
        return by_class

    def is_subscriber(self, name: str) -> bool:
        if (position := self._tree.get(name)) is not None:
            return position.is_subscriber
        return any(find_mark(cls.marks, "subscriber") for cls in self.lineage(name))


def find_far_end(view: DraftView, association: DraftAssociation, mark: DraftMark) -> End | None:
    """Return the end that is notified, or that changes are propagated to.

    A tag gives it as an end, class or role. By default `propagates` points to the target, and `implicit` to the only
    end that is a subscriber.
    """
    tag = mark.tags.get("told") or mark.tags.get("towards")
    if tag is not None:
        return next((end for end in End if tag.text in list_end_names(association, end)), None)
    if mark.name == "propagates":
        return End.TARGET
    subscribers = [end for end in End if view.is_subscriber(association.end(end).cls.text)]
    return subscribers[0] if len(subscribers) == 1 else None


def find_near_end(view: DraftView, association: DraftAssociation, mark: DraftMark) -> End | None:
    """Return the end whose changes the mark is about."""
    end = find_far_end(view, association, mark)
    return None if end is None else end.other


def list_end_names(association: DraftAssociation, end: End) -> list[str]:
    """List the names of an end: also its class and role, unless the other end has the same."""
    near, far = association.end(end), association.end(end.other)
    own = {near.cls.text, near.role} - {far.cls.text, far.role, None}
    return [end.value, *(each for each in own if each and each not in (e.value for e in End))]


def list_limiting_names(view: DraftView, cls: str) -> list[str]:
    """List the names that a mark about changes of a class may be limited to."""
    return [*view.attributes(cls), *view.references(cls)]


def split_names(text: str, known: Collection[str]) -> list[str]:
    """Split a text into names at blanks; names may contain blanks themselves: the longest known one wins."""
    words, names = text.split(), list[str]()
    while words:
        sizes = (size for size in range(len(words), 1, -1) if " ".join(words[:size]) in known)
        size = next(sizes, 1)
        names.append(" ".join(words[:size]))
        del words[:size]
    return names
