"""Queries on a draft for its validation: by name, and along inheritance, even if it is broken.

They take time near linear in the draft, although inheritance may be thousands of classes deep: walking up from each
class would be quadratic. Only classes with several parents, and those below them, are walked up from.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import inf
from typing import NamedTuple

from tidings.objects.model.class_model import End
from tidings.objects.model.draft import (
    DEFAULT_KEY,
    Draft,
    DraftAssociation,
    DraftAttribute,
    DraftClass,
    DraftMark,
    find_mark,
    find_tag,
)


class _Position(NamedTuple):
    """Position in the inheritance forest: the number of a class, and the highest number among its descendants.

    Numbers are in depth-first order, so descendants have those between the two. The classes of a cycle share one.
    """

    first: int
    last: int


class DraftView:
    """A draft by name and along inheritance."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft

    @cached_property
    def classes(self) -> Mapping[str, DraftClass]:
        by_name: dict[str, DraftClass] = {}
        for cls in self.draft.classes:
            by_name.setdefault(cls.name.text, cls)
        return by_name

    @cached_property
    def _parents(self) -> Mapping[str, Sequence[str]]:
        return {
            name: [
                each for each in dict.fromkeys(parent.text for parent in cls.parents) if each in self.classes
            ]
            for name, cls in self.classes.items()
        }

    def parents(self, name: str) -> Sequence[str]:
        """Return the parents of a class that exist, each once."""
        return self._parents[name]

    @cached_property
    def _children(self) -> Mapping[str, Sequence[str]]:
        children: dict[str, list[str]] = {name: [] for name in self.classes}
        for name in self.classes:
            for parent in self.parents(name):
                children[parent].append(name)
        return children

    def lineage(self, name: str) -> Iterator[DraftClass]:
        """Yield a class and all its ancestors, each once; nothing if there is no such class."""
        queue, seen = [name], set[str]()
        for ancestor in queue:  # grows during iteration
            if ancestor in self.classes and ancestor not in seen:
                seen.add(ancestor)
                yield self.classes[ancestor]
                queue += self.parents(ancestor)

    @cached_property
    def _components(self) -> Mapping[str, str | None]:
        """Map a class to itself, or to a class of its cycle; to None if it or an ancestor has several parents."""
        components: dict[str, str | None] = {}
        for name in self.classes:
            path: dict[str, None] = {}
            current = name
            while current not in components and current not in path:
                path[current] = None
                if len(self.parents(current)) == 1:
                    current = self.parents(current)[0]
            has_one_line = components.get(current, current) is not None and len(self.parents(current)) < 2
            names, is_in_cycle = list(path), False
            for member in names:
                is_in_cycle = is_in_cycle or (member == current and bool(self.parents(member)))
                components[member] = (current if is_in_cycle else member) if has_one_line else None
        return components

    @cached_property
    def _forest(self) -> Mapping[str, _Position]:
        """Positions of the classes with one line of ancestors; cycles are roots."""
        above: dict[str, str | None] = {}
        below: dict[str | None, list[str]] = {}
        for name, component in self._components.items():
            if name == component:
                parent = self._components[self.parents(name)[0]] if self.parents(name) else None
                above[name] = None if parent == name else parent
                below.setdefault(above[name], []).append(name)
        order: dict[str, int] = {}
        stack = below.get(None, [])[::-1]
        while stack:
            name = stack.pop()
            order[name] = len(order)
            stack += below.get(name, ())
        last = dict(order)
        for name in reversed(order):  # children come after their parents
            if (parent := above[name]) is not None:
                last[parent] = max(last[parent], last[name])
        components = (
            (name, component) for name, component in self._components.items() if component is not None
        )
        return {name: _Position(order[component], last[component]) for name, component in components}

    def is_below(self, name: str, ancestor: str) -> bool:
        """Return whether a class is another class or one of its descendants."""
        if (position := self._forest.get(name)) is None:
            return any(cls.name.text == ancestor for cls in self.lineage(name))
        above = self._forest.get(ancestor)
        return above is not None and above.first <= position.first <= above.last

    @cached_property
    def _keys(self) -> Mapping[str, str]:
        """Keys of the classes that have or inherit a `key` tag: that of the nearest ancestor, level by level."""
        tags = {name: find_tag(cls.marks, "key") for name, cls in self.classes.items()}
        keys = {name: tag.text for name, tag in tags.items() if tag is not None}
        level = list(keys)
        while level:
            children = dict.fromkeys(
                child for name in level for child in self._children[name] if child not in keys
            )
            reached = set(level)
            inherited = {child: next(p for p in self.parents(child) if p in reached) for child in children}
            keys |= {child: keys[parent] for child, parent in inherited.items()}
            level = list(children)
        return keys

    def key(self, cls: DraftClass) -> str:
        return self._keys.get(cls.name.text, DEFAULT_KEY)

    @cached_property
    def _subscribers(self) -> frozenset[str]:
        queue = [name for name, cls in self.classes.items() if find_mark(cls.marks, "subscriber")]
        reached = set(queue)
        for name in queue:  # grows during iteration
            new = [child for child in self._children[name] if child not in reached]
            reached.update(new)
            queue += new
        return frozenset(reached)

    def is_subscriber(self, name: str) -> bool:
        return name in self._subscribers

    def own_attributes(self, cls: DraftClass) -> list[DraftAttribute]:
        """List the attributes of a class itself, without the key, which never changes."""
        key = self.key(cls)
        return [attribute for attribute in cls.attributes if attribute.name.text != key]

    @cached_property
    def _attributes(self) -> _Declarations:
        own = (
            (cls.name.text, each.name.text)
            for cls in self.classes.values()
            for each in self.own_attributes(cls)
        )
        return _Declarations(self, own)

    @cached_property
    def _references(self) -> _Declarations:
        """Associations that count as attributes: their foreign key is in the table of the class."""
        owned = (
            (each.end(each.owning_end).cls.text, each.effective_name)
            for each in self.draft.associations
            if each.owning_end is not None and find_mark(each.marks, "propagates") is None
        )
        return _Declarations(self, owned)

    def has_attribute(self, cls: str, attribute: str) -> bool:
        """Return whether a class has or inherits an attribute."""
        return self._attributes.include(cls, attribute)

    def may_limit(self, cls: str, name: str) -> bool:
        """Return whether a mark about changes of a class may be limited to an attribute or association."""
        return self._attributes.include(cls, name) or self._references.include(cls, name)

    def find_repeated(self, attribute: str) -> Mapping[str, str]:
        """Map classes with an attribute to their nearest ancestor, or to another class of their cycle, with it, too."""
        return self._attributes.nearest(attribute)

    def find_ambiguous_names(self) -> frozenset[str]:
        """Find the names that associations share with others, or with attributes, in one class or its ancestors."""
        uses = [(cls, each.effective_name) for each in self.draft.associations for cls in each.users]
        own = [(cls, name) for cls in self.classes for name in self._attributes.names(cls)]
        repeated = (name for (_, name), count in Counter([*uses, *own]).items() if count > 1)
        names, declarations = {name for _, name in uses}, _Declarations(self, [*uses, *own])
        return frozenset(repeated).union(name for name in names if declarations.nearest(name))

    def attributes(self, cls: str) -> Iterator[str]:
        """Yield own and inherited attributes."""
        return (name for above in self.lineage(cls) for name in self._attributes.names(above.name.text))

    def limiting_names(self, cls: str) -> Iterator[str]:
        """Yield the names that `may_limit` accepts."""
        yield from self.attributes(cls)
        yield from (name for above in self.lineage(cls) for name in self._references.names(above.name.text))

    def split_names(self, text: str, cls: str) -> list[str]:
        """Split a text into names at blanks; names may contain blanks themselves: the longest known one wins."""
        words, names, start = text.split(), list[str](), 0
        longest = max(self._attributes.most_words, self._references.most_words)
        while start < len(words):
            ends = range(min(len(words), start + longest), start + 1, -1)
            end = next((end for end in ends if self.may_limit(cls, " ".join(words[start:end]))), start + 1)
            names.append(" ".join(words[start:end]))
            start = end
        return names


