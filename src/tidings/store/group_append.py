"""Group append: publications of several callers in one transaction of the journal.

The transaction checks again what callers found out without the store: that the token is valid, and that the event
schema is the one that the publications were checked against. One query for the group costs as much as one for each
caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from sqlalchemy import Connection, select

from tidings.errors import InputError
from tidings.model import Publication
from tidings.store import bulk, journal
from tidings.store.database import Database
from tidings.store.encoding import Clock, format_instant
from tidings.store.journal import AppendResult
from tidings.store.tables import counters
from tidings.store.tokens import is_expired, tokens

_SCHEMA = select(counters.c.value).where(counters.c.name == "schema").scalar_subquery()
_GOOD = select(tokens.c.id, tokens.c.expires, _SCHEMA).where(tokens.c.revoked.is_(None))


@dataclass(frozen=True, slots=True)
class PreparedBatch:
    """Publications of one caller, its token id, and the schema version that they were checked against.

    Each publication succeeds or fails independently.
    """

    publications: Sequence[Publication]
    token: str
    schema: int


AppendOutcomes = list[AppendResult | InputError] | None
"""Position or error of each publication; None if token or schema have changed meanwhile."""


class GroupAppend:
    """Appends batches of callers with tokens."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def take(self, offered: Sequence[PreparedBatch]) -> list[AppendOutcomes]:
        """Append batches durably; return the outcomes of each. A caller that gets None checks again and reports why."""
        return self._database.transact(lambda connection: self._take(connection, offered))

    def _take(self, connection: Connection, offered: Sequence[PreparedBatch]) -> list[AppendOutcomes]:
        rows = bulk.select_among(connection, _GOOD, tokens.c.id, {one.token for one in offered})
        moment = format_instant(self._clock())
        schemas = {id: version for id, expires, version in rows if not is_expired(expires, moment)}
        holds = [schemas.get(one.token) == one.schema for one in offered]
        kept = [each for one, still in zip(offered, holds, strict=True) if still for each in one.publications]
        outcomes = iter(journal.append_publications(connection, kept) if kept else ())
        return [
            list(islice(outcomes, len(one.publications))) if still else None
            for one, still in zip(offered, holds, strict=True)
        ]
