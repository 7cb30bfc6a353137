"""Leaders that answer nonsense: it is refused in words, nothing of it is applied, and nobody asks for ever."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from tests.metadata.replication.nodes import SCHEMA, Node
from tidings.errors import TidingsError
from tidings.metadata.provider.provider import Provider
from tidings.metadata.replication.log_follower import LogFollower
from tidings.metadata.replication.peer import Peer

DEEP = b"[" * 100_000
HUGE = 10**30
STATUS = b'{"provider": "m-1"}'


def beginning(value: bytes | str) -> str:
    """What a case is called: some are megabytes."""
    return (value.decode() if isinstance(value, bytes) else value)[:40]


@contextmanager
def answering(log: bytes, snapshot: bytes = b"", status: bytes = STATUS) -> Iterator[str]:
    """A server that always answers the same; a log of nothing is one that was trimmed."""
    answers = {"/metadata/log": log or b"{}", "/metadata/snapshot": snapshot, "/metadata/status": status}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            self.send_response(410 if path == "/metadata/log" and not log else 200)
            self.end_headers()
            self.wfile.write(answers[path])

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def page(*entries: dict[str, Any], head: object = 10, first: object = 1) -> bytes:
    return json.dumps({"provider": "m-1", "first": first, "head": head, "entries": entries}).encode()


def entry(position: object, what: str = "schema", body: bytes = SCHEMA) -> dict[str, Any]:
    media = {"uri": "", "media_type": "text/turtle", "body": b64encode(body).decode()}
    return {"position": position, "what": what, **media}


def snapshot(*resources: object, position: object = 7) -> bytes:
    schema = {"media_type": "text/turtle", "body": b64encode(SCHEMA).decode()}
    lines = [{"position": position, "documents": 1, "schema": schema}]
    lines += [{"document": "http://example.org/a", "resources": resources}]
    return "\n".join(map(json.dumps, lines)).encode()


def described(**values: object) -> dict[str, Any]:
    return {"uri": "http://example.org/a#b", "class": "CycleProvider", "values": values}


def followed(node: Node, url: str) -> str:
    """What is said about a leader that cannot be followed."""
    with node.store() as store, Peer(url) as peer:
        provider = Provider(store)
        with pytest.raises(TidingsError) as problem:
            LogFollower(store, provider, peer).catch_up()
        assert not provider.documents()
        return str(problem.value)


@pytest.mark.parametrize(
    ("log", "told"),
    [
        (DEEP, "not the response of a provider"),
        (page(head=float("inf")), "not a page of a log"),
        (page(head=HUGE), "not a page of a log"),
        (page(head=-1), "not a page of a log"),
        (page(entry(float("inf"))), "not a page of a log"),
        (page(entry(1.5)), "not a page of a log"),
        (page(entry(True)), "not a page of a log"),
        (page(), "the log has a gap"),
        (page(entry(1)), "the log has a gap"),
        (page(entry(1), entry(3)), "entries of the log are missing"),
    ],
    ids=beginning,
)
def test_logs(two: Node, log: bytes, told: str) -> None:
    with answering(log) as url:
        assert told in followed(two, url)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (DEEP, "not the response of a provider"),
        (snapshot(position=float("inf")), "not a snapshot"),
        (snapshot(position=HUGE), "not a snapshot"),
        (snapshot(["uri"]), "not a resource"),
        (snapshot(None), "not a resource"),
        (snapshot(described(), described()), "has the same resource twice"),
        (snapshot(described(serverPort=[1, 2])), "not valid for serverPort of CycleProvider"),
        (snapshot(described(serverPort=[])), "not valid for serverPort of CycleProvider"),
    ],
    ids=beginning,
)
def test_snapshots(two: Node, given: bytes, told: str) -> None:
    with answering(b"", given) as url:
        assert told in followed(two, url)


@pytest.mark.parametrize("status", [DEEP, b"", b"[]", b'"m-1"', b"{"], ids=beginning)
def test_where_it_stands(two: Node, status: bytes) -> None:
    with answering(page(entry(1), head=1), status=status) as url:
        assert "not the response of a provider" in followed(two, url)


@pytest.mark.parametrize(
    "leader", [b"7", b'"file:///etc/passwd"', b'"http://127.0.0.1:1"', b"{}"], ids=beginning
)
def test_whom_it_follows(two: Node, leader: bytes) -> None:
    """Whoever it is, the log counts."""
    status = b'{"provider": "m-1", "leader": ' + leader + b"}"
    with answering(page(entry(1), head=1), status=status) as url, two.store() as store, Peer(url) as peer:
        LogFollower(store, Provider(store), peer).catch_up()
        assert Provider(store).position == 1


def test_lines_that_come_in_pieces(two: Node) -> None:
    """Larger than what is read at a time, and with several lines in it."""
    long = described(serverHost=["x" * 200_000])
    with answering(b"", snapshot(long) + b"\n") as url, Peer(url) as peer, peer.snapshot() as lines:
        assert [list(line) for line in lines] == [
            ["position", "documents", "schema"],
            ["document", "resources"],
        ]
