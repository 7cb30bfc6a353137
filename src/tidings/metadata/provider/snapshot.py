"""A provider's metadata as lines, and a provider made equal to them.

    {"position": 41, "documents": 2, "schema": {"media_type": "text/turtle", "body": "..."}}
    {"document": "http://example.org/doc.rdf", "resources": [{"uri": "http://example.org/doc.rdf#host", ...}, ...]}

Rules are not in it: they belong to one provider. A provider that has rules and is behind is told of the difference.
"""

from __future__ import annotations

import json
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import IO, Any

from tidings.errors import InputError
from tidings.metadata.documents import Document, check_uri
from tidings.metadata.provider.log_reader import SchemaCache, SchemaContext, check_schema_extension
from tidings.metadata.resources import (
    Resource,
    check_conformance,
    document_uri_of,
    parse_natural,
    resource_from_json,
    resource_to_json,
)
from tidings.metadata.schema.model import Schema
from tidings.metadata.sql.document_changes import check_document
from tidings.metadata.sql.metadata_store import MetadataSnapshot
from tidings.metadata.sql.rule_filter import FilterOutcome, RuleResult
from tidings.metadata.sql.transaction import MetadataTransaction, SchemaFile

# What several runs of the filter come to.


class OutcomeDelta:
    """Outcomes one after the other, as if there had been one run: who comes and goes again did not move."""

    def __init__(self) -> None:
        self._before: dict[RuleResult, bool] = {}
        self._now: dict[RuleResult, bool] = {}
        self._ends: dict[RuleResult, Sequence[int]] = {}

    def add(self, outcome: FilterOutcome) -> None:
        for pairs, was, now in (
            (outcome.entered, False, True),
            (outcome.changed, True, True),
            (outcome.left, True, False),
        ):
            for pair in pairs:
                self._before.setdefault(pair, was)
                self._now[pair] = now
        self._ends |= outcome.ends

    def outcome(self) -> FilterOutcome:
        was, now = self._before, self._now
        entered = frozenset(pair for pair in now if now[pair] and not was[pair])
        changed = frozenset(pair for pair in now if now[pair] and was[pair])
        left = frozenset(pair for pair in now if was[pair] and not now[pair])
        return FilterOutcome(entered, changed, left, self._ends)


def snapshot_lines(snapshot: MetadataSnapshot) -> Iterator[dict[str, Any]]:
    """What `json.dumps` makes lines of."""
    schema = {"media_type": snapshot.schema.media_type, "body": b64encode(snapshot.schema.body).decode()}
    yield {"position": snapshot.position, "documents": snapshot.count, "schema": schema}
    for document in snapshot.documents:
        resources = [resource_to_json(resource) for resource in document.resources]
        yield {"document": document.uri, "resources": resources}


@dataclass(frozen=True, slots=True)
class _Head:
    """What the first line says."""

    position: int
    count: int
    schema: SchemaFile


class SnapshotSpool:
    """Lines that can be read again: a transaction may have to be repeated, and should not wait for a network."""

    def __init__(self, file: IO[str], given: Iterable[Mapping[str, Any]]) -> None:
        self._file = file
        for line in given:
            file.write(json.dumps(line) + "\n")

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self._file.seek(0)
        return map(json.loads, self._file)


def spool_snapshot() -> IO[str]:
    return tempfile.TemporaryFile("w+", encoding="utf-8")


def restore_snapshot(
    work: MetadataTransaction, schemas: SchemaCache, given: SnapshotSpool, batch: int
) -> int:
    """Make the metadata equal to that of a snapshot, and say at which position that is."""
    work.close_log()
    read = iter(given)
    head = _head(next(read, {}))
    _refuse_older(work, head.position)
    known, moves = _take_schema(work, schemas, head.schema), OutcomeDelta()
    there = _register(work, known, read, moves, batch)
    if len(there) != head.count or len(set(there)) != head.count:
        received, accepted = f"{len(there)} documents", f"{head.count} documents, each once"
        raise InputError("this is no whole snapshot", received=received, accepted=accepted)
    _remove_others(work, known, set(there), moves, batch)
    work.restart(head.position)
    work.tell_of_rules(known.schema, moves.outcome())
    return head.position


def _take_schema(work: MetadataTransaction, schemas: SchemaCache, file: SchemaFile) -> SchemaContext:
    before, known = work.schema(), schemas.known(file)
    check_schema_extension(before, known.schema)
    if before != file:
        work.set_schema(file)
    return known


def _register(
    work: MetadataTransaction,
    known: SchemaContext,
    read: Iterator[dict[str, Any]],
    moves: OutcomeDelta,
    batch: int,
) -> list[str]:
    """Register the documents of all lines, and say which those are."""
    there = []
    while documents := [_document(line, known.schema) for line in islice(read, batch)]:
        there += [document.uri for document in documents]
        moves.add(work.register(known.schema, documents, known.triggers).outcome)
    return there


def _refuse_older(work: MetadataTransaction, position: int) -> None:
    """What a provider has told its repositories cannot be taken back."""
    if position < work.head():
        what, accepted = "the snapshot is older than the log", f"position {work.head()} or later"
        raise InputError(what, received=f"position {position}", accepted=accepted)


def _remove_others(
    work: MetadataTransaction, known: SchemaContext, there: set[str], moves: OutcomeDelta, batch: int
) -> None:
    """Remove the documents that the snapshot does not have."""
    last = ""
    while page := work.document_uris(last, batch):
        gone = [Document(uri, ()) for uri in page if uri not in there]
        if gone:
            moves.add(work.register(known.schema, gone, known.triggers).outcome)
        last = page[-1]


def _head(line: Mapping[str, Any]) -> _Head:
    try:
        schema = SchemaFile(str(line["schema"]["media_type"]), b64decode(line["schema"]["body"]))
        return _Head(parse_natural(line["position"]), parse_natural(line["documents"]), schema)
    except (KeyError, TypeError, ValueError) as error:
        accepted = "position, documents, schema"
        raise InputError("this is no snapshot", received=repr(line)[:200], accepted=accepted) from error


def _document(line: Mapping[str, Any], schema: Schema) -> Document:
    uri, given = line.get("document"), line.get("resources")
    if not isinstance(uri, str) or not isinstance(given, list):
        raise InputError("this is no document", received=repr(line)[:200], accepted="document, resources")
    check_uri(uri)
    resources = {made.uri: made for each in given if (made := _resource(each, uri, schema))}
    if len(resources) != len(given):
        raise InputError("a resource is there twice", where=uri)
    document = Document(uri, tuple(sorted(resources.values(), key=lambda each: each.uri)))
    check_document(document)
    return document


def _resource(given: Mapping[str, Any], document: str, schema: Schema) -> Resource:
    """A resource that the schema allows. What references lead to was checked where the document was registered."""
    made = resource_from_json(given)
    if document_uri_of(made.uri) != document:
        raise InputError("a resource of another document", where=document, received=made.uri)
    check_conformance(made, schema)
    return made
