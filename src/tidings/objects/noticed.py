"""A change with all that follows from it, as each of the implementations gives it: triggers, the listener, Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidings.objects.definition import Change, Told
from tidings.objects.reasons import Object


@dataclass(frozen=True, slots=True)
class Noticed:
    """What happened and who is told of it. Keys are texts.

    `id` says which change of its source it is, and is the same when the change is read again after a crash. `before`
    and `after` have values of attributes: of an update those that are another, otherwise all. Of a link, `association`
    and `other` say with what; `author` is who made the change, if the program said so.
    """

    id: str
    at: str
    cls: str
    change: Change
    told: Told
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    association: str | None = None
    other: Object | None = None
    author: Object | None = None

    def objects(self) -> frozenset[Object]:
        """All that a text about it may name."""
        more = {self.other, self.author} - {None}
        named = self.told.reached | {hit.subscriber for hit in self.told.hits}
        return named | frozenset(each for each in more if each is not None)
