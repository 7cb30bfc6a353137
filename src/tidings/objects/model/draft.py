"""What a model says before it is checked: names, marks and tagged values as they were written, each with its place.

The three readers make drafts and nothing else, so that a mark means the same in each of them: what it means, what it
may be limited to and what is refused is decided once, in `checking`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from tidings.objects.model.class_model import ANY_CARDINALITY, Cardinality, End
from tidings.objects.model.notation import find_owning_end
from tidings.objects.model.problems import Finding, SourceLocation


@dataclass(frozen=True, slots=True)
class SourceText:
    """A word, and where it was written."""

    text: str
    at: SourceLocation


TaggedValues = Mapping[str, SourceText]
"""Tagged values: `kinds = update link`."""


@dataclass(frozen=True, slots=True)
class DraftMark:
    """A stereotype: its name in small letters, and its tagged values."""

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
    """An end of an association; `role` is what the objects there are called, if somebody said it."""

    cls: SourceText
    cardinality: Cardinality = ANY_CARDINALITY
    role: str | None = None


@dataclass(frozen=True, slots=True)
class DraftAssociation:
    """`name` is None if nobody said one. `owner` and `has_table` are how it is held, if the reader knows."""

    name: str | None
    at: SourceLocation
    source: DraftEnd
    target: DraftEnd
    marks: DraftMarks = ()
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
        if self.has_table or find_tag(self.marks, "table") is not None:
            return None
        return self.owner or find_owning_end(self.source.cardinality, self.target.cardinality)

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


def find_tag(marks: DraftMarks, key: str) -> SourceText | None:
    """A tagged value, whichever mark has it."""
    return next((mark.tags[key] for mark in marks if key in mark.tags), None)


def find_mark(marks: DraftMarks, name: str) -> DraftMark | None:
    return next((each for each in marks if each.name == name), None)


# A draft as checks look at it: by name, upwards, and by the ends that marks point to.


DEFAULT_KEY = "id"
"""What the key of a class is called if nobody says otherwise."""


class _ClassPosition(NamedTuple):
    """Where a class is in the tree of classes, and what it inherits.

    `first` numbers the classes in the order of a walk from the roots down, `last` is the highest number below the
    class: another one is below it if its number is between the two.
    """

    first: int
    last: int
    key: str
    is_subscriber: bool


class DraftView:
    """A draft as checks look at it: by name, and upwards, also where classes run in a circle.

    What a class inherits is found in one walk over the tree of all classes: going up from each of them takes quadratic
    time in a chain of classes. Classes with several parents or in a circle, which will be refused, are in no tree.
    """

    def __init__(self, draft: Draft) -> None:
        self.draft = draft

    @cached_property
    def classes(self) -> Mapping[str, DraftClass]:
        found: dict[str, DraftClass] = {}
        for each in self.draft.classes:
            found.setdefault(each.name.text, each)
        return found

    def upwards(self, name: str) -> Iterator[DraftClass]:
        """Yield a class and all above it, each once; nothing if there is no such class."""
        waiting, seen = [name], set[str]()
        for each in waiting:  # grows while it is gone through
            if each in self.classes and each not in seen:
                seen.add(each)
                yield self.classes[each]
                waiting += (parent.text for parent in self.classes[each].parents)

    def lineage(self, name: str) -> list[DraftClass]:
        """List a class and all above it, each once; empty if there is no such class."""
        return list(self.upwards(name))

    def parents(self, name: str) -> set[str]:
        """Return the classes right above a class, without those that there are not."""
        return {each.text for each in self.classes[name].parents if each.text in self.classes}

    @cached_property
    def _tree(self) -> Mapping[str, _ClassPosition]:
        below: dict[str, list[str]] = {}
        for name in self.classes:
            for parent in self.parents(name):
                below.setdefault(parent, []).append(name)
        roots = [name for name in self.classes if not self.parents(name)]
        found: dict[str, _ClassPosition] = {}
        waiting = [(root, DEFAULT_KEY, False) for root in reversed(roots)]
        order: list[str] = []
        while waiting:
            name, key, is_subscriber = waiting.pop()
            marks = self.classes[name].marks
            said = find_tag(marks, "key")
            key, is_subscriber = (
                said.text if said else key,
                is_subscriber or bool(find_mark(marks, "subscriber")),
            )
            found[name] = _ClassPosition(len(order), len(order), key, is_subscriber)
            order.append(name)
            alone = [child for child in below.get(name, ()) if len(self.parents(child)) == 1]
            waiting += ((child, key, is_subscriber) for child in alone)
        for name in reversed(order):  # children come after their parents
            for parent in self.parents(name):
                found[parent] = found[parent]._replace(last=max(found[parent].last, found[name].last))
        return found

    def is_below(self, name: str, above: str) -> bool:
        """Return whether a class is another one or below it."""
        mine, other = self._tree.get(name), self._tree.get(above)
        if mine is not None and other is not None:
            return other.first <= mine.first <= other.last
        return any(each.name.text == above for each in self.upwards(name))

    def key(self, cls: DraftClass) -> str:
        if (place := self._tree.get(cls.name.text)) is not None:
            return place.key
        said = (find_tag(each.marks, "key") for each in self.upwards(cls.name.text))
        return next((each.text for each in said if each is not None), DEFAULT_KEY)

    def own_attributes(self, cls: DraftClass) -> list[DraftAttribute]:
        """Without the key, which says which object it is, and does not change."""
        key = self.key(cls) if cls.attributes else DEFAULT_KEY
        return [each for each in cls.attributes if each.name.text != key]

    def attributes(self, name: str) -> list[str]:
        """Inherited ones included."""
        return [each.name.text for cls in self.upwards(name) for each in self.own_attributes(cls)]

    def references(self, name: str) -> list[str]:
        """Associations that count as attributes: those of which the table of the class has a column."""
        held = (each for cls in self.upwards(name) for each in self._held.get(cls.name.text, ()))
        return [called for _, called in sorted(held)]

    @cached_property
    def _held(self) -> Mapping[str, list[tuple[int, str]]]:
        """Of each class the associations that its own table has a column of, with their places in the draft."""
        found: dict[str, list[tuple[int, str]]] = {}
        for number, each in enumerate(self.draft.associations):
            if each.holder is not None and find_mark(each.marks, "propagates") is None:
                found.setdefault(each.end(each.holder).cls.text, []).append((number, each.called))
        return found

    def is_subscriber(self, name: str) -> bool:
        if (place := self._tree.get(name)) is not None:
            return place.is_subscriber
        return any(find_mark(each.marks, "subscriber") for each in self.upwards(name))


def find_pointed_end(view: DraftView, said: DraftAssociation, marked: DraftMark) -> End | None:
    """The end that is told or counts as changed: said by its end, class or role, or the one that it must be."""
    word = marked.tags.get("told") or marked.tags.get("towards")
    if word is not None:
        return next((end for end in End if word.text in list_end_names(said, end)), None)
    if marked.name == "propagates":
        return End.TARGET
    can = [end for end in End if view.is_subscriber(said.end(end).cls.text)]
    return can[0] if len(can) == 1 else None


def find_near_end(view: DraftView, said: DraftAssociation, marked: DraftMark) -> End | None:
    """The end whose changes the mark is about."""
    end = find_pointed_end(view, said, marked)
    return None if end is None else end.other


def list_end_names(said: DraftAssociation, end: End) -> list[str]:
    """An end may be called by its class or role, unless the other end is called the same."""
    here, there = said.end(end), said.end(end.other)
    own = {here.cls.text, here.role} - {there.cls.text, there.role, None}
    return [end.value, *(each for each in own if each and each not in (e.value for e in End))]


def list_limiting_names(view: DraftView, cls: str) -> list[str]:
    """What a mark about changes of a class may be limited to."""
    return [*view.attributes(cls), *view.references(cls)]


def split_names(text: str, known: Collection[str]) -> list[str]:
    """The names in a text, parted by blanks; names may have blanks themselves: the longest that is known counts."""
    words, names = text.split(), list[str]()
    while words:
        sizes = (size for size in range(len(words), 1, -1) if " ".join(words[:size]) in known)
        size = next(sizes, 1)
        names.append(" ".join(words[:size]))
        del words[:size]
    return names
