"""The stored log of metadata. Positions start at 1 without gaps, in the order of commits."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from sqlalchemy import Connection, delete, func, select

from tidings.errors import Gone, InputError
from tidings.metadata.log import LogDraft, LogEntry, Operation
from tidings.metadata.sql.log_tables import APPLIED_COUNTER, LOG_COUNTER, metadata_log
from tidings.store import bulk, counters
from tidings.store.database import Database
from tidings.store.encoding import escape_unstorable, now_text

LOG_PAGE_ENTRIES = 1_000
_COLUMNS = tuple(metadata_log.c[name] for name in ("position", "what", "uri", "media_type", "body"))


class Trimmed(Gone):
    """Requested entries were trimmed from the log; a snapshot has their effect."""


class MetadataLog:
    """The log of a store. Callers validate entries before they append them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, drafts: Iterable[LogDraft]) -> list[int]:
        """Append drafts durably, and return their positions."""
        given = list(drafts)
        return self._database.transact(lambda c: [each.position for each in append_drafts(c, given)])

    def head(self) -> int:
        """Return the last position; 0 for a log that never had an entry."""
        with self._database.read() as connection:
            return counters.current(connection, LOG_COUNTER)

    def first(self) -> int:
        """Return the first position that can be read; for an empty log, that of the next entry."""
        with self._database.read() as connection:
            return first_position(connection)

    def read(self, after: int, limit: int = LOG_PAGE_ENTRIES) -> list[LogEntry]:
        """Return the entries after a position; raise Trimmed if some of them were trimmed."""
        with self._database.read() as connection:
            entries = read_entries(connection, after, limit)
            # If the next entry exists, none is missing, and the first position need not be read.
            if entries and entries[0].position == after + 1:
                return entries
            begins = first_position(connection)
        check_not_trimmed(begins, after)
        return entries

    def last_of(self, uris: Collection[str], after: int) -> dict[str, Operation]:
        """Return the operation of the last entry after a position for each of these documents that has one."""
        with self._database.read() as connection:
            return last_position(connection, uris, after)

    def trim(self, upto: int) -> int:
        """Delete the applied entries up to a position, and return their number."""
        return self._database.transact(lambda connection: trim_log(connection, upto))


def check_not_trimmed(begins: int, after: int) -> None:
    """Raise Trimmed if a log begins later than after a position."""
    if after + 1 < begins:
        hint = "start with a snapshot"
        raise Trimmed(f"the log begins at position {begins}", received=f"after {after}", hint=hint)


def append_drafts(connection: Connection, drafts: Sequence[LogDraft]) -> list[LogEntry]:
    """Append drafts to the log."""
    last = counters.lock(connection, LOG_COUNTER)
    entries = [draft.at(last + i) for i, draft in enumerate(drafts, start=1)]
    _write(connection, entries)
    return entries


def write_entries(connection: Connection, entries: Sequence[LogEntry]) -> None:
    """Append entries of another log, which must follow the end of this one."""
    last = counters.lock(connection, LOG_COUNTER)
    if entries and entries[0].position != last + 1:
        raise gap_error(last, entries[0].position)
    _write(connection, entries)


def gap_error(last: int, position: int) -> InputError:
    return InputError(
        "entries of the log are missing", received=str(position), accepted=f"position {last + 1}"
    )


def _write(connection: Connection, entries: Sequence[LogEntry]) -> None:
    if not entries:
        return
    time = now_text()
    rows = [
        (
            each.position,
            each.what.value,
            escape_unstorable(each.uri),
            escape_unstorable(each.media_type),
            each.body,
            time,
        )
        for each in entries
    ]
    bulk.insert_rows(connection, metadata_log, rows)
    counters.advance(connection, LOG_COUNTER, entries[-1].position)


def read_entries(connection: Connection, after: int, limit: int) -> list[LogEntry]:
    """Read the existing entries after a position."""
    wanted = select(*_COLUMNS).where(metadata_log.c.position > after)
    rows = connection.execute(wanted.order_by(metadata_log.c.position).limit(limit))
    return [_entry(*row) for row in rows]


def entry_differs(connection: Connection, entry: LogEntry) -> bool:
    """Whether the log has a different entry at the position of this one; trimmed entries do not count."""
    found = read_entries(connection, entry.position - 1, 1)
    if not found or found[0].position != entry.position:
        return False
    kept = replace(entry, uri=escape_unstorable(entry.uri), media_type=escape_unstorable(entry.media_type))
    return found[0] != kept


def read_schema_entries(connection: Connection, after: int) -> list[LogEntry]:
    """Read the schemas after a position."""
    wanted = select(*_COLUMNS).where(metadata_log.c.position > after, metadata_log.c.what == "schema")
    return [_entry(*row) for row in connection.execute(wanted.order_by(metadata_log.c.position))]


def changed_document_uris(connection: Connection, after: int, upto: int) -> set[str]:
    """Return the URIs of documents that were registered or removed between two positions."""
    c = metadata_log.c
    wanted = select(c.uri).where(c.position > after, c.position <= upto, c.what != "schema").distinct()
    return set(connection.execute(wanted).scalars())


def last_position(connection: Connection, uris: Collection[str], after: int) -> dict[str, Operation]:
    c, by_name = metadata_log.c, {escape_unstorable(uri): uri for uri in uris}
    wanted = select(c.position, c.uri, c.what).where(c.position > after, c.what != "schema")
    rows = bulk.select_among(connection, wanted, c.uri, list(by_name))
    return {by_name[uri]: Operation(what) for _, uri, what in sorted(map(tuple, rows))}


def _entry(position: int, what: str, uri: str, media_type: str, body: bytes) -> LogEntry:
    return LogEntry(position, Operation(what), uri, media_type, bytes(body))


def first_position(connection: Connection) -> int:
    """Return the first position that can be read, now or later."""
    # The head is read first: otherwise an entry appended in between could make a position look trimmed.
    head = counters.current(connection, LOG_COUNTER)
    found: int | None = connection.execute(select(func.min(metadata_log.c.position))).scalar()
    return head + 1 if found is None else found


def restart_log(connection: Connection, position: int) -> None:
    """Delete all entries; the next one follows a position."""
    counters.lock(connection, LOG_COUNTER)
    connection.execute(delete(metadata_log))
    counters.advance(connection, LOG_COUNTER, position)


def trim_log(connection: Connection, upto: int) -> int:
    last = min(upto, counters.current(connection, APPLIED_COUNTER))
    return connection.execute(delete(metadata_log).where(metadata_log.c.position <= last)).rowcount
