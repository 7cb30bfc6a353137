"""Marks for SQLAlchemy's declarative classes, which define who is notified of a change.

    @subscriber
    class Student(Base):
        attends: Mapped[list[Course]] = relationship(secondary=attends, info=implicit())

    class LearningMaterial(Base):
        used_in: Mapped[list[Course]] = relationship(secondary=used_in, info=propagates(kinds=("update", "link")))

Marks are plain values in class attributes and in `info`; importing this module does not import SQLAlchemy. Join two
marks of one relationship by `|`: `info=implicit() | propagates()`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import NoneType
from typing import Any, TypeVar, overload

from tidings.core.arguments import accepts, wrong_type

MARK_ATTRIBUTE = "__tidings__"
"""The attribute of a class, and the first part of keys of `info`, with the marks."""

_C = TypeVar("_C", bound=type)

RelationshipInfo = dict[Any, Any]


@overload
def subscriber(cls: _C, /) -> _C: ...
@overload
def subscriber(*, label: str | None = None) -> Callable[[_C], _C]: ...


@accepts("@subscriber, or @subscriber(label='name')", cls=(type, NoneType))
def subscriber(cls: _C | None = None, /, *, label: str | None = None) -> _C | Callable[[_C], _C]:
    """Mark a class whose objects can be notified: people, groups. `label` is the attribute with their names."""
    return _marker("subscriber", label) if cls is None else _marker("subscriber", label)(cls)


@accepts()
def stored(*, label: str) -> Callable[[_C], _C]:
    """Set the attribute with the names of a class's objects, if it is neither `name` nor `title`."""
    return _marker("stored", label)


def _marker(name: str, label: str | None) -> Callable[[_C], _C]:
    def mark(cls: _C) -> _C:
        if not isinstance(cls, type):
            raise wrong_type("cls", cls, type, f"@{name} is for a class")
        marks = vars(cls).get(MARK_ATTRIBUTE, {})
        setattr(cls, MARK_ATTRIBUTE, marks | {name: {} if label is None else {"label": label}})
        return cls

    return mark


@accepts()
def implicit(
    *,
    told: str | None = None,
    attributes: Iterable[str] | None = None,
    kinds: Iterable[str] | None = None,
    name: str | None = None,
) -> RelationshipInfo:
    """Mark an implicit subscription of the objects at one end to those at the other: students to their courses.

    `told` is the end that is notified: `source` (the class with this relationship) or `target`. You can omit it if only
    one of the two is a subscriber. `attributes` and `kinds` (insert, update, delete, link, unlink) limit which changes
    count. `name` is the name of the association, by default that of the relationship.
    """
    return _info("implicit", name, {"told": told, **_limits(attributes, kinds)})


@accepts()
def propagates(
    *,
    towards: str | None = None,
    attributes: Iterable[str] | None = None,
    kinds: Iterable[str] | None = None,
    name: str | None = None,
) -> RelationshipInfo:
    """Mark propagation: a change of an object is also a change of the linked objects at the end `towards`.

    `towards` is `target` by default. `attributes`, `kinds` and `name` are as for `implicit`.
    """
    return _info("propagates", name, {"towards": towards, **_limits(attributes, kinds)})


@accepts()
def association(*, name: str | None = None) -> RelationshipInfo:
    """Declare the direction of an association without a mark: the class with this relationship is its source."""
    return _info("", name, {})


def _limits(attributes: Iterable[str] | None, kinds: Iterable[str] | None) -> dict[str, str | None]:
    limits = {"attributes": attributes, "kinds": kinds}
    return {key: None if names is None else _join(key, names) for key, names in limits.items()}


def _join(key: str, names: Iterable[str]) -> str:
    """Join names by blanks; a string is one name, not a sequence of letters."""
    words = [names] if isinstance(names, str) else list(names)
    for word in words:
        if not isinstance(word, str):
            raise wrong_type(key, word, str)
    return " ".join(words)


def _info(mark: str, name: str | None, tags: dict[str, str | None]) -> RelationshipInfo:
    present = {key: value for key, value in tags.items() if value is not None}
    name_entry = {} if name is None else {(MARK_ATTRIBUTE, "name"): name}
    return {(MARK_ATTRIBUTE, mark): present} | name_entry
