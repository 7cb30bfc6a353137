"""Entries of the log, read by the schema that stood before them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidings.errors import InputError, SetupError
from tidings.metadata.documents import Document, Reader, check_uri
from tidings.metadata.log import Draft, Entry, What
from tidings.metadata.schema import Schema
from tidings.metadata.schema_reading import read_schema
from tidings.publications import rdf
from tidings.publications.media_types import check_graph
from tidings.publications.parser_pool import isolated
from tidings.publications.rdf_parts import write_graph
from tidings.store.metadata import SchemaFile
from tidings.store.registering import check_document

if TYPE_CHECKING:
    from tidings.metadata.triggers import Triggers


@dataclass(frozen=True, slots=True)
class Known:
    """What follows from a schema."""

    file: SchemaFile
    schema: Schema
    reader: Reader
    triggers: Triggers


class Schemas:
    """The schema that was used last, with all that follows from it. A transaction that failed may have had another one
    of the same version, so the file itself is compared.
    """

    def __init__(self) -> None:
        self._known: Known | None = None

    def known(self, file: SchemaFile | None) -> Known:
        if file is None:
            raise SetupError("there is no schema for metadata yet", hint="tidings provider schema FILE")
        if self._known is None or self._known.file != file:
            from tidings.metadata.triggers import Triggers  # noqa: PLC0415 - lists of rules need no index

            schema = schema_of(file)
            self._known = Known(file, schema, Reader(schema), Triggers(schema))
        return self._known


class Reading:
    """Entries one after the other. Each is read by the newest schema before it: elsewhere, in batches of another size,
    it is read by the same one.
    """

    def __init__(self, file: SchemaFile | None, schemas: Schemas) -> None:
        self._schemas = schemas
        self.file = file

    @property
    def known(self) -> Known:
        return self._schemas.known(self.file)

    def read(self, given: Draft | Entry) -> Document | None:
        """What a document says; one that is removed says nothing. A schema is no document, and holds from now on.

        A draft was just sent, and is parsed in a parser process. An entry was accepted before.
        """
        is_new = isinstance(given, Draft)
        if given.what is What.SCHEMA:
            if is_new:
                isolated(check_graph, given.body, given.media_type)
            file = SchemaFile(given.media_type, given.body)
            refuse_losses(self.file, schema_of(file))
            self.file = file
            return None
        if given.what is What.REMOVE:
            check_uri(given.uri)
            return Document(given.uri, ())
        document = self.known.reader.read(given.body, given.media_type, given.uri, isolate=is_new)
        check_document(document)
        return document

    def skim(self, schemas: Iterable[Entry]) -> Reading:
        """Take over schemas that stand in the log. One that will be refused when it is applied does not count."""
        for entry in schemas:
            try:
                self.read(entry)
            except InputError:
                continue
        return self


def schema_of(file: SchemaFile) -> Schema:
    return read_schema(rdf.decode(file.body, file.media_type))


def schema_draft(body: bytes, media_type: str, base: str | None) -> Draft:
    """A schema as it is kept: with a base it would need one whenever it is read, so edges are kept then."""
    if base is None:
        return Draft(What.SCHEMA, media_type=media_type, body=body)
    kept = isolated(write_graph, body, media_type, base)
    return Draft(What.SCHEMA, media_type="application/n-triples", body=kept)


def refuse_losses(file: SchemaFile | None, schema: Schema) -> None:
    """A class that got another parent would have instances that its rules have never been asked about.

    What was read by the schema before reads the same by this one: so what was checked stays right.
    """
    if file is None:
        return
    before = schema_of(file)
    lost = [name for name, cls in before.classes.items() if schema.classes.get(name) != cls]
    lost += [name for name, own in before.properties.items() if schema.properties.get(name) != own]
    if lost:
        what, accepted = (
            "the schema takes away or changes what there was",
            "the same classes and properties, and more",
        )
        raise InputError(what, received=", ".join(lost), accepted=accepted)
