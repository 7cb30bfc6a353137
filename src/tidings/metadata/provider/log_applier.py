"""Entries of the log, applied in one transaction: metadata, results of rules, dead letters, position."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tidings.errors import Absent, InputError, SetupError, TidingsError
from tidings.metadata.documents import Document
from tidings.metadata.log import LogDraft, LogEntry, Operation
from tidings.metadata.provider.log_reader import EntryReader, SchemaCache
from tidings.metadata.rules.syntax_errors import suggest_name
from tidings.metadata.sql.log_rows import gap_error
from tidings.metadata.sql.metadata_store import MetadataStore
from tidings.metadata.sql.rule_filter import FilterOutcome
from tidings.metadata.sql.transaction import MetadataTransaction, RegistrationResult
from tidings.store.dead_letters import DeadLetter

NO_OUTCOME = FilterOutcome(frozenset(), frozenset(), frozenset())
_NONE: Mapping[int, Document] = {}
_NONE_REFUSED: Mapping[int, InputError] = {}


@dataclass(slots=True)
class _Taken:
    """What entries come to: the last version of each document, and those that cannot be applied."""

    documents: dict[str, Document] = field(default_factory=dict)
    letters: list[DeadLetter] = field(default_factory=list)


def apply_entries(
    work: MetadataTransaction,
    schemas: SchemaCache,
    entries: Sequence[LogEntry],
    read: Mapping[int, Document] = _NONE,
    refused: Mapping[int, InputError] = _NONE_REFUSED,
) -> RegistrationResult:
    """Apply entries that follow the position: the filter runs once. Of several versions of a document the last counts.

    `read` has those that were read before, and `refused` why others must not be read, by position. What cannot be
    applied is a dead letter: it was checked before it came into the log, but the log may come from another provider.
    """
    before = work.schema()
    reading = EntryReader(before, schemas)
    taken = _take(reading, entries, read, refused)
    if reading.file is not None and reading.file != before:
        reading.file = work.set_schema(reading.file)
    done = RegistrationResult({}, NO_OUTCOME)
    if taken.documents:
        known = reading.known
        done = work.register(known.schema, list(taken.documents.values()), known.triggers)
    work.advance(entries[-1].position)
    if taken.documents:
        work.tell(reading.known.schema, done)
    work.bury(taken.letters)
    return RegistrationResult(done.changes, done.outcome, entries[-1].position, len(taken.letters))


def _take(
    reading: EntryReader,
    entries: Sequence[LogEntry],
    read: Mapping[int, Document],
    refused: Mapping[int, InputError],
) -> _Taken:
    taken = _Taken()
    for entry in entries:
        if entry.position in refused:
            taken.letters.append(_letter(entry, refused[entry.position]))
            continue
        try:
            document = read.get(entry.position) or reading.read(entry)
        except (InputError, SetupError) as problem:
            taken.letters.append(_letter(entry, problem))
            continue
        if document is not None:
            taken.documents[document.uri] = document
    return taken


def _letter(entry: LogEntry, problem: TidingsError) -> DeadLetter:
    which = "the schema" if entry.what is Operation.SCHEMA else entry.uri
    return DeadLetter(which, str(problem), problem.facts(), entry.position, entry.body)


def check_schemas(work: MetadataTransaction, schemas: SchemaCache, drafts: Sequence[LogDraft]) -> None:
    """Refuse schemas that do not go with one that was loaded since they were checked. Documents go with all of them."""
    reading = EntryReader(work.schema(), schemas)
    for draft in drafts:
        if draft.what is Operation.SCHEMA:
            reading.read(
                draft.at(0)
            )  # as an entry: it was checked before, and a transaction waits for no process


def apply_pending(work: MetadataTransaction, schemas: SchemaCache, most: int) -> None:
    """Apply all that stands in the log and is not applied yet, in this transaction."""
    while entries := work.pending(most):
        apply_entries(work, schemas, entries)


def entries_after_position(work: MetadataTransaction, entries: Sequence[LogEntry]) -> list[LogEntry]:
    """Those of entries that follow the position. If one is missing, all are refused.

    Those before were applied. Of them the last is looked at: two logs that two providers wrote to on their own do not
    become one.
    """
    position = work.position()
    if passed := [entry for entry in entries if entry.position <= position][-1:]:
        _refuse_other(work, passed[0])
    new = [entry for entry in entries if entry.position > position]
    for last, entry in enumerate(new, position):
        if entry.position != last + 1:
            raise gap_error(last, entry.position)
    return new


def _refuse_other(work: MetadataTransaction, entry: LogEntry) -> None:
    if work.differs(entry):
        what = "this is the log of other metadata: something else stands at that position here"
        hint = "begin anew, in another home, with a snapshot"
        raise InputError(what, received=f"position {entry.position}", hint=hint)


# Removing a document that is not there: whoever asks for it has mistaken its URI, and the log has no use for it.
#
# What stands in the log all the same is harmless: two may remove the same document at the same moment.


_NEIGHBOURS = 1_000
"""Among so many documents of the same folder, one is looked for that somebody may have meant."""

NeighbourLookup = Callable[[str, int], Sequence[str]]
"""The URIs of documents after one, so many."""


def list_removals(drafts: Iterable[LogDraft]) -> list[str]:
    """The URIs of what is to be removed."""
    return [draft.uri for draft in drafts if draft.what is Operation.REMOVE]


def check_removals(work: MetadataTransaction, drafts: Sequence[LogDraft]) -> None:
    """Refuse to remove what is not there, when all that stands in the log is applied."""
    if uris := list_removals(drafts):
        _refuse(drafts, work.documents_among(uris), work.document_uris)


class ReadableLog(Protocol):
    """A log, the own one or one that is shared, as far as it is looked at here."""

    def last_of(self, uris: Collection[str], after: int) -> dict[str, Operation]:
        """What the last entry after a position does with each of these documents, if there is one."""


def check_pending_removals(metadata: MetadataStore, log: ReadableLog, drafts: Sequence[LogDraft]) -> None:
    """The same behind all that stands in a log and is not applied yet.

    The log is looked at before the documents: what is applied in between is found there. The other way round, a
    document that was registered just now would be found in neither.
    """
    if uris := list_removals(drafts):
        last = log.last_of(uris, metadata.position())
        there = metadata.documents_among(uris) - last.keys()
        there |= {uri for uri, what in last.items() if what is Operation.REGISTER}
        _refuse(drafts, there, metadata.document_uris)


def _refuse(drafts: Sequence[LogDraft], there: set[str], after: NeighbourLookup) -> None:
    for draft in drafts:
        if draft.what is Operation.REGISTER:
            there.add(draft.uri)
        elif draft.what is Operation.REMOVE:
            if draft.uri not in there:
                raise _absent(draft.uri, after)
            there.remove(draft.uri)


def _absent(uri: str, after: NeighbourLookup) -> Absent:
    folder = uri[: uri.rstrip("/").rfind("/") + 1]
    close = suggest_name(uri, after(folder, _NEIGHBOURS))
    return Absent("there is no such document", received=uri, hint=close or "tidings provider documents")
