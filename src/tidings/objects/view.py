"""A draft as checks look at it: by name, upwards, and by the ends that marks point to."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property

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


class View:
    """A draft as checks look at it: by name, and upwards, also where classes run in a circle."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft

    @cached_property
    def classes(self) -> Mapping[str, DraftClass]:
        found: dict[str, DraftClass] = {}
        for each in self.draft.classes:
            found.setdefault(each.name.text, each)
        return found

    def lineage(self, name: str) -> list[DraftClass]:
        """A class and all above it, each once; empty if there is no such class."""
        waiting, found = [name], dict[str, DraftClass]()
        for each in waiting:  # grows while it is gone through
            if each in self.classes and each not in found:
                found[each] = self.classes[each]
                waiting += (parent.text for parent in self.classes[each].parents)
        return list(found.values())

    def key(self, cls: DraftClass) -> str:
        said = (tag(each.marks, "key") for each in self.lineage(cls.name.text))
        return next((each.text for each in said if each is not None), KEY)

    def own_attributes(self, cls: DraftClass) -> list[DraftAttribute]:
        """Without the key, which says which object it is, and does not change."""
        key = self.key(cls)
        return [each for each in cls.attributes if each.name.text != key]

    def attributes(self, name: str) -> list[str]:
        """Inherited ones included."""
        return [each.name.text for cls in self.lineage(name) for each in self.own_attributes(cls)]

    def references(self, name: str) -> list[str]:
        """Associations that count as attributes: those of which the table of the class has a column."""
        above = {each.name.text for each in self.lineage(name)}
        return [
            each.called
            for each in self.draft.associations
            if each.holder is not None
            and each.end(each.holder).cls.text in above
            and mark(each.marks, "propagates") is None
        ]

    def is_subscriber(self, name: str) -> bool:
        return any(mark(each.marks, "subscriber") for each in self.lineage(name))


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
