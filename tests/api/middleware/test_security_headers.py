"""No answer of the service is a page that runs what somebody else wrote."""

from __future__ import annotations

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


def scripts(answer: httpx.Response) -> str:
    """Where an answer may load scripts from, as its policy says."""
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
def test_answer_runs_no_script_of_others_and_is_not_sniffed(service: Served, path: str) -> None:
    answer = service.get(path, headers={"accept": "text/html" if "console" in path else "*/*"})
    assert scripts(answer) in ("'none'", "'self'"), answer.headers
    assert scripts(answer) == "'none'" or path.startswith("/console")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert len(answer.headers.get_list("content-security-policy")) == 1


def test_schema_with_a_script_in_a_literal_runs_nothing(service: Served) -> None:
    headers = {"authorization": f"Bearer {service.token}", "content-type": "application/rdf+xml"}
    put = httpx.put(f"{service.url}/metadata/schema", content=SCHEMA, headers=headers, timeout=60)
    assert put.status_code == 200, put.text
    answer = service.get("/metadata/schema")
    assert "<script" in answer.text and answer.headers["content-type"] == "application/rdf+xml"
    assert scripts(answer) == "'none'"


def test_failure_of_the_service_has_the_headers(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(service.context.tidings.store.journal), "head", None)
    answer = service.get("/v1/pipeline")
    assert answer.status_code == 500 and scripts(answer) == "'none'"
