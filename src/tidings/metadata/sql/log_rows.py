"""The log of metadata as it is stored. Positions count from one without gaps, in the order of the commits."""

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
    """What is asked for stood in the log once, and does no more: a snapshot has it."""


class MetadataLog:
    """The log of a store. What stands in it was checked by who put it there."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, drafts: Iterable[LogDraft]) -> list[int]:
        """The positions of the drafts, durable now."""
        given = list(drafts)
        return self._database.transact(lambda c: [each.position for each in append_drafts(c, given)])

    def head(self) -> int:
        """The last position; 0 for a log in which nothing ever stood."""
        with self._database.read() as connection:
            return counters.current(connection, LOG_COUNTER)

    def first(self) -> int:
        """The first position that can be read, now or later: the head and one more if there is none now."""
        with self._database.read() as connection:
            return first_position(connection)

    def read(self, after: int, limit: int = LOG_PAGE_ENTRIES) -> list[LogEntry]:
        """The entries after a position, in order. It is refused if some of them were trimmed."""
        with self._database.read() as connection:
            entries = read_entries(connection, after, limit)
            # Nothing is missing behind a position that is there; who has seen that need not look for the first.
            if entries and entries[0].position == after + 1:
                return entries
            begins = first_position(connection)
        check_not_trimmed(begins, after)
        return entries

    def last_of(self, uris: Collection[str], after: int) -> dict[str, Operation]:
        """What the last entry after a position does with each of these documents, if there is one."""
        with self._database.read() as connection:
            return last_position(connection, uris, after)

    def trim(self, upto: int) -> int:
        """Forget the entries up to a position, and say how many those were. What is not applied stays."""
        return self._database.transact(lambda connection: trim_log(connection, upto))


def check_not_trimmed(begins: int, after: int) -> None:
    """Refuse to read after a position in a log that begins later."""
    if after + 1 < begins:
        hint = "start with a snapshot"
        raise Trimmed(f"the log begins at position {begins}", received=f"after {after}", hint=hint)


def append_drafts(connection: Connection, drafts: Sequence[LogDraft]) -> list[LogEntry]:
    """Put drafts at the end of the log."""
    last = counters.lock(connection, LOG_COUNTER)
    entries = [draft.at(last + i) for i, draft in enumerate(drafts, start=1)]
    _write(connection, entries)
    return entries


def write_entries(connection: Connection, entries: Sequence[LogEntry]) -> None:
    """Write entries of another log, which follow the end of this one."""
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
    """The entries after a position that are there."""
    wanted = select(*_COLUMNS).where(metadata_log.c.position > after)
    rows = connection.execute(wanted.order_by(metadata_log.c.position).limit(limit))
    return [_entry(*row) for row in rows]


def entry_differs(connection: Connection, entry: LogEntry) -> bool:
    """Whether something else stands at the place of an entry. What was trimmed does not."""
    found = read_entries(connection, entry.position - 1, 1)
    if not found or found[0].position != entry.position:
        return False
    kept = replace(entry, uri=escape_unstorable(entry.uri), media_type=escape_unstorable(entry.media_type))
    return found[0] != kept


def read_schema_entries(connection: Connection, after: int) -> list[LogEntry]:
    """The schemas after a position."""
    wanted = select(*_COLUMNS).where(metadata_log.c.position > after, metadata_log.c.what == "schema")
    return [_entry(*row) for row in connection.execute(wanted.order_by(metadata_log.c.position))]


def changed_document_uris(connection: Connection, after: int, upto: int) -> set[str]:
    """The URIs of documents that were registered or removed between two positions."""
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
    """The first position that can be read, now or later."""
    # The head is read first: what is appended in between would only make a log that is not empty look so.
    head = counters.current(connection, LOG_COUNTER)
    found: int | None = connection.execute(select(func.min(metadata_log.c.position))).scalar()
    return head + 1 if found is None else found


def restart_log(connection: Connection, position: int) -> None:
    """Forget all entries: the next one follows a position."""
    counters.lock(connection, LOG_COUNTER)
    connection.execute(delete(metadata_log))
    counters.advance(connection, LOG_COUNTER, position)


def trim_log(connection: Connection, upto: int) -> int:
    last = min(upto, counters.current(connection, APPLIED_COUNTER))
    return connection.execute(delete(metadata_log).where(metadata_log.c.position <= last)).rowcount
