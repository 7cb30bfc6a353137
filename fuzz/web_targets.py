"""Targets: network input other than publications, and text typed by operators and subscribers."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit
from xmlrpc.client import Fault

from lxml import etree, html
from starlette.requests import Request

from fuzz import seeds
from fuzz.language_targets import metadata_schema
from fuzz.target import Run, Target, encoded, fields_of, joined, of_text, text_of, texts_of
from tidings import cloud_events
from tidings.api.authentication import _read_password
from tidings.api.csrf import is_same_origin
from tidings.api.feeds import _is_cached
from tidings.api.metadata.replication import _parse_rules
from tidings.api.middleware import _resolve_absolute_target
from tidings.api.objects import _parse_watch
from tidings.api.parameters import check_parameters
from tidings.api.problem_details import HttpError
from tidings.api.xml_rpc.service_methods import parse_call, render_fault
from tidings.cli.metadata.registration import _parse_line as read_document_line
from tidings.client.stream import NotificationStream
from tidings.client.transport import RetryPolicy
from tidings.client.transport import check_url as checked_service
from tidings.core import durations
from tidings.core.limits import limits_in
from tidings.core.text import escape_html
from tidings.delivery.quiet_hours import parse_quiet_hours, quiet_until
from tidings.errors import TidingsError
from tidings.feeds.inbound.feed_client import split_login
from tidings.feeds.inbound.response import discover_feeds
from tidings.feeds.inbound.websub import find_hub
from tidings.feeds.outbound import sanitize
from tidings.feeds.outbound.entries import summarize_publication
from tidings.feeds.outbound.formats import negotiate_format, render_opml
from tidings.graphs.model import XSD, literal, meaning
from tidings.graphs.rdf.rdf_errors import Limits
from tidings.graphs.syndication.feed import Feed, parse_days, parse_hours, update_interval
from tidings.graphs.syndication.item_graph import date_term, instant, written
from tidings.graphs.syndication.markup import SCHEMES, plain_text
from tidings.kinds import media_types
from tidings.metadata.change_sets import changes_from_json, state_from_json
from tidings.metadata.log import page_from_json
from tidings.metadata.provider.snapshot import _parse_document, _parse_header
from tidings.metadata.replication.kafka_log import MEDIA_TYPE_HEADER, OPERATION_HEADER, from_message
from tidings.metadata.replication.peer import normalize_peer_url as checked_peer
from tidings.metadata.resources import resource_from_json
from tidings.model import Publication
from tidings.objects.cdc.debezium_decoder import parse_envelope
from tidings.operations import kafka_address
from tidings.operations.egress_policy import is_private, split_host, strip_credentials
from tidings.operations.http_client import HttpResponse
from tidings.operations.retry_after import parse_retry_after
from tidings.operations.settings_sources import load_settings
from tidings.values import parse_instant, show_instant

FORBIDDEN = frozenset(
    {"script", "style", "iframe", "object", "embed", "form", "input", "meta", "base", "svg", "math"}
)
NOW = datetime(2026, 11, 18, 1, tzinfo=UTC)

DATES = encoded(
    (
        "Wed, 18 Nov 2026 01:00:00 GMT", "18 Nov 26 1:00 EST", "2026-11-18T01:00:00.123456789Z", "2026-11", "2026", "2026-W47-3",
        "20261118T010000+0530", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "0001-01-01T00:00:00+14:00",
    )
)  # fmt: skip
CALL = (
    b'<?xml version="1.0"?><methodCall><methodName>weblogUpdates.ping</methodName><params>'
    b"<param><value><string>Name</string></value></param><param><value><i4>5</i4></value></param>"
    b"<param><value><struct><member><name>a</name><value><array><data><value><double>1.5</double></value>"
    b"<value><base64>eA==</base64></value><value><dateTime.iso8601>20261118T01:00:00</dateTime.iso8601></value>"
    b"<value><boolean>1</boolean></value><value>x</value></data></array></value></member></struct></value></param></params></methodCall>"
)
HTML = encoded(
    (
        "<html><head><link rel=alternate type='application/rss+xml' href=\"/f?a=1&amp;b=2\"><LINK REL='x alternate' TYPE=application/atom+xml HREF=f>",
        "<p onclick=x>a<script>alert(1)</script><a href='javascript:x'>b</a><img src=x onerror=y>&nbsp;&#x3c;<style>c</style><math><mi//xlink:href=x>",
    )
)
URLS = encoded(
    ("https://ann:pa%40ss@example.org:8443/f?x=1#y", "http://[::1]:80/", "http://[fe80::1%25eth0]/", "feed:https://example.org/f", "http://ex\u00e4mple.org/")
)  # fmt: skip
LOG_PAGE = json.dumps(
    {
        "provider": "p", "first": 1, "head": 2, "position": 2, "schema": 1, "sequence": 3, "more": False,
        "entries": [{"position": 1, "what": "register", "uri": "http://example.org/d", "media_type": "text/turtle", "body": "eA=="}],
        "moves": [{"sequence": 1, "rule": "r", "uri": "u", "kind": "enter", "time": "2026-01-01T00:00:00Z"}],
        "resources": [{"uri": "u", "class": "c", "document": "d", "values": {"p": ["x", 1, {"ref": "v"}]}}],
        "members": {"r": ["u"]}, "uri": "u", "class": "c", "values": {"p": [1]},
    }
).encode()  # fmt: skip
EVENT_STREAM = (
    b'id: 5\ndata: {"a": 1}\ndata: x\n\n: comment\nevent: y\nid: 6\n\n',
    b'id: 7\ndata: {"id": "n", "source": "/s", "time": "2026-01-01T00:00:00Z", "data": {"subscriber": "ana", "sequence": 7,'
    b' "because": [{"predicate": "p", "value": 1, "at": "/p"}], "kind": "matched", "bindings": null, "publication": null}}\n\n',
)
HEADS = (
    joined("http://example.org/v1/x%20y", "a=1&b=%C3%A9", "https://example.org", "example.org:8080"),
    joined("/v1/subscriptions/%E2%82%AC", "id=x&id=y&=", "null", "[::1]:80"),
)
BODIES = (
    b'{"as": "ana", "watches": "Course:1"}',
    b'{"r": "search A a register a"}',
    b'{"uri": "http://example.org/d.ttl", "media_type": "text/turtle", "body": "<a> <b> <c> ."}',
)
SNAPSHOT = (
    b'{"position": 1, "documents": 1, "schema": {"media_type": "text/turtle", "body": "eA=="}, "document": "http://example.org/d",'
    b' "resources": [{"uri": "http://example.org/d#a", "class": "CycleProvider", "values": {"serverHost": ["x"]}}]}'
)
ENVELOPES = (
    b'{"op": "u", "source": {"table": "course", "lsn": 17, "txId": 3, "ts_ms": 1700000000000, "sequence": "[\\"1\\",\\"2\\"]"},'
    b' "before": {"id": 1, "room": "A1"}, "after": {"id": 1, "room": {"x": [1.5, null]}}, "transaction": {"id": "7"}}',
    b'{"schema": {}, "payload": {"op": "d", "source": {"table": "t", "file": "b.1", "pos": 5, "row": 0}, "before": {}}}',
    b"null",
)
SETTINGS = (
    b'home = "x"\nport = 8080\n[spark]\nmaster = "local[2]"\n[spark.conf]\n"spark.ui.enabled" = "false"\n'
    b'[limits]\ngraph = "edges=5"\n[delivery]\n',
)
FEED = Feed("t", "http://example.org/", "d", "en", 60, ("http://example.org/hub",), "f", None)


def send_call(data: bytes) -> None:
    """Parse an XML-RPC call; an invalid one is a fault that can be rendered."""
    media_type, body = fields_of(data, 2)
    try:
        parse_call(body, text_of(media_type))
    except Fault as problem:
        render_fault(problem)


def sanitize_markup(data: bytes) -> None:
    """Sanitize HTML: no active elements, event handlers or other schemes may remain."""
    text = text_of(data)
    for element in _elements(sanitize.sanitize_html(text)):
        assert element.tag not in FORBIDDEN and not any(name.startswith("on") for name in element.attrib), (
            element.tag
        )
        for name in ("href", "src", "cite"):
            scheme = urlsplit(element.get(name, "")).scheme
            assert scheme in ("", *SCHEMES), scheme
    plain_text(text)
    for convert in (
        sanitize.replace_invalid_characters,
        sanitize.to_line,
        escape_html,
        sanitize.safe_link,
    ):
        convert(text)


def _elements(markup: str) -> Iterator[Any]:
    root = html.fromstring(f"<div>{markup}</div>")
    return (element for element in root.iter() if isinstance(element.tag, str))


def write_opml(data: bytes) -> None:
    """Render arbitrary names and addresses of feeds: the list must be well-formed XML."""
    title, *rest = texts_of(data, 5)
    etree.fromstring(
        render_opml(sanitize.to_line(title), NOW, [(sanitize.to_line(rest[0]), sanitize.to_line(rest[1]))])
    )


def read_date(data: bytes) -> None:
    text = text_of(data)
    parsed = instant(text)
    if parsed is not None:
        assert instant(written(parsed)) == parsed, "a formatted date parses as another date"
    date_term(text)
    moment = parse_instant(text)
    if moment is not None:
        assert parse_instant(show_instant(moment)) == moment
    for name in ("dateTime", "date", "integer", "decimal", "double", "boolean"):
        meaning(literal(text, XSD + name))


def read_headers(data: bytes) -> None:
    """Parse headers of responses and requests: Link, Retry-After, Accept, If-None-Match, If-Modified-Since, Authorization."""
    link, retry, accept, tags, since, authorization = texts_of(data, 6)
    find_hub(HttpResponse(200, "http://example.org/f", None, {"link": link}, b""), FEED)
    parse_retry_after({"retry-after": retry}, NOW)
    negotiate_format(accept)
    _read_password(authorization)
    for name, value in (("if-none-match", tags), ("if-modified-since", since)):
        raw = [(name.encode(), value.encode("latin-1", "replace"))]
        _is_cached(Request({"type": "http", "headers": raw}), '"tag"', NOW)


def read_url(data: bytes) -> None:
    """Parse addresses of feeds, webhooks, providers and services, as users type them."""
    url = text_of(data)
    strip_credentials(url)
    for read in (split_login, checked_peer, checked_service, _is_inside):
        with suppress(TidingsError):
            read(url)


def _is_inside(url: str) -> bool:
    try:
        return is_private(split_host(url)[0])
    except ValueError:  # a host name, which is resolved first
        return False


def read_records(data: bytes) -> None:
    """Parse JSON records that peers and repositories exchange."""
    try:
        record = json.loads(data)
    except (ValueError, RecursionError):
        return
    reads: tuple[Callable[[Any], object], ...] = (
        page_from_json,
        changes_from_json,
        state_from_json,
        resource_from_json,
    )
    for read in reads:
        try:
            read(record)
        except TidingsError:
            continue


def read_message(data: bytes) -> None:
    """Parse a message of a Kafka topic that is the log of providers."""
    key, what, media_type, value = fields_of(data, 4)
    headers = [(OPERATION_HEADER, what or None), (MEDIA_TYPE_HEADER, media_type or None)]
    from_message(SimpleNamespace(headers=lambda: headers, key=lambda: key, value=lambda: value), 1)  # type: ignore[arg-type]


def follow(data: bytes) -> None:
    """Parse a stream of server-sent events, as the client does."""
    stream = NotificationStream(0, None, None, RetryPolicy())
    for line in text_of(data).split("\n"):
        stream.feed_line(line)


def read_request(data: bytes) -> None:
    """Parse the head of a request: path, query, origin and host."""
    path, query, origin, host = fields_of(data, 4)
    path = path.decode("ascii", "ignore").encode()  # the server rejects others earlier
    headers = [(b"origin", origin), (b"host", host)]
    scope = {
        "type": "http",
        "method": "POST",
        "raw_path": path,
        "path": "/",
        "query_string": query,
        "headers": headers,
    }
    is_same_origin(Request(scope))
    check_parameters(Request(_resolve_absolute_target(scope)))


def read_bodies(data: bytes) -> None:
    """Parse request bodies with parsers of our own: object watches, rules of a repository, documents per line."""
    for read in (_parse_watch, _parse_rules, read_document_line):
        try:
            read(data)
        except HttpError:
            continue


def read_snapshot(data: bytes) -> None:
    """Parse a line of a snapshot that one provider sends to another."""
    try:
        line = json.loads(data)
    except (ValueError, RecursionError):
        return
    if isinstance(line, dict):
        for read in (_parse_header, lambda record: _parse_document(record, metadata_schema())):
            try:
                read(line)
            except TidingsError:
                continue


def plan_quiet(data: bytes) -> None:
    start, end, zone = texts_of(data, 3)
    quiet_until(parse_quiet_hours("ana", start, end, zone), NOW)


def read_settings() -> Run:
    file = Path(tempfile.mkdtemp(prefix="tidings-fuzz-")) / "tidings.toml"

    def run(data: bytes) -> None:
        file.write_bytes(data)
        load_settings(config=file)

    return run


def summarize(data: bytes) -> None:
    """Summarize a publication of the journal for feeds, for any bytes."""
    kind, body = fields_of(data, 2)
    media_type = text_of(kind)
    if media_type in media_types():
        publication = Publication("x", media_type, body)
        summarize_publication(publication)
        cloud_events.carried_text(publication)


def read_facts(data: bytes) -> None:
    """Parse a feed's hints for the polling interval."""
    period, often, hour, day = texts_of(data, 4)
    update_interval(period, often), parse_hours([hour]), parse_days([day])


