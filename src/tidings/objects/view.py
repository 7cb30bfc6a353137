"""A draft as checks look at it: by name, upwards, and by the ends that marks point to."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from tidings.objects.drafts import (
    Draft,
    DraftAssociation,
    DraftAttribute,
    DraftClass,
    DraftMark,
    mark,
    tag,
)
from tidings.objects.model import End

KEY = "id"
"""What the key of a class is called if nobody says otherwise."""


class _Place(NamedTuple):
    """Where a class is in the tree of classes, and what it inherits.

    `first` numbers the classes in the order of a walk from the roots down, `last` is the highest number below the
    class: another one is below it if its number is between the two.
    """

    first: int
    last: int
    key: str
    is_subscriber: bool


class View:
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
    def _tree(self) -> Mapping[str, _Place]:
        below: dict[str, list[str]] = {}
        for name in self.classes:
            for parent in self.parents(name):
                below.setdefault(parent, []).append(name)
        roots = [name for name in self.classes if not self.parents(name)]
        found: dict[str, _Place] = {}
        waiting = [(root, KEY, False) for root in reversed(roots)]
        order: list[str] = []
        while waiting:
            name, key, is_subscriber = waiting.pop()
            marks = self.classes[name].marks
            said = tag(marks, "key")
            key, is_subscriber = said.text if said else key, is_subscriber or bool(mark(marks, "subscriber"))
            found[name] = _Place(len(order), len(order), key, is_subscriber)
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
        said = (tag(each.marks, "key") for each in self.upwards(cls.name.text))
        return next((each.text for each in said if each is not None), KEY)

    def own_attributes(self, cls: DraftClass) -> list[DraftAttribute]:
        """Without the key, which says which object it is, and does not change."""
        key = self.key(cls) if cls.attributes else KEY
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
            if each.holder is not None and mark(each.marks, "propagates") is None:
                found.setdefault(each.end(each.holder).cls.text, []).append((number, each.called))
        return found

    def is_subscriber(self, name: str) -> bool:
        if (place := self._tree.get(name)) is not None:
            return place.is_subscriber
        return any(mark(each.marks, "subscriber") for each in self.upwards(name))


def pointed_end(view: View, said: DraftAssociation, marked: DraftMark) -> End | None:
    """The end that is told or counts as changed: said by its end, class or role, or the one that it must be."""
    word = marked.tags.get("told") or marked.tags.get("towards")
    if word is not None:
        return next((end for end in End if word.text in end_names(said, end)), None)
    if marked.name == "propagates":
        return End.TARGET
    can = [end for end in End if view.is_subscriber(said.end(end).cls.text)]
    return can[0] if len(can) == 1 else None


def near_end(view: View, said: DraftAssociation, marked: DraftMark) -> End | None:
    """The end whose changes the mark is about."""
    end = pointed_end(view, said, marked)
    return None if end is None else end.other


def end_names(said: DraftAssociation, end: End) -> list[str]:
    """An end may be called by its class or role, unless the other end is called the same."""
    here, there = said.end(end), said.end(end.other)
    own = {here.cls.text, here.role} - {there.cls.text, there.role, None}
    return [end.value, *(each for each in own if each and each not in (e.value for e in End))]


def limiting_names(view: View, cls: str) -> list[str]:
    """What a mark about changes of a class may be limited to."""
    return [*view.attributes(cls), *view.references(cls)]


def parted(text: str, known: Collection[str]) -> list[str]:
    """The names in a text, parted by blanks; names may have blanks themselves: the longest that is known counts."""
    words, names = text.split(), list[str]()
    while words:
        sizes = (size for size in range(len(words), 1, -1) if " ".join(words[:size]) in known)
        size = next(sizes, 1)
        names.append(" ".join(words[:size]))
        del words[:size]
    return names
