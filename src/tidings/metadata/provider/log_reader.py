"""Entries of the log, read by the schema that stood before them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidings.errors import InputError, SetupError
from tidings.graphs.rdf import rdf_decoder
from tidings.graphs.rdf.multipart import write_graph
from tidings.kinds import check_graph
from tidings.metadata.documents import Document, DocumentReader, check_uri
from tidings.metadata.log import LogDraft, LogEntry, Operation
from tidings.metadata.schema.model import Schema
from tidings.metadata.schema.schema_parser import parse_schema
from tidings.metadata.sql.document_changes import check_document
from tidings.metadata.sql.transaction import SchemaFile
from tidings.parsers.parser_pool import isolated

if TYPE_CHECKING:
    from tidings.metadata.filter.trigger_index import TriggerIndex


@dataclass(frozen=True, slots=True)
class SchemaContext:
    """What follows from a schema."""

    file: SchemaFile
    schema: Schema
    reader: DocumentReader
    triggers: TriggerIndex


class SchemaCache:
    """The schema that was used last, with all that follows from it. A transaction that failed may have had another one
    of the same version, so the file itself is compared.
    """

    def __init__(self) -> None:
        self._known: SchemaContext | None = None

    def known(self, file: SchemaFile | None) -> SchemaContext:
        if file is None:
            raise SetupError("there is no schema for metadata yet", hint="tidings provider schema FILE")
        if self._known is None or self._known.file != file:
            from tidings.metadata.filter.trigger_index import TriggerIndex  # noqa: PLC0415 - lists of rules need no index

            schema = parse_schema_file(file)
            self._known = SchemaContext(file, schema, DocumentReader(schema), TriggerIndex(schema))
        return self._known


class EntryReader:
    """Entries one after the other. Each is read by the newest schema before it: elsewhere, in batches of another size,
    it is read by the same one.
    """

    def __init__(self, file: SchemaFile | None, schemas: SchemaCache) -> None:
        self._schemas = schemas
        self.file = file

    @property
    def known(self) -> SchemaContext:
        return self._schemas.known(self.file)

    def read(self, given: LogDraft | LogEntry) -> Document | None:
        """What a document says; one that is removed says nothing. A schema is no document, and holds from now on.

        A draft was just sent, and is parsed in a parser process. An entry was accepted before.
        """
        is_new = isinstance(given, LogDraft)
        if given.what is Operation.SCHEMA:
            if is_new:
                isolated(check_graph, given.body, given.media_type)
            file = SchemaFile(given.media_type, given.body)
            check_schema_extension(self.file, parse_schema_file(file))
            self.file = file
            return None
        if given.what is Operation.REMOVE:
            check_uri(given.uri)
            return Document(given.uri, ())
        document = self.known.reader.read(given.body, given.media_type, given.uri, isolate=is_new)
        check_document(document)
        return document

    def skim(self, schemas: Iterable[LogEntry]) -> EntryReader:
        """Take over schemas that stand in the log. One that will be refused when it is applied does not count."""
        for entry in schemas:
            try:
                self.read(entry)
            except InputError:
                continue
        return self


def parse_schema_file(file: SchemaFile) -> Schema:
    return parse_schema(rdf_decoder.decode(file.body, file.media_type))


def build_schema_draft(body: bytes, media_type: str, base: str | None) -> LogDraft:
    """A schema as it is kept: with a base it would need one whenever it is read, so edges are kept then."""
    if base is None:
        return LogDraft(Operation.SCHEMA, media_type=media_type, body=body)
    kept = isolated(write_graph, body, media_type, base)
    return LogDraft(Operation.SCHEMA, media_type="application/n-triples", body=kept)


def check_schema_extension(file: SchemaFile | None, schema: Schema) -> None:
    """A class that got another parent would have instances that its rules have never been asked about.

    What was read by the schema before reads the same by this one: so what was checked stays right.
    """
    if file is None:
        return
    before = parse_schema_file(file)
    lost = [name for name, cls in before.classes.items() if schema.classes.get(name) != cls]
    lost += [name for name, own in before.properties.items() if schema.properties.get(name) != own]
    if lost:
        what, accepted = (
            "the schema takes away or changes what there was",
            "the same classes and properties, and more",
        )
        raise InputError(what, received=", ".join(lost), accepted=accepted)
