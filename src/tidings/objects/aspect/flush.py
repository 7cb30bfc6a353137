"""A flush is looked at twice: before its first statement that writes, and when all is written.

What is deleted or unlinked is followed in the database as it was, everything else as it is afterwards. Between the two
looks lies one flush, not one statement: SQLAlchemy orders the statements of a flush as it likes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import uuid4

from sqlalchemy import Connection

from tidings.objects.aspect.changes import After, Before, Happened
from tidings.objects.aspect.instances import Context
from tidings.objects.aspect.reaching import Watches, told
from tidings.objects.aspect.reading import Reading
from tidings.objects.aspect.tables import Tables
from tidings.objects.definition import Limits, Told
from tidings.objects.noticed import Noticed
from tidings.objects.reasons import Object


@dataclass(frozen=True, slots=True)
class Asking:
    """Of what model, for whom, how far, and whether labels are read, too."""

    tables: Tables
    watches: Watches
    limits: Limits
    labelled: bool


class Flush:
    """One flush, from its beginning on."""

    def __init__(self, asking: Asking, context: Context) -> None:
        self._asking, self._context = asking, context
        self._before: Before | None = None
        self._gone: list[tuple[Happened, Told]] = []
        self.labels: dict[Object, str] = {}

    @property
    def is_writing(self) -> bool:
        """A flush that finds nothing to do ends without a word."""
        return self._context.has_work

    @property
    def is_looked_at(self) -> bool:
        return self._before is not None

    def look_before(self, connection: Connection) -> None:
        self._before = Before(Reading(self._asking.tables, connection), self._context)
        self._gone = self._followed(self._before.reading, self._before.happened())

    def look_after(self, connection: Connection, author: Object | None) -> list[Noticed]:
        """All that the flush has changed."""
        assert self._before is not None
        after = After(Reading(self._asking.tables, connection), self._before)
        found = self._followed(after.reading, after.happened())
        found += ((each, follows) for each, follows in self._gone if after.is_so(each))
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return [_noticed(each, follows, at, author) for each, follows in found]

    def _followed(self, reading: Reading, happened: list[Happened]) -> list[tuple[Happened, Told]]:
        changes = [each.change for each in happened]
        found = told(reading, changes, self._asking.watches, self._asking.limits) if changes else []
        if self._asking.labelled:
            self.labels |= reading.labels(_named(happened, found))
        return list(zip(happened, found, strict=True))


def _named(happened: Iterable[Happened], found: Iterable[Told]) -> set[Object]:
    """What a text about all this may name."""
    others = {each.other for each in happened if each.other is not None}
    reached = {one for each in found for one in each.reached}
    return others | reached | {hit.subscriber for each in found for hit in each.hits}


def _noticed(each: Happened, follows: Told, at: str, author: Object | None) -> Noticed:
    return Noticed(
        uuid4().hex,
        at,
        each.cls,
        each.change,
        follows,
        each.before,
        each.after,
        each.association,
        each.other,
        author,
    )
