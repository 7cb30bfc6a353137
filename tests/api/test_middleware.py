"""Security headers and framing of requests."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import httpx
import pytest

from tests.support.servers.application import Served, served
from tidings.operations.settings import ServicePart

SCHEMA = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
 xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#">
<rdfs:Class rdf:about="http://example.org/a#Thing"><rdfs:comment rdf:parseType="Literal"
><script xmlns="http://www.w3.org/1999/xhtml">alert(1)</script></rdfs:comment></rdfs:Class>
</rdf:RDF>"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("home"), frozenset({ServicePart.API})) as opened:
        yield opened


def script_sources(answer: httpx.Response) -> str:
    """Return the allowed sources of scripts, as the policy of an answer states."""
    policy = dict(
        (each.strip().partition(" ")[::2]) for each in answer.headers["content-security-policy"].split(";")
    )
    return policy.get("script-src", policy["default-src"])


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/nothing<script>", "/healthz", "/readyz", "/metrics", "/problems", "/browse", "/hub"),
        *("/v1/openapi.json", "/v1/asyncapi.json", "/v1/subscriptions", "/v1/notifications?after=<script>"),
        *(
            "/console",
            "/console/login",
            "/console/nothing",
            "/feeds/nothing",
            "/opml/nothing",
            "/metadata/schema",
        ),
    ],
)
def test_response_allows_no_foreign_scripts_and_no_sniffing(service: Served, path: str) -> None:
    answer = service.get(path, headers={"accept": "text/html" if "console" in path else "*/*"})
    assert script_sources(answer) in ("'none'", "'self'"), answer.headers
    assert script_sources(answer) == "'none'" or path.startswith("/console")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert len(answer.headers.get_list("content-security-policy")) == 1


def test_schema_with_script_in_literal_is_served_without_script_permission(service: Served) -> None:
    headers = {"authorization": f"Bearer {service.token}", "content-type": "application/rdf+xml"}
    put = httpx.put(f"{service.url}/metadata/schema", content=SCHEMA, headers=headers, timeout=60)
    assert put.status_code == 200, put.text
    answer = service.get("/metadata/schema")
    assert "<script" in answer.text and answer.headers["content-type"] == "application/rdf+xml"
    assert script_sources(answer) == "'none'"


def test_internal_error_has_security_headers(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(service.context.tidings.store.journal), "head", None)
    answer = service.get("/v1/pipeline")
    assert answer.status_code == 500 and script_sources(answer) == "'none'"


def send_raw(service: Served, *requests: str) -> list[tuple[int, bytes]]:
    """Send requests on one connection, and return statuses and bodies until the server closes it."""
    host, port = service.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as client, client.makefile("rb") as read:
        client.settimeout(60)
        client.sendall("".join(requests).encode())
        answers = []
        while line := read.readline():
            headers = dict(each.split(b": ", 1) for each in iter(lambda: read.readline().rstrip(), b""))
            lengths = {name.lower(): value for name, value in headers.items()}
            answers.append((int(line.split()[1]), read.read(int(lengths[b"content-length"]))))
        return answers


LAST = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    "target",
    ["http://tidings.example.org/v1/asyncapi.json", "HTTP://tidings.example.org:80/v1/asyncapi.json?a=b"],
)
def test_request_absolute_target_overrides_host_header(service: Served, target: str) -> None:
    """`curl --proxy` sends such targets. RFC 9112, 3.2.2: a server must accept them."""
    [(status, body), last] = send_raw(service, f"GET {target} HTTP/1.1\r\nHost: other\r\n\r\n", LAST)
    assert (status, last[0]) == (200, 200)
    assert json.loads(body)["servers"]["events"]["host"].removesuffix(":80") == "tidings.example.org"


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("http://x", 200),
        ("http://x/", 200),
        ("http://x/nothing", 404),
        ("http://x%2Fhealthz/nothing", 404),
        ("http://x@y/healthz", 404),
        ("ftp://x/healthz", 404),
        ("healthz", 404),
        ("*", 404),
    ],
)
def test_request_target_forms_are_routed_or_rejected(service: Served, target: str, status: int) -> None:
    [(actual, _), _] = send_raw(service, f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n", LAST)
    assert actual == status


def test_request_with_two_body_lengths_is_rejected_and_connection_closed(service: Served) -> None:
    """Request smuggling: a proxy would take for body what the server takes for the next request. RFC 9112, 6.1."""
    head = f"POST /v1/publications?id=p-1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {service.token}\r\n"
    head += "Content-Type: application/json\r\n"
    chunked = "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    [(status, body)] = send_raw(service, head, "Content-Length: 4\r\n", chunked, LAST)
    assert (status, json.loads(body)["what"]) == (400, "the length of the body is given twice")
    assert service.context.tidings.store.journal.find("p-1") is None
    assert [status for status, _ in send_raw(service, head, chunked, LAST)] == [201, 200]
