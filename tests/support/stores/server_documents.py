"""The documents, schema and rules of examples/metadata, for tests of providers."""

from __future__ import annotations

from tests.support.paths import ROOT
from tidings.metadata.log import LogDraft, Operation

EXAMPLES = ROOT / "examples" / "metadata"
DOC, OTHER = "http://example.org/doc.rdf", "http://example.org/other.rdf"
HOST, INFO = f"{DOC}#host", f"{DOC}#info"
RDF_XML = "application/rdf+xml"
LARGE = "search CycleProvider c register c where c.serverInformation.memory > 64"
ALL = "search CycleProvider c register c"


def body(name: str) -> bytes:
    return (EXAMPLES / name).read_bytes()


def registered(name: str, uri: str = DOC) -> LogDraft:
    return LogDraft(Operation.REGISTER, uri, RDF_XML, body(name))


SCHEMA = LogDraft(Operation.SCHEMA, media_type="text/turtle", body=body("schema.ttl"))
INFOS = "search ServerInformation s register s"
