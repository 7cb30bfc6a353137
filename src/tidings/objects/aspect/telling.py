"""Where changes go after a commit: to a function, or into a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from tidings.errors import InputError
from tidings.objects.model import Model
from tidings.objects.noticed import Noticed
from tidings.objects.reasons import Object

Labels = Mapping[Object, str]


class Teller(Protocol):
    """`Tidings`, or what stands for it."""

    def tell(self, source: str, model: Model, noticed: Iterable[Noticed], labels: Labels) -> Any: ...


@dataclass
class Batch:
    """Changes, and how people call what is in them."""

    noticed: list[Noticed] = field(default_factory=list)
    labels: dict[Object, str] = field(default_factory=dict)

    def take(self, other: Batch) -> None:
        self.noticed += other.noticed
        self.labels |= other.labels


@dataclass(frozen=True)
class Telling:
    """Where notices go. A store needs labels: they are read while the objects are there."""

    tell: Callable[[Model, Batch], object]
    labelled: bool

    @classmethod
    def by(cls, tell: Callable[[list[Noticed]], object] | Teller, source: str | None) -> Telling:
        if callable(tell):
            return cls(lambda model, batch: tell(batch.noticed), False)
        if source is None:
            raise InputError(
                "a store keeps changes under the name of their source",
                accepted="source=, a short name of the database",
            )
        return cls(lambda model, batch: tell.tell(source, model, batch.noticed, batch.labels), True)
