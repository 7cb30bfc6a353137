"""Targets: publications of each media type, and related inputs."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from starlette.datastructures import Headers

from fuzz import seeds
from fuzz.language_targets import metadata_schema
from fuzz.target import Run, Target, fields_of, joined, text_of
from tests.support.oracles.json_decoders import same_as_definition
from tidings.api.v1.ingest import read_header_attributes
from tidings.atoms import Atoms
from tidings.console.pages import highlight_publication
from tidings.console.publish import sniff_media_type
from tidings.documents import xml_decoder
from tidings.documents.tag_paths import TagPaths
from tidings.documents.xml_batch_decoder import atoms_of, decode_documents
from tidings.errors import DecodeProblem, InputError, TidingsError
from tidings.events import json_decoder
from tidings.events.json_batch_decoder import split_lines
from tidings.events.schema.files import load
from tidings.graphs.rdf import rdf_decoder
from tidings.graphs.rdf.media_types import ATOM, FEEDS, JSON_FEED, JSON_LD, RDF_XML, RSS, TURTLE
from tidings.graphs.rdf.multipart import n_triples
from tidings.graphs.syndication.feed_parser import items_of
from tidings.graphs.taxonomy_files import taxonomy_in
from tidings.ingest.publisher import validate
from tidings.ingest.submission import (
    CLOUD_EVENT,
    CLOUD_EVENT_BATCH,
    JSON_LINES_TYPES,
    Submission,
    accepted_media_types,
    parse_submission,
)
from tidings.kinds import kind_of
from tidings.metadata.documents import DocumentReader
from tidings.metadata.schema.schema_parser import parse_schema
from tidings.model import Publication
from tidings.parsers.strict_json import parse_value
from tidings.reference_data.declarations import Reference
from tidings.reference_data.table_rows import read_file

ALIASES = {
    "text/xml": "application/xml",
    "application/x-turtle": TURTLE,
    "application/jsonl": "application/x-ndjson",
    "application/x-jsonlines": "application/x-ndjson",
}
"""Media types that are parsed like another one."""

_EVENT = b'{"event_type": "furniture", "price": 180.5, "tags": ["a", {"b": [1, null, true]}], "id": "x1"}'
_CLOUD = (
    b'{"specversion": "1.0", "id": "1", "source": "/shop", "type": "sold", "time": "2026-01-01T00:00:00Z",'
    b' "datacontenttype": "application/json", "data": {"price": 5}}'
)
_CLOUD_BYTES = (
    b'{"specversion":"1.0","id":"2","source":"/s","type":"t","subject":"x","data_base64":"eyJhIjoxfQ=="}'
)
_TURTLE = (
    b"@prefix ex: <http://example.org/> .\n@base <http://example.org/a/> .\n<b#c> a ex:Thing ; ex:price 5.0e-3, 1.5,"
    b' "x"@en-GB, """long\n"""^^ex:t ; ex:list (1 [ ex:p _:b ]) .\n'
)
_TRIPLES = (
    b'<http://example.org/a> <http://example.org/p> "caf\\u00e9"@fr .\n'
    b"_:b <http://example.org/p> <urn:x:y> .\n"
)
_QUADS = b"<http://example.org/a> <http://example.org/p> _:b <http://example.org/g> .\n"
_TRIG = b"PREFIX ex: <http://example.org/>\nGRAPH ex:g { ex:a ex:p true }\nex:h { ex:a a ex:B }\n{ ex:c ex:d ex:e }\n"
_LINKED = (
    b'{"@context": {"ex": "http://example.org/", "dc": "http://purl.org/dc/elements/1.1/", "when": {"@id": "dc:date",'
    b' "@type": "http://www.w3.org/2001/XMLSchema#date"}}, "@id": "http://example.org/a", "@type": "ex:Page",'
    b' "when": "2026-01-01", "ex:knows": [{"@id": "_:b"}, {"@value": "x", "@language": "en"}, {"@list": [1, 2.5]}]}'
)
_RSS = (
    b'<?xml version="1.0"?><rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"'
    b' xmlns:sy="http://purl.org/rss/1.0/modules/syndication/"><channel><title>News &amp; more</title><link>http://example.org/</link>'
    b"<description>d</description><ttl>60</ttl><sy:updatePeriod>daily</sy:updatePeriod><sy:updateFrequency>2</sy:updateFrequency>"
    b"<skipHours><hour>3</hour></skipHours><skipDays><day>Sunday</day></skipDays>"
    b'<item><title>One</title><link>/1</link><guid isPermaLink="false">g1</guid><pubDate>Wed, 18 Nov 2026 01:00:00 +0100</pubDate>'
    b'<category domain="http://example.org/c">x</category><description>&lt;p&gt;hi&lt;/p&gt;&nbsp;</description>'
    b'<enclosure url="http://example.org/a.mp3" length="5" type="audio/mpeg"/></item></channel></rss>'
)
_RSS_091 = (
    b'<rss version="0.91"><channel><title>t</title><link>http://example.org/</link><description>d</description>'
    b"<item><title>a</title><link>http://example.org/a</link></item></channel></rss>"
)
_RSS_1 = (
    b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"'
    b' xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="http://example.org/f"><title>t</title>'
    b"<link>http://example.org/</link><description>d</description><items><rdf:Seq>"
    b'<rdf:li rdf:resource="http://example.org/1"/></rdf:Seq></items></channel><item rdf:about="http://example.org/1"><title>One</title>'
    b"<link>http://example.org/1</link><dc:date>2026-11-18T01:00Z</dc:date></item></rdf:RDF>"
)
_ATOM = (
    b'<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en" xml:base="http://example.org/"><title type="html">&lt;b&gt;t</title>'
    b'<id>urn:x:1</id><updated>2026-11-18T01:00:00Z</updated><link rel="hub" href="http://example.org/hub"/><link rel="self" href="f"/>'
    b'<entry><id>urn:x:2</id><title>One</title><updated>2026-11-18T01:00:00.5+01:00</updated><link href="1"/><category term="x"'
    b' scheme="urn:c"/><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>hi<br/></p></div></content>'
    b"<author><name>Ann</name></author></entry></feed>"
)
_JSON_FEED = (
    b'{"version": "https://jsonfeed.org/version/1.1", "title": "t", "home_page_url": "http://example.org/", "feed_url": "http://example.org/f",'
    b' "hubs": [{"type": "WebSub", "url": "http://example.org/hub"}], "items": [{"id": "1", "url": "/1", "title": "One",'
    b' "content_html": "<p>hi", "date_published": "2026-11-18T01:00:00Z", "tags": ["x"], "authors": [{"name": "Ann"}],'
    b' "attachments": [{"url": "http://example.org/a", "mime_type": "audio/mpeg"}]}]}'
)
_RDF_XML = (
    b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:ex="http://example.org/" xml:base="http://example.org/b">'
    b'<rdf:Description rdf:ID="a" ex:q="z"><ex:p rdf:parseType="Literal"><b>x</b></ex:p><ex:r rdf:resource="c"/>'
    b'<ex:l rdf:parseType="Collection"><ex:T/></ex:l><ex:n rdf:datatype="http://www.w3.org/2001/XMLSchema#int">5</ex:n>'
    b"</rdf:Description></rdf:RDF>"
)
_XML = (
    b'<?xml version="1.0" encoding="ISO-8859-1"?><!-- c --><a xmlns:p="urn:p" b="1&#10;2"><p:c>x &amp; y</p:c><![CDATA[<d>]]><?pi x?></a>',
    '<?xml version="1.0"?><größe einheit="m">5</größe>'.encode("utf-16"),
    b"\xef\xbb\xbf<a><b/>\r\n<b>t</b></a>",
)

SEEDS: Mapping[str, tuple[bytes, ...]] = {
    "application/json": (_EVENT, _CLOUD, *seeds.files("auctions.jsonl")[0].splitlines()[:3]),
    CLOUD_EVENT: (_CLOUD, _CLOUD_BYTES),
    "application/xml": (*_XML, *seeds.files("*.xml"), *seeds.files("quotes/*.xml")),
    TURTLE: (_TURTLE, *seeds.files("*.ttl"), *seeds.files("metadata/*.ttl")),
    "application/n-triples": (_TRIPLES,),
    "application/trig": (_TRIG, _TURTLE),
    "application/n-quads": (_QUADS, _TRIPLES),
    RDF_XML: (_RDF_XML, _RSS_1, *seeds.files("metadata/*.rdf")),
    JSON_LD: (_LINKED,),
    RSS: (_RSS, _RSS_091, _RSS_1),
    ATOM: (_ATOM,),
    JSON_FEED: (_JSON_FEED,),
    "application/x-ndjson": (_EVENT + b"\n" + _CLOUD + b"\r\n\n", *seeds.files("quotes.jsonl")),
    CLOUD_EVENT_BATCH: (b"[" + _CLOUD + b"," + _CLOUD_BYTES + b"]", b"[]"),
}


@cache
def _schema() -> object:
    return load(seeds.EXAMPLES / "furniture.yaml")


def publish(media_type: str) -> Run:
    """Submit a body as HTTP and the command line do, and decode accepted publications as the stream does."""
    id_field = "id" if media_type in ("application/json", *JSON_LINES_TYPES) else None

    def run(data: bytes) -> None:
        submission = Submission(data, media_type, id_field=id_field)
        with suppress(TidingsError):
            validate(parse_submission(submission), _schema())  # type: ignore[arg-type]
        for publication in validate(parse_submission(submission), None):
            if not isinstance(publication, InputError):
                kind_of(publication.media_type).check(publication.body, publication.media_type)
                highlight_publication(publication)

    return run


def publish_binary(data: bytes) -> None:
    """Submit a CloudEvent in binary mode: lines of headers, an empty field, the body."""
    lines, body = fields_of(data, 2)
    raw = [tuple(line.split(b":", 1)) for line in lines.split(b"\n") if b":" in line]
    headers = Headers(raw=[(name.strip().lower(), value.strip()) for name, value in raw])
    submission = Submission(body, headers.get("content-type", ""), attributes=read_header_attributes(headers))
    for publication in validate(parse_submission(submission), None):
        if not isinstance(publication, InputError):
            kind_of(publication.media_type).check(publication.body, publication.media_type)


def compare_documents(data: bytes) -> None:
    """Compare the XML batch decoder with the reference decoder: same atoms, same rejects."""
    bodies = data.split(b"\0\0\0") if b"\0\0\0" in data else [data]
    nodes = [_document(body) for body in bodies]
    separator = b"]]></a>-->"
    buffer = np.frombuffer(separator + b"".join(body + separator for body in bodies), np.uint8)
    sizes = np.array([len(body) for body in bodies], np.int64)
    ends = np.cumsum(sizes + len(separator))
    decoded = decode_documents(buffer, ends - sizes, ends, TagPaths(), xml_decoder.DEFAULT)
    rejected = [number for number, node in enumerate(nodes) if node is None]
    assert [number for number, _ in decoded.rejects] == rejected, "one decoder rejects what the other accepts"
    expected = atoms_of(nodes)
    for number in range(len(bodies)):
        assert _rows(decoded.atoms, number) == _rows(expected, number), "the decoders return different atoms"


def _document(body: bytes) -> object:
    try:
        return xml_decoder.decode(body)
    except DecodeProblem:
        return None


def _rows(atoms: Atoms, number: int) -> list[tuple[str, str, int]]:
    rows = []
    for at in range(atoms.starts[number], atoms.starts[number + 1]):
        start = int(atoms.payload[at])
        value = atoms.text[start : start + atoms.length[at]].tobytes().decode()
        rows.append((atoms.paths[atoms.path[at]], value, int(atoms.parent[at])))
    return rows


def compare_events(data: bytes) -> None:
    """Compare the JSON batch decoder with the strict decoder."""
    same_as_definition(data.split(b"\n"))


def compare_lines(data: bytes) -> None:
    """Compare the kernel that splits lines with Python."""
    split = split_lines(np.frombuffer(data, np.uint8))
    ours = [data[start:end] for start, end in zip(split.starts, split.ends, strict=True)]
    theirs = [line.removesuffix(b"\r") for line in data.split(b"\n")]
    assert [line.strip() for line in ours] == [line.strip() for line in theirs if line.strip(b" \t\r")]
    assert split.breaks == data.count(b"\n")


def graph_of(media_type: str) -> Run:
    """Decode a graph, and compare it with the result of writing and reading N-Triples."""

    def run(data: bytes) -> None:
        graph = rdf_decoder.decode(data, media_type, "http://example.org/base")
        again = rdf_decoder.decode(n_triples(graph), "application/n-triples")
        assert len(again.edges) == len(graph.edges), "a graph changes when it is written and read"

    return run


def poll_feed(data: bytes) -> None:
    """Parse a polled feed: media type of the header, separator, body."""
    media_type, body = fields_of(data, 2)
    items_of(body, text_of(media_type), "http://example.org/f", refused=lambda _: None)


def read_metadata(data: bytes) -> None:
    media_type, body = fields_of(data, 2)
    DocumentReader(metadata_schema()).read(body, text_of(media_type), "http://example.org/doc.rdf")


def read_metadata_schema(data: bytes) -> None:
    parse_schema(rdf_decoder.decode(data, TURTLE))


def read_reference(suffix: str, on: str) -> Run:
    """Read a file of reference data for events (`symbol`) or documents (`//stock/symbol`)."""
    path = Path(tempfile.mkdtemp(prefix="tidings-fuzz-")) / f"table{suffix}"
    reference = Reference("table", str(path), "symbol", on, ())

    def run(data: bytes) -> None:
        path.write_bytes(data)
        read_file(reference)

    return run


def _parquet() -> Iterator[bytes]:
    for columns in (
        {"symbol": ["a", "b"], "n": [1, None]},
        {"symbol": [1], "l": [[1, 2]], "s": [{"x": 1.5}]},
    ):
        for compression in ("none", "snappy"):
            buffer = io.BytesIO()
            pq.write_table(pa.table(columns), buffer, compression=compression)
            yield buffer.getvalue()


def decode_strictly(data: bytes) -> None:
    json_decoder.decode(data, _schema(), "id")  # type: ignore[arg-type]
    parse_value(data)


def recognise(data: bytes) -> None:
    """Detect the media type of pasted text in the console, and highlight a publication of that type."""
    text = text_of(data)
    highlight_publication(Publication("x", sniff_media_type(text), data), ["/price"])


def _targets() -> Iterator[Target]:
    for media_type in accepted_media_types():
        if media_type not in ALIASES:
            yield Target(f"publish:{media_type}", publish(media_type), SEEDS.get(media_type, ()))
    graphs: Callable[[str], Target] = lambda kind: Target(f"graph:{kind}", graph_of(kind), SEEDS[kind])  # noqa: E731
    yield from map(graphs, (TURTLE, RDF_XML, JSON_LD, "application/n-triples"))
    yield Target("publish:cloudevents-binary", publish_binary, (
        joined(b"ce-specversion: 1.0\nce-id: 1\nce-source: /s\nce-type: t\nce-subject: \"Euro%20%E2%82%AC\"\ncontent-type: application/json", _EVENT),
        joined(b"ce-specversion: 1.0\nce-id: 1\nce-source: /s\nce-type: t\ncontent-type: text/xml", _XML[2]),
        joined(b"ce-specversion: 1.0\nce-id: 1\nce-source: /s\nce-type: t\ncontent-type: text/plain; charset=latin-1", b"caf\xe9"),
    ))  # fmt: skip
    yield Target("decoders:xml", compare_documents, SEEDS["application/xml"])
    yield Target(
        "decoders:json",
        compare_events,
        (*SEEDS["application/json"], _CLOUD_BYTES, *SEEDS["application/x-ndjson"]),
    )
    yield Target("json-lines", compare_lines, SEEDS["application/x-ndjson"])
    yield Target("json-strict", decode_strictly, SEEDS["application/json"])
    feeds = [joined(f"{kind}; charset=utf-8", body) for kind in sorted(FEEDS) for body in SEEDS[kind]]
    yield Target("feed", poll_feed, (*feeds, joined("text/html", b"<!DOCTYPE html><p>")))
    yield Target("metadata-document", read_metadata, tuple(joined(RDF_XML, body) for body in SEEDS[RDF_XML]))
    yield Target("metadata-schema", read_metadata_schema, seeds.files("metadata/*.ttl"))
    yield Target("taxonomy", lambda data: taxonomy_in(data, TURTLE), (*seeds.files("academia.ttl"), _TURTLE))
    csv = (*seeds.files("*.csv"), b'symbol,"a b",n\nx,"1\n2",007\n"y""",true,\n')
    yield Target("reference:csv", read_reference(".csv", "symbol"), csv)
    yield Target("reference:csv-documents", read_reference(".csv", "//stock/symbol"), csv)
    yield Target(
        "reference:jsonl",
        read_reference(".jsonl", "symbol"),
        (b'{"symbol":["a","b"],"n":{"x":1}}\n', b'{"symbol":1}'),
    )
    yield Target("reference:parquet", read_reference(".parquet", "symbol"), tuple(_parquet()))
    yield Target("console:recognise", recognise, tuple(body for kind in SEEDS for body in SEEDS[kind][:2]))


TARGETS = tuple(_targets())
