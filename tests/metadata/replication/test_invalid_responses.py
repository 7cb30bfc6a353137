"""Leaders with invalid responses: each is rejected with a message, and nothing is applied."""

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


def case_id(value: bytes | str) -> str:
    """Return the id of a case: some values are megabytes."""
    return (value.decode() if isinstance(value, bytes) else value)[:40]


@contextmanager
def serve_responses(log: bytes, snapshot: bytes = b"", status: bytes = STATUS) -> Iterator[str]:
    """Serve constant responses; an empty log stands for a trimmed one."""
    answers = {"/metadata/log": log or b"{}", "/metadata/snapshot": snapshot, "/metadata/status": status}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            self.send_response(410 if path == "/metadata/log" and not log else 200)
            self.end_headers()
            self.wfile.write(answers[path])

        def log_message(self, *_: object) -> None:
            """Suppress the log."""

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


def resource_json(**values: object) -> dict[str, Any]:
    return {"uri": "http://example.org/a#b", "class": "CycleProvider", "values": values}


def problem_of_following(node: Node, url: str) -> str:
    """Return the error of a leader that cannot be followed."""
    with node.store() as store, Peer(url) as peer:
        provider = Provider(store)
        with pytest.raises(TidingsError) as problem:
            LogFollower(store, provider, peer).catch_up()
        assert not provider.documents()
        return str(problem.value)


@pytest.mark.parametrize(
    ("log", "message"),
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
    ids=case_id,
)
def test_follow_invalid_log_is_rejected(second_node: Node, log: bytes, message: str) -> None:
    with serve_responses(log) as url:
        assert message in problem_of_following(second_node, url)


@pytest.mark.parametrize(
    ("response", "message"),
    [
        (DEEP, "not the response of a provider"),
        (snapshot(position=float("inf")), "not a snapshot"),
        (snapshot(position=HUGE), "not a snapshot"),
        (snapshot(["uri"]), "not a resource"),
        (snapshot(None), "not a resource"),
        (snapshot(resource_json(), resource_json()), "has the same resource twice"),
        (snapshot(resource_json(serverPort=[1, 2])), "not valid for serverPort of CycleProvider"),
        (snapshot(resource_json(serverPort=[])), "not valid for serverPort of CycleProvider"),
    ],
    ids=case_id,
)
def test_follow_invalid_snapshot_is_rejected(second_node: Node, response: bytes, message: str) -> None:
    with serve_responses(b"", response) as url:
        assert message in problem_of_following(second_node, url)


@pytest.mark.parametrize("status", [DEEP, b"", b"[]", b'"m-1"', b"{"], ids=case_id)
def test_follow_invalid_status_is_rejected(second_node: Node, status: bytes) -> None:
    with serve_responses(page(entry(1), head=1), status=status) as url:
        assert "not the response of a provider" in problem_of_following(second_node, url)


@pytest.mark.parametrize(
    "leader", [b"7", b'"file:///etc/passwd"', b'"http://127.0.0.1:1"', b"{}"], ids=case_id
)
def test_follow_ignores_leader_of_status(second_node: Node, leader: bytes) -> None:
    """Any value is accepted: only the log matters."""
    status = b'{"provider": "m-1", "leader": ' + leader + b"}"
    with (
        serve_responses(page(entry(1), head=1), status=status) as url,
        second_node.store() as store,
        Peer(url) as peer,
    ):
        LogFollower(store, Provider(store), peer).catch_up()
        assert Provider(store).position == 1


def test_snapshot_lines_larger_than_read_buffer_are_joined(second_node: Node) -> None:
    """The lines are larger than one read, and one read may have several lines."""
    long = resource_json(serverHost=["x" * 200_000])
    with serve_responses(b"", snapshot(long) + b"\n") as url, Peer(url) as peer, peer.snapshot() as lines:
        assert [list(line) for line in lines] == [
            ["position", "documents", "schema"],
            ["document", "resources"],
        ]
