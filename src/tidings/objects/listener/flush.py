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

from tidings.objects.listener.changes import FlushChange, StateAfterFlush, StateBeforeFlush
from tidings.objects.listener.instances import FlushContext
from tidings.objects.listener.mapped_tables import MappedTables
from tidings.objects.listener.snapshot import DatabaseSnapshot
from tidings.objects.listener.traversal import WatchSource, trace_changes
from tidings.objects.object_change import ObjectChange
from tidings.objects.propagation import Limits, PropagationResult
from tidings.objects.reasons import Object


@dataclass(frozen=True, slots=True)
class ListenerOptions:
    """Of what model, for whom, how far, and whether labels are read, too."""

    tables: MappedTables
    watches: WatchSource
    limits: Limits
    labelled: bool


class Flush:
    """One flush, from its beginning on."""

    def __init__(self, asking: ListenerOptions, context: FlushContext) -> None:
        self._asking, self._context = asking, context
        self._before: StateBeforeFlush | None = None
        self._gone: list[tuple[FlushChange, PropagationResult]] = []
        self.labels: dict[Object, str] = {}

    @property
    def is_writing(self) -> bool:
        """A flush that finds nothing to do ends without a word."""
        return self._context.has_work

    @property
    def is_looked_at(self) -> bool:
        return self._before is not None

    def look_before(self, connection: Connection) -> None:
        self._before = StateBeforeFlush(DatabaseSnapshot(self._asking.tables, connection), self._context)
        self._gone = self._followed(self._before.reading, self._before.happened())

    def look_after(self, connection: Connection, author: Object | None) -> list[ObjectChange]:
        """All that the flush has changed."""
        assert self._before is not None
        after = StateAfterFlush(DatabaseSnapshot(self._asking.tables, connection), self._before)
        found = self._followed(after.reading, after.happened())
        found += ((each, follows) for each, follows in self._gone if after.is_so(each))
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return [_build_object_change(each, follows, at, author) for each, follows in found]

    def _followed(
        self, reading: DatabaseSnapshot, happened: list[FlushChange]
    ) -> list[tuple[FlushChange, PropagationResult]]:
        changes = [each.change for each in happened]
        found = trace_changes(reading, changes, self._asking.watches, self._asking.limits) if changes else []
        if self._asking.labelled:
            self.labels |= reading.labels(_collect_named_objects(happened, found))
        return list(zip(happened, found, strict=True))


def _collect_named_objects(
    happened: Iterable[FlushChange], found: Iterable[PropagationResult]
) -> set[Object]:
    """What a text about all this may name."""
    others = {each.other for each in happened if each.other is not None}
    reached = {one for each in found for one in each.reached}
    return others | reached | {hit.subscriber for each in found for hit in each.hits}


def _build_object_change(
    each: FlushChange, follows: PropagationResult, at: str, author: Object | None
) -> ObjectChange:
    return ObjectChange(
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
