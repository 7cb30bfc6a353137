"""Snapshots: all metadata of a provider as JSON lines, and restoring them.

    {"position": 41, "documents": 2, "schema": {"media_type": "text/turtle", "body": "..."}}
    {"document": "http://example.org/doc.rdf", "resources": [{"uri": "http://example.org/doc.rdf#host", ...}, ...]}

Rules are not included; they belong to one provider. Restoring notifies the owners of its rules of the difference.
"""

from __future__ import annotations

import json
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import IO, Any

from tidings.errors import InputError
from tidings.metadata.documents import Document, check_uri
from tidings.metadata.provider.log_applier import SchemaCache, SchemaContext, check_schema_extension
from tidings.metadata.resources import (
    Resource,
    check_conformance,
    document_uri_of,
    parse_natural,
    resource_from_json,
    resource_to_json,
)
from tidings.metadata.schema.model import Schema
from tidings.metadata.sql.log_rows import restart_log
from tidings.metadata.sql.metadata_reader import SchemaFile
from tidings.metadata.sql.resource_rows import check_document
from tidings.metadata.sql.rule_filter import FilterOutcome, RuleResult
from tidings.metadata.sql.transaction import MetadataSnapshot, MetadataTransaction


class OutcomeDelta:
    """The net outcome of several runs of the filter: a resource that enters and leaves again has not moved."""

    def __init__(self) -> None:
        self._before: dict[RuleResult, bool] = {}
        self._now: dict[RuleResult, bool] = {}
        self._ends: dict[RuleResult, Sequence[int]] = {}

    def add(self, outcome: FilterOutcome) -> None:
        for pair in outcome.entered | outcome.changed | outcome.left:
            self._before.setdefault(pair, pair not in outcome.entered)
            self._now[pair] = pair not in outcome.left
        self._ends |= outcome.ends

    def outcome(self) -> FilterOutcome:
        was, now = self._before, self._now
        entered = frozenset(pair for pair in now if now[pair] and not was[pair])
        changed = frozenset(pair for pair in now if now[pair] and was[pair])
        left = frozenset(pair for pair in now if was[pair] and not now[pair])
        return FilterOutcome(entered, changed, left, self._ends)


def snapshot_lines(snapshot: MetadataSnapshot) -> Iterator[dict[str, Any]]:
    """Yield a snapshot as JSON objects."""
    schema = {"media_type": snapshot.schema.media_type, "body": b64encode(snapshot.schema.body).decode()}
    yield {"position": snapshot.position, "documents": snapshot.count, "schema": schema}
    for document in snapshot.documents:
        resources = [resource_to_json(resource) for resource in document.resources]
        yield {"document": document.uri, "resources": resources}


@dataclass(frozen=True, slots=True)
class _Header:
    """The first line of a snapshot."""

    position: int
    count: int
    schema: SchemaFile


class SnapshotSpool:
    """Lines in a temporary file, so that a repeated transaction can read them again without the network."""

    def __init__(self, file: IO[str], lines: Iterable[Mapping[str, Any]]) -> None:
        self._file = file
        for line in lines:
            file.write(json.dumps(line) + "\n")

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self._file.seek(0)
        return map(json.loads, self._file)


@contextmanager
def spool_snapshot(lines: Iterable[Mapping[str, Any]]) -> Iterator[SnapshotSpool]:
    """Copy lines to a temporary file."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
        yield SnapshotSpool(file, lines)


def restore_snapshot(
    transaction: MetadataTransaction, schemas: SchemaCache, spool: SnapshotSpool, batch: int
) -> int:
    """Make the metadata equal to a snapshot, and return its position."""
    transaction.lock_log()
    lines = iter(spool)
    header = _parse_header(next(lines, {}))
    _check_not_older(transaction, header.position)
    context, moves = _replace_schema(transaction, schemas, header.schema), OutcomeDelta()
    uris = _register_documents(transaction, context, lines, moves, batch)
    if len(uris) != header.count or len(set(uris)) != header.count:
        received, accepted = f"{len(uris)} documents", f"{header.count} documents, each once"
        raise InputError("the snapshot is incomplete", received=received, accepted=accepted)
    _remove_others(transaction, context, set(uris), moves, batch)
    restart_log(transaction.connection, header.position)
    transaction.advance(header.position)
    transaction.notify_rule_change(context.schema, moves.outcome())
    return header.position


def _replace_schema(
    transaction: MetadataTransaction, schemas: SchemaCache, file: SchemaFile
) -> SchemaContext:
    stored_file, context = transaction.schema(), schemas.context(file)
    check_schema_extension(stored_file, context.schema)
    if stored_file != file:
        transaction.set_schema(file)
    return context


def _register_documents(
    transaction: MetadataTransaction,
    context: SchemaContext,
    lines: Iterator[dict[str, Any]],
    moves: OutcomeDelta,
    batch: int,
) -> list[str]:
    """Register the documents of all lines, and return their URIs."""
    uris = []
    while documents := [_parse_document(line, context.schema) for line in islice(lines, batch)]:
        uris += [document.uri for document in documents]
        moves.add(transaction.register(context.schema, documents, context.triggers).outcome)
    return uris


def _check_not_older(transaction: MetadataTransaction, position: int) -> None:
    """Reject a snapshot before the head of the log: changes sent to repositories cannot be undone."""
    if position < transaction.head():
        message, accepted = "the snapshot is older than the log", f"position {transaction.head()} or later"
        raise InputError(message, received=f"position {position}", accepted=accepted)


def _remove_others(
    transaction: MetadataTransaction,
    context: SchemaContext,
    uris: set[str],
    moves: OutcomeDelta,
    batch: int,
) -> None:
    """Remove the documents that are not in the snapshot."""
    last = ""
    while page := transaction.document_uris(last, batch):
        removed = [Document(uri, ()) for uri in page if uri not in uris]
        if removed:
            moves.add(transaction.register(context.schema, removed, context.triggers).outcome)
        last = page[-1]


def _parse_header(line: Mapping[str, Any]) -> _Header:
    try:
        schema = SchemaFile(str(line["schema"]["media_type"]), b64decode(line["schema"]["body"]))
        return _Header(parse_natural(line["position"]), parse_natural(line["documents"]), schema)
    except (KeyError, TypeError, ValueError) as error:
        accepted = "position, documents, schema"
        raise InputError("not a snapshot", received=repr(line)[:200], accepted=accepted) from error


def _parse_document(line: Mapping[str, Any], schema: Schema) -> Document:
    uri, listed = line.get("document"), line.get("resources")
    if not isinstance(uri, str) or not isinstance(listed, list):
        raise InputError("not a document", received=repr(line)[:200], accepted="document, resources")
    check_uri(uri)
    resources = {
        resource.uri: resource for resource in (_parse_resource(record, uri, schema) for record in listed)
    }
    if len(resources) != len(listed):
        raise InputError("the document has the same resource twice", where=uri)
    document = Document(uri, tuple(sorted(resources.values(), key=lambda record: record.uri)))
    check_document(document)
    return document


def _parse_resource(record: Mapping[str, Any], document: str, schema: Schema) -> Resource:
    resource = resource_from_json(record)
    if document_uri_of(resource.uri) != document:
        raise InputError("a resource of another document", where=document, received=resource.uri)
    check_conformance(resource, schema)
    return resource
