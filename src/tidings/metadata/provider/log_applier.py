"""Application of log entries in one transaction: metadata, results of rules, dead letters and position.

Each entry is parsed by the last schema before it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from tidings.errors import InputError, NotFound, SetupError, TidingsError
from tidings.graphs.kind import check_graph
from tidings.graphs.rdf.multipart import write_graph
from tidings.metadata.documents import Document, DocumentReader, check_uri
from tidings.metadata.log import LogDraft, LogEntry, Operation
from tidings.metadata.rules.rule_errors import suggest_name
from tidings.metadata.schema.model import Schema
from tidings.metadata.schema.schema_parser import parse_schema_file
from tidings.metadata.sql.log_rows import entry_differs, gap_error
from tidings.metadata.sql.metadata_reader import MetadataReader, SchemaFile
from tidings.metadata.sql.resource_rows import check_document
from tidings.metadata.sql.rule_filter import FilterOutcome
from tidings.metadata.sql.transaction import MetadataStore, MetadataTransaction, RegistrationResult
from tidings.parsers.parser_pool import run_isolated
from tidings.store.dead_letters import DeadLetter, add_dead_letters

if TYPE_CHECKING:
    from tidings.metadata.filter.trigger_index import TriggerIndex


@dataclass(frozen=True)
class SchemaContext:
    """A schema with its reader of documents and its index of triggering rules, which is built on first use."""

    file: SchemaFile
    schema: Schema
    reader: DocumentReader
    build_triggers: Callable[[Schema], TriggerIndex]

    @cached_property
    def triggers(self) -> TriggerIndex:
        return self.build_triggers(self.schema)


def _build_index(schema: Schema) -> TriggerIndex:
    from tidings.metadata.filter.trigger_index import TriggerIndex  # noqa: PLC0415 - it loads kernels

    return TriggerIndex(schema)


class SchemaCache:
    """The context of the last used schema. `hint` explains how to load the first one.

    Files are compared instead of versions: a failed transaction may have had another schema of the same version.
    """

    def __init__(self, hint: str = "tidings provider schema FILE") -> None:
        self._context: SchemaContext | None = None
        self._hint = hint

    def context(self, file: SchemaFile | None) -> SchemaContext:
        """Return the context of a schema, parsed if it is not the last one."""
        if file is None:
            raise SetupError("there is no schema for metadata yet", hint=self._hint)
        if self._context is None or self._context.file != file:
            schema = parse_schema_file(file.body, file.media_type)
            self._context = SchemaContext(file, schema, DocumentReader(schema), _build_index)
        return self._context


class EntryReader:
    """Reader of consecutive entries, each by the last schema before it, whatever the sizes of batches."""

    def __init__(self, file: SchemaFile | None, schemas: SchemaCache) -> None:
        self._schemas = schemas
        self.file = file

    @property
    def context(self) -> SchemaContext:
        return self._schemas.context(self.file)

    def read(self, entry: LogDraft | LogEntry) -> Document | None:
        """Parse an entry: a document, an empty document for a removal, or None for a schema, which becomes current.

        A draft is new input, and is parsed in a parser process. An entry was accepted before.
        """
        is_new = isinstance(entry, LogDraft)
        if entry.what is Operation.SCHEMA:
            if is_new:
                run_isolated(check_graph, entry.body, entry.media_type)
            file = SchemaFile(entry.media_type, entry.body)
            check_schema_extension(self.file, parse_schema_file(file.body, file.media_type))
            self.file = file
            return None
        if entry.what is Operation.REMOVE:
            check_uri(entry.uri)
            return Document(entry.uri, ())
        document = self.context.reader.read(entry.body, entry.media_type, entry.uri, isolate=is_new)
        check_document(document)
        return document

    def read_schemas(self, schemas: Iterable[LogEntry]) -> EntryReader:
        """Read pending schemas of the log. Invalid ones are skipped, as they will be when applied."""
        for entry in schemas:
            try:
                self.read(entry)
            except InputError:
                continue
        return self


def build_schema_draft(body: bytes, media_type: str, base: str | None) -> LogDraft:
    """Build the log entry of a schema. One with a base is stored as N-Triples, which need no base."""
    if base is None:
        return LogDraft(Operation.SCHEMA, media_type=media_type, body=body)
    triples = run_isolated(write_graph, body, media_type, base)
    return LogDraft(Operation.SCHEMA, media_type="application/n-triples", body=triples)


def check_schema_extension(file: SchemaFile | None, schema: Schema) -> None:
    """Check that a schema only extends the one before, so that documents and rules stay valid.

    A class with a new superclass, for example, would have instances that the superclass's rules were never applied to.
    """
    if file is None:
        return
    current = parse_schema_file(file.body, file.media_type)
    lost = [name for name, cls in current.classes.items() if schema.classes.get(name) != cls]
    lost += [name for name, own in current.properties.items() if schema.properties.get(name) != own]
    if lost:
        message = "the schema removes or changes existing classes or properties"
        accepted = "all existing classes and properties unchanged, and new ones"
        raise InputError(message, received=", ".join(lost), accepted=accepted)


DEAD_LETTER_SOURCE = "metadata log"
"""The source of dead letters of the log."""

_NO_DOCUMENTS: Mapping[int, Document] = {}
_NO_ERRORS: Mapping[int, InputError] = {}


def apply_entries(
    transaction: MetadataTransaction,
    schemas: SchemaCache,
    entries: Sequence[LogEntry],
    parsed: Mapping[int, Document] = _NO_DOCUMENTS,
    errors: Mapping[int, InputError] = _NO_ERRORS,
) -> RegistrationResult:
    """Apply the entries after the position with one run of the filter and the last version of each document.

    `parsed` are entries that were parsed before, and `errors` those that must not be parsed, by position. Entries that
    cannot be applied become dead letters: they were validated before they were appended, but possibly by another
    provider.
    """
    stored_file, position = transaction.schema(), entries[-1].position
    reader = EntryReader(stored_file, schemas)
    documents, dead_letters = _read_entries(reader, entries, parsed, errors)
    if reader.file is not None and reader.file != stored_file:
        reader.file = transaction.set_schema(reader.file)
    result = RegistrationResult({}, FilterOutcome())
    if documents:
        context = reader.context
        result = transaction.register(context.schema, list(documents.values()), context.triggers)
    transaction.advance(position)
    if documents:
        transaction.notify_registration(reader.context.schema, result)
    add_dead_letters(transaction.connection, DEAD_LETTER_SOURCE, dead_letters)
    return replace(result, position=position, refused=len(dead_letters))


def _read_entries(
    reader: EntryReader,
    entries: Sequence[LogEntry],
    parsed: Mapping[int, Document],
    errors: Mapping[int, InputError],
) -> tuple[dict[str, Document], list[DeadLetter]]:
    """Return the last version of each document, and dead letters for the entries that cannot be applied."""
    documents: dict[str, Document] = {}
    dead_letters: list[DeadLetter] = []
    for entry in entries:
        try:
            if entry.position in errors:
                raise errors[entry.position]
            document = parsed.get(entry.position) or reader.read(entry)
        except (InputError, SetupError) as problem:
            dead_letters.append(_dead_letter(entry, problem))
        else:
            documents |= {document.uri: document} if document is not None else {}
    return documents, dead_letters


def _dead_letter(entry: LogEntry, problem: TidingsError) -> DeadLetter:
    which = "the schema" if entry.what is Operation.SCHEMA else entry.uri
    return DeadLetter(which, str(problem), problem.facts(), entry.position, entry.body)


def check_schemas(transaction: MetadataTransaction, schemas: SchemaCache, drafts: Sequence[LogDraft]) -> None:
    """Check schemas again, against one that may have been loaded since. Documents stay valid under extensions."""
    reader = EntryReader(transaction.schema(), schemas)
    for draft in drafts:
        if draft.what is Operation.SCHEMA:
            reader.read(
                draft.at(0)
            )  # as an entry, which this process parses: a transaction must not wait for another one


def apply_pending(transaction: MetadataTransaction, schemas: SchemaCache, batch: int) -> None:
    """Apply all pending entries of the log in this transaction."""
    while entries := transaction.pending(batch):
        apply_entries(transaction, schemas, entries)


def entries_after_position(transaction: MetadataTransaction, entries: Sequence[LogEntry]) -> list[LogEntry]:
    """Return the entries after the position, or raise InputError if one is missing.

    The last of those before must equal the stored one: logs of independent providers cannot be merged.
    """
    position = transaction.position()
    applied = [entry for entry in entries if entry.position <= position]
    if applied and entry_differs(transaction.connection, applied[-1]):
        message = "this is a different log: the entry at this position is not the same here"
        hint = "start with a snapshot in another home"
        raise InputError(message, received=f"position {applied[-1].position}", hint=hint)
    new = [entry for entry in entries if entry.position > position]
    for last, entry in enumerate(new, position):
        if entry.position != last + 1:
            raise gap_error(last, entry.position)
    return new


# Removals of documents that do not exist are rejected: the URI is probably wrong, and the log would grow for nothing.
# Such an entry can still get into the log, by two concurrent removals; applying it is harmless.


_NEIGHBOURS = 1_000
"""Maximum number of documents of the same folder that are searched for a similar URI."""


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
                raise _build_not_found(draft.uri, metadata)
            existing.remove(draft.uri)


def _build_not_found(uri: str, metadata: MetadataReader) -> NotFound:
    folder = uri[: uri.rstrip("/").rfind("/") + 1]
    close = suggest_name(uri, metadata.document_uris(folder, _NEIGHBOURS))
    return NotFound("there is no such document", received=uri, hint=close or "tidings provider documents")
