"""Publications of several callers, on their way into the journal in one transaction.

What was found out about each before, without asking the store, is looked at again there: whether its token is good,
and whether the event schema is still the one that it was checked against. So nobody has to ask for that beforehand, one
by one: a look for all of them costs as much as one for each.
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
    """Publications that came together, the id of the token they came with, and the version of the schema that they
    were checked against. Each stands for itself.
    """

    publications: Sequence[Publication]
    token: str
    schema: int


AppendOutcomes = list[AppendResult | InputError] | None
"""Where each of the publications stands, or why it is refused; none if something has changed meanwhile."""


class GroupAppend:
    """The way into the journal for those who come with a token."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def take(self, offered: Sequence[PreparedBatch]) -> list[AppendOutcomes]:
        """The outcomes for each; all that stand somewhere are durable. Whoever gets none looks again, and says what."""
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
