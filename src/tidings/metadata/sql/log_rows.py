"""The stored log of metadata. Positions start at 1 without gaps, in the order of commits."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select

from tidings.errors import Gone, InputError
from tidings.metadata.log import LogDraft, LogEntry, LogPage, Operation
from tidings.metadata.rules.rule_parser import parse_rule
from tidings.metadata.sql.connections import StorePart, reading, reading_snapshot, transacting
from tidings.metadata.sql.tables import (
    APPLIED_COUNTER,
    LOG_COUNTER,
    RULE_CHANGES_COUNTER,
    followed_log,
    metadata_identity,
    metadata_log,
    metadata_resources,
    metadata_rules,
    metadata_schema,
    rule_uses,
)
from tidings.store import bulk, counters, names
from tidings.store.encoding import escape_unstorable, now_text
from tidings.store.tables import counters as counters_table

LOG_PAGE_ENTRIES = 1_000


class LogTrimmed(Gone):
    """Requested entries were trimmed from the log; a snapshot has their effect."""


class MetadataLog(StorePart):
    """The log of a store. Callers validate entries before they append them."""

    @transacting
    def append(self, connection: Connection, drafts: Sequence[LogDraft]) -> list[int]:
        """Append drafts durably, and return their positions."""
        return [entry.position for entry in append_drafts(connection, drafts)]

    def head(self) -> int:
        """Return the last position; 0 for a log that never had an entry."""
        return self._call(counters.current, LOG_COUNTER)

    def first(self) -> int:
        """Return the first position that can be read; for an empty log, that of the next entry."""
        return self._call(first_position)

    @reading
    def read(self, connection: Connection, after: int, limit: int = LOG_PAGE_ENTRIES) -> list[LogEntry]:
        """Return the entries after a position; raise LogTrimmed if some of them were trimmed."""
        entries = read_entries(connection, after, limit)
        # If the next entry exists, none is missing, and the first position need not be read.
        if not entries or entries[0].position != after + 1:
            check_not_trimmed(first_position(connection), after)
        return entries

    @reading
    def last_of(self, connection: Connection, uris: Collection[str], after: int) -> dict[str, Operation]:
        """Return the operation of the last entry after a position for each of these documents that has one."""
        c, by_name = metadata_log.c, {escape_unstorable(uri): uri for uri in uris}
        query = select(c.position, c.uri, c.operation).where(c.position > after, c.operation != "schema")
        rows = bulk.select_among(connection, query, c.uri, list(by_name))
        return {by_name[uri]: Operation(what) for _, uri, what in sorted(map(tuple, rows))}

    @transacting
    def trim(self, connection: Connection, upto: int) -> int:
        """Delete the applied entries up to a position, and return their number."""
        last = min(upto, counters.current(connection, APPLIED_COUNTER))
        return connection.execute(delete(metadata_log).where(metadata_log.c.position <= last)).rowcount


def check_not_trimmed(begins: int, after: int) -> None:
    """Raise LogTrimmed if a log begins later than after a position."""
    if after + 1 < begins:
        hint = "start with a snapshot"
        raise LogTrimmed(f"the log begins at position {begins}", received=f"after {after}", hint=hint)


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
    accepted = f"position {last + 1}"
    return InputError("entries of the log are missing", received=str(position), accepted=accepted)


def _write(connection: Connection, entries: Sequence[LogEntry]) -> None:
    if not entries:
        return
    time, storable = now_text(), map(_escape_entry, entries)
    rows = [(each.position, each.what.value, each.uri, each.media_type, each.body, time) for each in storable]
    bulk.insert_rows(connection, metadata_log, rows)
    counters.advance(connection, LOG_COUNTER, entries[-1].position)


def _escape_entry(entry: LogEntry) -> LogEntry:
    return replace(entry, uri=escape_unstorable(entry.uri), media_type=escape_unstorable(entry.media_type))


def read_entries(
    connection: Connection, after: int, limit: int | None, *conditions: ColumnElement[bool]
) -> list[LogEntry]:
    """Read the existing entries after a position."""
    c = metadata_log.c
    query = select(c.position, c.operation, c.uri, c.media_type, c.body).where(
        c.position > after, *conditions
    )
    return [
        LogEntry(position, Operation(operation), uri, media_type, bytes(body))
        for position, operation, uri, media_type, body in connection.execute(
            query.order_by(c.position).limit(limit)
        )
    ]


def entry_differs(connection: Connection, entry: LogEntry) -> bool:
    """Whether the log has a different entry at the position of this one; trimmed entries do not count."""
    stored = read_entries(connection, entry.position - 1, 1, metadata_log.c.position == entry.position)
    return bool(stored) and stored[0] != _escape_entry(entry)


def changed_document_uris(connection: Connection, after: int, upto: int) -> set[str]:
    """Return the URIs of documents that were registered or removed between two positions."""
    c = metadata_log.c
    query = select(c.uri).where(c.position > after, c.position <= upto, c.operation != "schema").distinct()
    return set(connection.execute(query).scalars())


def first_position(connection: Connection) -> int:
    """Return the first position that can be read, now or later."""
    # The head is read first: otherwise an entry appended in between could make a position look trimmed.
    head = counters.current(connection, LOG_COUNTER)
    first: int | None = connection.execute(select(func.min(metadata_log.c.position))).scalar()
    return head + 1 if first is None else first


def restart_log(connection: Connection, position: int) -> None:
    """Delete all entries; the next one follows a position."""
    counters.lock(connection, LOG_COUNTER)
    connection.execute(delete(metadata_log))
    counters.advance(connection, LOG_COUNTER, position)


def load_identity(connection: Connection) -> str:
    """Load the id of the store among providers."""
    return str(connection.execute(select(metadata_identity.c.id)).scalar_one())


# Migrations.


def create_identity(connection: Connection) -> None:
    """Generate the id of the store as a provider."""
    connection.execute(insert(metadata_identity), {"id": names.new_id("m", 16)})


def initialize_log(connection: Connection) -> None:
    """Count metadata that is older than the log as its first, trimmed entry.

    Otherwise a follower that starts at the beginning of the log would miss that metadata unnoticed.
    """
    schemas = connection.execute(select(func.count()).select_from(metadata_schema)).scalar_one()
    values = {LOG_COUNTER: schemas, APPLIED_COUNTER: schemas, RULE_CHANGES_COUNTER: 0}
    rows = [{"name": name, "value": value} for name, value in values.items()]
    connection.execute(insert(counters_table), rows)


def fill_rule_uses(connection: Connection) -> None:
    """Fill the dependencies of existing rules."""
    rules = connection.execute(select(metadata_rules.c.name, metadata_rules.c.text))
    texts: dict[str, str] = dict(tuple(row) for row in rules)
    connection.execute(delete(rule_uses))
    uses = {(name, each.extension) for name, text in texts.items() for each in parse_rule(text).searched}
    rows = [{"name": name, "used": used} for name, used in sorted(uses) if used in texts]
    if rows:
        connection.execute(insert(rule_uses), rows)


LEADER_KEY = "leader"
MAX_PAGE_BYTES = 32_000_000
"""The limit of all bodies of a page of the log in bytes."""


@dataclass(frozen=True, slots=True)
class ReplicationStatus:
    """The state of a provider: the position up to which it has applied its log, from `first` to `head`.

    `leader` is the name of the followed log, None if the provider leads.
    """

    provider: str
    position: int
    head: int
    first: int
    leader: str | None
    documents: int
    resources: int
    rules: int


class ReplicationStore(StorePart):
    """The replication state of a store."""

    @reading_snapshot
    def status(self, connection: Connection) -> ReplicationStatus:
        """Return the state of the provider at one moment."""
        tables = (metadata_resources, metadata_rules)
        counts = (select(func.count()).select_from(table) for table in tables)
        documents = select(func.count(func.distinct(metadata_resources.c.document)))
        return ReplicationStatus(
            load_identity(connection),
            counters.current(connection, APPLIED_COUNTER),
            counters.current(connection, LOG_COUNTER),
            first_position(connection),
            _load_leader(connection),
            *(connection.execute(count).scalar_one() for count in (documents, *counts)),
        )

    def mark(self) -> tuple[int, ...]:
        """Return a version that changes with the log, the position or the rules."""
        c, watched = counters_table.c, (LOG_COUNTER, APPLIED_COUNTER, RULE_CHANGES_COUNTER)
        return tuple(
            row.value for row in self._rows(select(c.value).where(c.name.in_(watched)).order_by(c.name))
        )

    @reading_snapshot
    def page(self, connection: Connection, after: int, limit: int, size: int = MAX_PAGE_BYTES) -> LogPage:
        """Return entries after a position, limited by number and size; at least one, of any size."""
        first = first_position(connection)
        check_not_trimmed(first, after)
        fitting = _count_fitting(connection, after, limit, size)
        entries = read_entries(connection, after, fitting) if fitting else []
        head = counters.current(connection, LOG_COUNTER)
        return LogPage(load_identity(connection), first, head, tuple(entries))

    def leader(self) -> str | None:
        """Return the name of the followed log; None if the provider leads."""
        return self._call(_load_leader)

    @transacting
    def follow(self, connection: Connection, url: str | None) -> None:
        """Record the followed log."""
        connection.execute(delete(followed_log).where(followed_log.c.name == LEADER_KEY))
        if url is not None:
            connection.execute(insert(followed_log), {"name": LEADER_KEY, "value": url})


def _load_leader(connection: Connection) -> str | None:
    c = followed_log.c
    leader: str | None = connection.execute(select(c.value).where(c.name == LEADER_KEY)).scalar()
    return leader


def _count_fitting(connection: Connection, after: int, limit: int, size: int) -> int:
    """Count the entries that fit into the size limit."""
    c = metadata_log.c
    lengths = select(func.length(c.body)).where(c.position > after).order_by(c.position).limit(limit)
    total = 0
    for count, length in enumerate(connection.execute(lengths).scalars()):
        total += length
        if total > size and count:
            return count
    return limit
