"""Entries of the log, applied in one transaction: metadata, results of rules, dead letters, position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tidings.errors import InputError, SetupError, TidingsError
from tidings.metadata.documents import Document
from tidings.metadata.log import Draft, Entry, What
from tidings.provider.reading import Reading, Schemas
from tidings.store.dead_letters import DeadLetter
from tidings.store.metadata import Registered, Work
from tidings.store.metadata_log import gap
from tidings.store.rule_filter import Outcome

NOTHING = Outcome(frozenset(), frozenset(), frozenset())
_NONE: Mapping[int, Document] = {}
_NONE_REFUSED: Mapping[int, InputError] = {}


@dataclass(slots=True)
class _Taken:
    """What entries come to: the last version of each document, and those that cannot be applied."""

    documents: dict[str, Document] = field(default_factory=dict)
    letters: list[DeadLetter] = field(default_factory=list)


def apply(
    work: Work,
    schemas: Schemas,
    entries: Sequence[Entry],
    read: Mapping[int, Document] = _NONE,
    refused: Mapping[int, InputError] = _NONE_REFUSED,
) -> Registered:
    """Apply entries that follow the position: the filter runs once. Of several versions of a document the last counts.

    `read` has those that were read before, and `refused` why others must not be read, by position. What cannot be
    applied is a dead letter: it was checked before it came into the log, but the log may come from another provider.
    """
    before = work.schema()
    reading = Reading(before, schemas)
    taken = _take(reading, entries, read, refused)
    if reading.file is not None and reading.file != before:
        reading.file = work.set_schema(reading.file)
    done = Registered({}, NOTHING)
    if taken.documents:
        known = reading.known
        done = work.register(known.schema, list(taken.documents.values()), known.triggers)
    work.advance(entries[-1].position)
    if taken.documents:
        work.tell(reading.known.schema, done)
    work.bury(taken.letters)
    return Registered(done.changes, done.outcome, entries[-1].position, len(taken.letters))


def _take(
    reading: Reading,
    entries: Sequence[Entry],
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


def _letter(entry: Entry, problem: TidingsError) -> DeadLetter:
    which = "the schema" if entry.what is What.SCHEMA else entry.uri
    return DeadLetter(which, str(problem), problem.facts(), entry.position, entry.body)


def check_schemas(work: Work, schemas: Schemas, drafts: Sequence[Draft]) -> None:
    """Refuse schemas that do not go with one that was loaded since they were checked. Documents go with all of them."""
    reading = Reading(work.schema(), schemas)
    for draft in drafts:
        if draft.what is What.SCHEMA:
            reading.read(
                draft.at(0)
            )  # as an entry: it was checked before, and a transaction waits for no process


def catch_up(work: Work, schemas: Schemas, most: int) -> None:
    """Apply all that stands in the log and is not applied yet, in this transaction."""
    while entries := work.pending(most):
        apply(work, schemas, entries)


def following(work: Work, entries: Sequence[Entry]) -> list[Entry]:
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
            raise gap(last, entry.position)
    return new


def _refuse_other(work: Work, entry: Entry) -> None:
    if work.differs(entry):
        what = "this is the log of other metadata: something else stands at that position here"
        hint = "begin anew, in another home, with a snapshot"
        raise InputError(what, received=f"position {entry.position}", hint=hint)
