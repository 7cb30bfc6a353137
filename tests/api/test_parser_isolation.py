"""A service with hanging or crashing parsers keeps answering: each input is parsed in a parser process, with a
deadline.
"""

from __future__ import annotations

import os
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar
from xmlrpc.client import dumps

import httpx
import pytest

from tests.support.servers.application import Served, served
from tidings.feeds.inbound.response import parse_response
from tidings.graphs.model import RDF
from tidings.operations.http_client import HttpResponse
from tidings.operations.settings import ServicePart
from tidings.parsers.parser_pool import Lane, Limits, ParserPool

T = TypeVar("T")

pytestmark = pytest.mark.xdist_group("parser_isolation")

LONG = b"<a>" + b"<b/>" * 3_000_000 + b"</a>"
"""A document that takes many times the deadline to parse; `NODES` lets parser processes accept its size."""
NODES = "nodes=4000000"
SHORT = Limits(seconds=2, processes=2, waiting=2)

CALLS: list[str] = []
"""The names of the functions that were called in a parser process."""


class RecordingPool(ParserPool):
    """A pool that records the functions it is called with."""

    def call(self, lane: Lane, function: Callable[..., T], *args: Any) -> T:
        CALLS.append(function.__name__)
        return super().call(lane, function, *args)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIDINGS_DOCUMENT_LIMITS", NODES)  # parser processes read it when they start
        yield from _served(home)


def _served(home: Path) -> Iterator[Served]:
    with served(home, frozenset({ServicePart.API}), parsers=RecordingPool(SHORT)) as running:
        publish(running, b"<a/>", "application/xml")  # starts a process
        yield running


def publish(service: Served, body: bytes, media_type: str) -> httpx.Response:
    headers = {"authorization": f"Bearer {service.token}", "content-type": media_type}
    return httpx.post(f"{service.url}/v1/publications", content=body, headers=headers, timeout=60)


def test_publish_document_beyond_deadline_is_rejected_and_next_is_published(service: Served) -> None:
    answer = publish(service, LONG, "application/xml")
    assert (answer.status_code, answer.json()["what"]) == (422, "parsing took too long")
    assert "within 2 s (the limit seconds)" in answer.json()["accepted"]
    assert publish(service, b"<a>fine</a>", "application/xml").status_code == 201


def test_publish_many_documents_beyond_deadline_leaves_service_responsive(service: Served) -> None:
    """More documents than processes and places in the queue: the rest are rejected with Retry-After."""
    with ThreadPoolExecutor(8) as threads:
        submitted = [threads.submit(publish, service, LONG, "application/xml") for _ in range(8)]
        assert httpx.get(f"{service.url}/healthz", timeout=60).status_code == 200
        assert service.get("/v1/subscriptions").status_code == 200
        assert publish(service, b'{"a": 1}', "application/json").status_code == 201
        answers = [each.result() for each in submitted]
    assert {answer.status_code for answer in answers} == {422, 503}
    assert all(answer.headers["retry-after"] for answer in answers if answer.status_code == 503)


PIPE = b"/tidings-pipe"
HARMFUL = BOM_UTF8 * 2 + b'<!DOCTYPE a SYSTEM "file://' + PIPE + b'">'
GRAPH = f'<r:RDF xmlns:r="{RDF}" xmlns:e="urn:e:"><e:a e:b="&amp;"/></r:RDF>'.encode()
BODIES = {
    "application/xml": b"<a b='&x;'/>",
    "text/xml": b"<a b='&x;'/>",
    "application/rdf+xml": GRAPH.replace(b"&amp;", b"&x;"),
    "application/rss+xml": b"<rss x='&x;'><channel/></rss>",
    "application/atom+xml": b"<feed xmlns='http://www.w3.org/2005/Atom' x='&x;'/>",
}


@pytest.mark.parametrize("media_type", BODIES)
def test_publish_hidden_document_type_opens_no_file(service: Served, media_type: str, tmp_path: Path) -> None:
    """The pipe is never written to: a service that opened it would not answer in time."""
    os.mkfifo(tmp_path / "pipe")
    body = HARMFUL.replace(PIPE, bytes(tmp_path / "pipe")) + BODIES[media_type]
    answer = publish(service, body, media_type)
    assert answer.status_code == 422 and "byte order mark" in answer.json()["what"], answer.text


def test_xml_rpc_without_token_is_parsed_in_parser_process(service: Served, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    body = b"<methodCall x='&x;'><methodName>weblogUpdates.ping</methodName></methodCall>"
    hidden = HARMFUL.replace(PIPE, bytes(tmp_path / "pipe")) + body
    for sent, message in (
        (hidden, "byte order mark"),
        (body, "Entity 'x' not defined"),
        (b"<a/>", "not an XML-RPC call"),
    ):
        answer = httpx.post(
            f"{service.url}/RPC2", content=sent, headers={"content-type": "text/xml"}, timeout=60
        )
        assert answer.status_code == 200 and message in answer.text


FEED = b"<rss version='2.0'><channel><item><title>x</title></item></channel></rss>"
CALLED = {
    "a document": ("POST", "/v1/publications", "application/xml", b"<a/>", "check_document"),
    "a graph": ("POST", "/v1/publications", "application/rdf+xml", GRAPH, "check_graph"),
    "a graph with a base": ("POST", "/v1/publications?base=urn:b", "text/turtle", b"<a> <b> 1 .", "write_graph"),
    "JSON-LD": ("POST", "/v1/publications", "application/ld+json", b'{"@id": "urn:a", "urn:p": 1}', "write_parts"),
    "a feed": ("POST", "/v1/publications", "application/rss+xml", FEED, "write_parts"),
    "a call": ("POST", "/RPC2", "text/xml", b"<a/>", "read_call"),
    "a published feed": (
        "POST",
        "/RPC2",
        "text/xml",
        dumps((FEED.decode(),), "tidings.publish").encode(),
        "items_of",
    ),
    "a schema": ("PUT", "/metadata/schema", "application/rdf+xml", GRAPH, "check_graph"),
    "metadata": ("PUT", "/metadata/documents?uri=http://e.org/a", "text/turtle", b"<#a> a <urn:C> .", "statements"),
}  # fmt: skip


@pytest.mark.parametrize(("method", "path", "media_type", "body", "function"), CALLED.values(), ids=CALLED)
def test_submission_is_parsed_in_parser_process(
    service: Served, method: str, path: str, media_type: str, body: bytes, function: str
) -> None:
    schema = b"<urn:C> a <http://www.w3.org/2000/01/rdf-schema#Class> ."
    headers = {"authorization": f"Bearer {service.token}", "content-type": media_type}
    with httpx.Client(base_url=service.url, headers=headers, timeout=60) as client:
        if path.startswith("/metadata/documents"):
            client.put("/metadata/schema", content=schema, headers={"content-type": "text/turtle"})
        CALLS.clear()
        answer = client.request(method, path, content=body)
    assert answer.status_code < 500 and function in CALLS, (answer.text, CALLS)


def test_polled_feed_is_parsed_in_parser_process(service: Served) -> None:
    """Polled and pushed feeds use the pool of the service, which is installed in this process."""
    CALLS.clear()
    facts, items = parse_response(HttpResponse(200, "http://example.org/feed", None, {}, FEED))
    assert (facts.title, len(items), CALLS) == (None, 1, ["read_feed"])
