"""Parsing of log entries by the schema before them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidings.errors import InputError, SetupError
from tidings.graphs.kind import check_graph
from tidings.graphs.rdf import rdf_decoder
from tidings.graphs.rdf.multipart import write_graph
from tidings.metadata.documents import Document, DocumentReader, check_uri
from tidings.metadata.log import LogDraft, LogEntry, Operation
from tidings.metadata.schema.model import Schema
from tidings.metadata.schema.schema_parser import parse_schema
from tidings.metadata.sql.document_changes import check_document
from tidings.metadata.sql.metadata_reader import SchemaFile
from tidings.parsers.parser_pool import isolated

if TYPE_CHECKING:
    from tidings.metadata.filter.trigger_index import TriggerIndex


@dataclass(frozen=True, slots=True)
class SchemaContext:
    """A schema with its reader and its index of triggering rules."""

    file: SchemaFile
    schema: Schema
    reader: DocumentReader
    triggers: TriggerIndex


class SchemaCache:
    """The context of the last used schema.

    Files are compared instead of versions: a failed transaction may have had another schema of the same version.
    """

    def __init__(self) -> None:
        self._context: SchemaContext | None = None

    def context(self, file: SchemaFile | None) -> SchemaContext:
        """Return the context of a schema, parsed if it is not the last one."""
        if file is None:
            raise SetupError("there is no schema for metadata yet", hint="tidings provider schema FILE")
        if self._context is None or self._context.file != file:
            from tidings.metadata.filter.trigger_index import TriggerIndex  # noqa: PLC0415 - lists of rules need no index

            schema = parse_schema_file(file)
            self._context = SchemaContext(file, schema, DocumentReader(schema), TriggerIndex(schema))
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
                isolated(check_graph, entry.body, entry.media_type)
            file = SchemaFile(entry.media_type, entry.body)
            check_schema_extension(self.file, parse_schema_file(file))
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


def parse_schema_file(file: SchemaFile) -> Schema:
    return parse_schema(rdf_decoder.decode(file.body, file.media_type))


def build_schema_draft(body: bytes, media_type: str, base: str | None) -> LogDraft:
    """Build the log entry of a schema. One with a base is stored as N-Triples, which need no base."""
    if base is None:
        return LogDraft(Operation.SCHEMA, media_type=media_type, body=body)
    triples = isolated(write_graph, body, media_type, base)
    return LogDraft(Operation.SCHEMA, media_type="application/n-triples", body=triples)


def check_schema_extension(file: SchemaFile | None, schema: Schema) -> None:
    """Check that a schema only extends the one before, so that documents and rules stay valid.

    A class with a new superclass, for example, would have instances that the superclass's rules were never applied to.
    """
    if file is None:
        return
    before = parse_schema_file(file)
    lost = [name for name, cls in before.classes.items() if schema.classes.get(name) != cls]
    lost += [name for name, own in before.properties.items() if schema.properties.get(name) != own]
    if lost:
        what = "the schema removes or changes existing classes or properties"
        accepted = "all existing classes and properties unchanged, and new ones"
        raise InputError(what, received=", ".join(lost), accepted=accepted)
