"""Marks on SQLAlchemy's declarative classes: whom a change concerns, said where the model is written.

    @subscriber
    class Student(Base):
        attends: Mapped[list[Course]] = relationship(secondary=attends, info=implicit())

    class LearningMaterial(Base):
        used_in: Mapped[list[Course]] = relationship(secondary=used_in, info=propagates(kinds=("update", "link")))

Marks are plain values in places that SQLAlchemy keeps for others; it is not needed to import them. Two marks of one
relationship are joined by `|`: `info=implicit() | propagates()`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import NoneType
from typing import Any, TypeVar, overload

from tidings.core.arguments import accepts, wrong_type

MARK_ATTRIBUTE = "__tidings__"
"""The attribute of a class, and the beginning of keys of `info`, where marks are."""

_C = TypeVar("_C", bound=type)

RelationshipInfo = dict[Any, Any]


@overload
def subscriber(cls: _C, /) -> _C: ...
@overload
def subscriber(*, label: str | None = None) -> Callable[[_C], _C]: ...


@accepts("@subscriber, or @subscriber(label='name')", cls=(type, NoneType))
def subscriber(cls: _C | None = None, /, *, label: str | None = None) -> _C | Callable[[_C], _C]:
    """Mark a class whose objects can be told: people, groups. `label` is the attribute they are known by."""
    return _marking("subscriber", label) if cls is None else _marking("subscriber", label)(cls)


@accepts()
def stored(*, label: str) -> Callable[[_C], _C]:
    """Say by which attribute the objects of a class are known, where that is neither `name` nor `title`."""
    return _marking("stored", label)


def _marking(name: str, label: str | None) -> Callable[[_C], _C]:
    def marked(cls: _C) -> _C:
        if not isinstance(cls, type):
            raise wrong_type("cls", cls, type, f"@{name} is for a class")
        before = vars(cls).get(MARK_ATTRIBUTE, {})
        setattr(cls, MARK_ATTRIBUTE, before | {name: {} if label is None else {"label": label}})
        return cls

    return marked


@accepts()
def implicit(
    *,
    told: str | None = None,
    attributes: Iterable[str] | None = None,
    kinds: Iterable[str] | None = None,
    name: str | None = None,
) -> RelationshipInfo:
    """The objects at one end subscribe to those at the other without being asked: who attends a course hears of it.

    `told` is `source` (the class with this relationship) or `target`; it need not be said if one of them only is a
    subscriber. `attributes` and `kinds` (insert, update, delete, link, unlink) limit what counts. `name` is what the
    association is called, if not as the relationship.
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
    """A change of an object counts as a change of those at the end `towards`, which is `target` unless said otherwise.

    `attributes`, `kinds` and `name` are as for `implicit`.
    """
    return _info("propagates", name, {"towards": towards, **_limits(attributes, kinds)})


@accepts()
def association(*, name: str | None = None) -> RelationshipInfo:
    """An association without a mark: of two relationships that are one association, this one is its source's."""
    return _info("", name, {})


def _limits(attributes: Iterable[str] | None, kinds: Iterable[str] | None) -> dict[str, str | None]:
    """A single name is one name, not a sequence of letters."""
    given = {"attributes": attributes, "kinds": kinds}
    return {key: None if said is None else _joined(key, said) for key, said in given.items()}


def _joined(key: str, said: Iterable[str]) -> str:
    words = [said] if isinstance(said, str) else list(said)
    for word in words:
        if not isinstance(word, str):
            raise wrong_type(key, word, str)
    return " ".join(words)


def _info(mark: str, name: str | None, tags: dict[str, str | None]) -> RelationshipInfo:
    said = {key: value for key, value in tags.items() if value is not None}
    named = {} if name is None else {(MARK_ATTRIBUTE, "name"): name}
    return {(MARK_ATTRIBUTE, mark): said} | named