def _targets() -> Iterator[Target]:
    yield Target("xml-rpc", send_call, (joined("text/xml", CALL), joined("text/xml; charset=latin-1", CALL)))
    yield Target("html", sanitize_markup, HTML)
    yield Target("discovery", lambda data: discover_feeds(data, "http://example.org/p/"), HTML)
    yield Target("opml", write_opml, (joined("My feeds", "One & two", "http://example.org/?a=1&b=2"),))
    yield Target("dates", read_date, DATES)
    yield Target("headers", read_headers, tuple(
        joined('<http://example.org/hub>; rel="hub", </f>; rel=self', date, "application/atom+xml;q=0.9, */*", '"a", W/"tag"', date, "Basic eDp5")
        for date in (*DATES[:3], b"120")
    ))  # fmt: skip
    yield Target("feed-facts", read_facts, (joined("daily", "2", "3", "Sunday"),))
    yield Target("urls", read_url, URLS)
    yield Target(
        "kafka-address",
        of_text(kafka_address.parse_kafka_address),
        encoded(("kafka://a:9092,[::1]/topic?security.protocol=SSL&sasl.password=%40",)),
    )
    yield Target("peer-records", read_records, (LOG_PAGE,))
    yield Target(
        "kafka-message",
        read_message,
        (joined("http://example.org/d", "register", "text/turtle", "<a> <b> <c> ."),),
    )
    yield Target("event-stream", follow, EVENT_STREAM)
    yield Target("request-head", read_request, HEADS, (HttpError,))
    yield Target("request-bodies", read_bodies, BODIES)
    yield Target("snapshot", read_snapshot, (LOG_PAGE, SNAPSHOT))
    yield Target("change-envelope", parse_envelope, ENVELOPES)
    yield Target("duration", of_text(durations.parse), encoded(("10 minutes", "90 s", "1 hour", "2 days")))
    yield Target(
        "quiet-hours",
        plan_quiet,
        (joined("22:00", "07:00", "Europe/Berlin"), joined("00:00", "23:59", "UTC")),
    )
    yield Target(
        "limits",
        of_text(lambda text: limits_in(text, Limits, "X")),
        encoded(("edges=5, depth=1_000", "depth=3")),
    )
    yield Target("settings", read_settings(), SETTINGS)
    yield Target("summary", summarize, tuple(joined(kind, body) for kind, body in _bodies()))


def _bodies() -> Iterator[tuple[str, bytes]]:
    yield (
        "application/json",
        b'{"title": "t", "link": "http://example.org/", "date": "2026-01-01", "tags": ["a"]}',
    )
    yield "application/xml", seeds.files("quote.xml")[0]
    yield "text/turtle", seeds.files("page.ttl")[0]


TARGETS = tuple(_targets())
