"""Application of log entries in one transaction: metadata, results of rules, dead letters and position."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tidings.errors import Absent, InputError, SetupError, TidingsError
from tidings.metadata.documents import Document
from tidings.metadata.log import LogDraft, LogEntry, Operation
from tidings.metadata.provider.log_reader import EntryReader, SchemaCache
from tidings.metadata.rules.syntax_errors import suggest_name
from tidings.metadata.sql.log_rows import gap_error
from tidings.metadata.sql.metadata_reader import MetadataReader
from tidings.metadata.sql.metadata_store import MetadataStore
from tidings.metadata.sql.rule_filter import FilterOutcome
from tidings.metadata.sql.transaction import MetadataTransaction, RegistrationResult
from tidings.store.dead_letters import DeadLetter

NO_OUTCOME = FilterOutcome(frozenset(), frozenset(), frozenset())
_NO_DOCUMENTS: Mapping[int, Document] = {}
_NO_ERRORS: Mapping[int, InputError] = {}


@dataclass(slots=True)
class _ReadEntries:
    """The last version of each document, and dead letters for the entries that cannot be applied."""

    documents: dict[str, Document] = field(default_factory=dict)
    dead_letters: list[DeadLetter] = field(default_factory=list)


def apply_entries(
    transaction: MetadataTransaction,
    schemas: SchemaCache,
    entries: Sequence[LogEntry],
    documents: Mapping[int, Document] = _NO_DOCUMENTS,
    errors: Mapping[int, InputError] = _NO_ERRORS,
) -> RegistrationResult:
    """Apply the entries after the position with one run of the filter and the last version of each document.

    `documents` are entries that were parsed before, and `errors` those that must not be parsed, by position. Entries
    that cannot be applied become dead letters: they were validated before they were appended, but possibly by another
    provider.
    """
    before, position = transaction.schema(), entries[-1].position
    reader = EntryReader(before, schemas)
    read = _read_entries(reader, entries, documents, errors)
    if reader.file is not None and reader.file != before:
        reader.file = transaction.set_schema(reader.file)
    result = RegistrationResult({}, NO_OUTCOME)
    if read.documents:
        context = reader.context
        result = transaction.register(context.schema, list(read.documents.values()), context.triggers)
    transaction.advance(position)
    if read.documents:
        transaction.notify_registration(reader.context.schema, result)
    transaction.add_dead_letters(read.dead_letters)
    return RegistrationResult(result.changes, result.outcome, position, len(read.dead_letters))


def _read_entries(
    reader: EntryReader,
    entries: Sequence[LogEntry],
    documents: Mapping[int, Document],
    errors: Mapping[int, InputError],
) -> _ReadEntries:
    read = _ReadEntries()
    for entry in entries:
        if entry.position in errors:
            read.dead_letters.append(_dead_letter(entry, errors[entry.position]))
            continue
        try:
            document = documents.get(entry.position) or reader.read(entry)
        except (InputError, SetupError) as problem:
            read.dead_letters.append(_dead_letter(entry, problem))
            continue
        if document is not None:
            read.documents[document.uri] = document
    return read


def _dead_letter(entry: LogEntry, problem: TidingsError) -> DeadLetter:
    which = "the schema" if entry.what is Operation.SCHEMA else entry.uri
    return DeadLetter(which, str(problem), problem.facts(), entry.position, entry.body)


def check_schemas(transaction: MetadataTransaction, schemas: SchemaCache, drafts: Sequence[LogDraft]) -> None:
    """Check schemas again, against one that may have been loaded since. Documents stay valid under extensions."""
    reader = EntryReader(transaction.schema(), schemas)
    for draft in drafts:
        if draft.what is Operation.SCHEMA:
            reader.read(draft.at(0))  # as an entry, which is parsed here: a transaction waits for no process


def apply_pending(transaction: MetadataTransaction, schemas: SchemaCache, batch: int) -> None:
    """Apply all pending entries of the log in this transaction."""
    while entries := transaction.pending(batch):
        apply_entries(transaction, schemas, entries)


def entries_after_position(transaction: MetadataTransaction, entries: Sequence[LogEntry]) -> list[LogEntry]:
    """Return the entries after the position, or raise InputError if one is missing.

    The last of those before must equal the stored one: logs of independent providers cannot be merged.
    """
    position = transaction.position()
    if applied := [entry for entry in entries if entry.position <= position][-1:]:
        _check_same_log(transaction, applied[0])
    new = [entry for entry in entries if entry.position > position]
    for last, entry in enumerate(new, position):
        if entry.position != last + 1:
            raise gap_error(last, entry.position)
    return new


def _check_same_log(transaction: MetadataTransaction, entry: LogEntry) -> None:
    if transaction.entry_differs(entry):
        what = "this is a different log: the entry at this position is not the same here"
        hint = "start with a snapshot in another home"
        raise InputError(what, received=f"position {entry.position}", hint=hint)


# Removals of documents that do not exist are rejected: the URI is probably wrong, and the log would grow for nothing.
# Such an entry can still get into the log, by two concurrent removals; applying it is harmless.


_NEIGHBOURS = 1_000
"""How many documents of the same folder are searched for a similar URI."""


def check_removals(transaction: MetadataTransaction, drafts: Sequence[LogDraft]) -> None:
    """Check that documents to remove exist, when all entries of the log are applied."""
    if uris := _list_removals(drafts):
        _check_existing(drafts, transaction.existing_documents(uris), transaction)


class ReadableLog(Protocol):
    """A log that can be searched for the last operation on documents."""

    def last_of(self, uris: Collection[str], after: int) -> dict[str, Operation]:
        """Return the operation of the last entry after a position for each of these documents that has one."""


def check_pending_removals(metadata: MetadataStore, log: ReadableLog, drafts: Sequence[LogDraft]) -> None:
    """Check that documents to remove exist, including entries of a log that are not applied yet.

    The log is read before the documents, so entries applied in between are seen twice. In the other order, a document
    registered in between would be missed.
    """
    if uris := _list_removals(drafts):
        last = log.last_of(uris, metadata.position())
        existing = metadata.existing_documents(uris) - last.keys()
        existing |= {uri for uri, what in last.items() if what is Operation.REGISTER}
        _check_existing(drafts, existing, metadata)


def _list_removals(drafts: Iterable[LogDraft]) -> list[str]:
    return [draft.uri for draft in drafts if draft.what is Operation.REMOVE]


def _check_existing(drafts: Sequence[LogDraft], existing: set[str], metadata: MetadataReader) -> None:
    for draft in drafts:
        if draft.what is Operation.REGISTER:
            existing.add(draft.uri)
        elif draft.what is Operation.REMOVE:
            if draft.uri not in existing:
                raise _absent(draft.uri, metadata)
            existing.remove(draft.uri)


def _absent(uri: str, metadata: MetadataReader) -> Absent:
    folder = uri[: uri.rstrip("/").rfind("/") + 1]
    close = suggest_name(uri, metadata.document_uris(folder, _NEIGHBOURS))
    return Absent("there is no such document", received=uri, hint=close or "tidings provider documents")