class _Declarations:
    """Names that classes declare, found along inheritance."""

    def __init__(self, view: DraftView, pairs: Iterable[tuple[str, str]]) -> None:
        self._view = view
        self._classes: dict[str, dict[str, None]] = {}
        self._names: dict[str, list[str]] = {}
        for cls, name in pairs:
            self._classes.setdefault(name, {})[cls] = None
            self._names.setdefault(cls, []).append(name)
        self.most_words = max((len(name.split()) for name in self._classes), default=1)
        self._ranges: dict[str, list[_Position]] = {}

    def names(self, cls: str) -> Sequence[str]:
        return self._names.get(cls, ())

    def include(self, cls: str, name: str) -> bool:
        declaring = self._classes.get(name, {})
        if cls in declaring or not declaring:
            return bool(declaring)
        if (position := self._view._forest.get(cls)) is None:
            return any(above.name.text in declaring for above in self._view.lineage(cls))
        ranges = self._ranges_of(name)
        index = bisect_right(ranges, (position.first, inf)) - 1
        return index >= 0 and position.first <= ranges[index].last

    def _ranges_of(self, name: str) -> list[_Position]:
        """Return the disjoint ranges of positions at which a name is declared or inherited."""
        if name not in self._ranges:
            forest, ranges = self._view._forest, list[_Position]()
            for position in sorted(forest[cls] for cls in self._classes[name] if cls in forest):
                if not ranges or position.first > ranges[-1].last:
                    ranges.append(position)
            self._ranges[name] = ranges
        return self._ranges[name]

    def nearest(self, name: str) -> Mapping[str, str]:
        declaring, forest = self._classes.get(name, {}), self._view._forest
        nearest: dict[str, str] = {}
        stack: list[str] = []
        for cls in sorted((cls for cls in declaring if cls in forest), key=lambda each: forest[each].first):
            while stack and forest[stack[-1]].last < forest[cls].first:
                stack.pop()
            if stack:
                nearest[cls] = stack[-1]
                if forest[stack[-1]] == forest[cls]:
                    nearest.setdefault(stack[-1], cls)
            stack.append(cls)
        for cls in (cls for cls in declaring if cls not in forest):
            above = [each.name.text for each in self._view.lineage(cls)][1:]
            nearest.update((cls, each) for each in reversed(above) if each in declaring)
        return nearest


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
