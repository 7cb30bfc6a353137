"""Contract test of the OpenAPI document: schemathesis generates requests from it and checks the responses.

A request that the document allows is accepted, or refused with 422 where `INEXPRESSIBLE` gives the reason. A request
that violates the document is refused, and the document declares every response. `make fuzz` sends more requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.config import SchemathesisConfig
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.specs.openapi.checks import response_schema_conformance

from tests.api.routes.place import fill
from tests.support.servers.application import Served, served
from tidings.service.authorization import Access

EXAMPLES = max(3, settings.default.max_examples // 30)
REFUSED = ["400", "401", "403", "404", "405", "409", "413", "415", "422"]
TEXT = "whether the text is in its language, or the delay is a duration"
CURSOR = "whether the cursor is ahead of the last notification"
INEXPRESSIBLE = {
    "post_publications": "whether bytes are of their media type, and fit the schema of events",
    "post_subscriptions": TEXT,
    "put_subscriptions_id": TEXT,
    "patch_subscriptions_id": TEXT,
    "post_check": TEXT,
    "post_preview": TEXT,
    "get_notifications": CURSOR,
    "get_notifications_stream": CURSOR,
    "put_notifications_ack": CURSOR,
    "post_notifications_ack": CURSOR,
    "post_destinations": "which targets a kind of destination takes",
    "put_preferences": "which time zones there are",
}
"""Operations, by id, that may refuse with 422 what their schema allows, and what the schema cannot express."""


def accepted_statuses(path: str, operation: dict[str, Any]) -> list[str]:
    """Return the statuses that a request which fits the document may be answered with."""
    missing = {"404"} if "{" in path else set()
    inexpressible = {"422"} if operation["operationId"] in INEXPRESSIBLE else set()
    return ["2xx", "403", *sorted(missing | inexpressible | {"409"} & set(operation["responses"]))]


def contract_config(document: dict[str, Any]) -> SchemathesisConfig:
    """Return the statuses accepted of each operation, as schemathesis takes them."""
    operations = [
        {
            "include-operation-id": operation["operationId"],
            "checks": {
                "positive_data_acceptance": {"expected-statuses": accepted_statuses(path, operation)},
                "negative_data_rejection": {"expected-statuses": REFUSED},
            },
        }
        for path, methods in document["paths"].items()
        for operation in methods.values()
    ]
    return SchemathesisConfig.from_dict({"operations": operations})


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("home")) as running:
        fill(running)
        yield running


@pytest.fixture(scope="module")
def schema(at: Served) -> Any:
    document = httpx.get(f"{at.url}/v1/openapi.json", trust_env=False).json()
    schema = schemathesis.openapi.from_dict(document, config=contract_config(document))
    schema.config.update(base_url=at.url)
    return schema


def failures(case: Any, headers: dict[str, str]) -> list[str]:
    """Return how a response contradicts the document. `HEAD` has the status of a stream, which does not end."""
    without_body = case.path.endswith("/stream")
    if without_body:
        case.method = "HEAD"
    excluded = [response_schema_conformance] if without_body else []
    try:
        case.call_and_validate(headers=headers, timeout=30, excluded_checks=excluded)
    except FailureGroup as group:
        return [f"{type(each).__name__}: {each}" for each in group.exceptions]
    except Failure as failure:
        return [f"{type(failure).__name__}: {failure}"]
    return []


@pytest.mark.parametrize(
    "mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["valid", "violating"]
)
def test_openapi_generated_requests_get_declared_responses(
    at: Served, schema: Any, mode: GenerationMode
) -> None:
    created = Access(at.context.tidings.store).make(f"ana {mode.value}", ["subscribe", "publish"], "ana")
    headers = {"Authorization": f"Bearer {created.secret}"}
    wrong: dict[str, str] = {}
    tested = set[str]()
    for result in schema.get_all_operations():
        operation = result.ok()

        @seed(1)
        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def check(case: Any) -> None:
            label = case.operation.label
            tested.add(label)
            for each in failures(case, headers):
                wrong.setdefault(label, f"{each}\n{case.as_curl_command()[:400]}")

        check()
    assert tested == {result.ok().label for result in schema.get_all_operations()}
    assert not wrong, "\n\n".join(f"{label}: {message}" for label, message in wrong.items())


def test_openapi_text_parameters_declare_pattern(schema: Any) -> None:
    """Every address with a NUL is rejected, so generators must not send one."""
    declared = [
        one
        for path in schema.raw_schema["paths"].values()
        for operation in path.values()
        for parameter in operation.get("parameters", ())
        if parameter["in"] in ("path", "query")
        for one in (parameter["schema"], *parameter["schema"].get("anyOf", ()))
        if one.get("type") == "string" and "enum" not in one
    ]
    assert len(declared) > 20 and all("pattern" in one for one in declared)


METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW")


@pytest.mark.parametrize("id", ["1", "stream", "a/b", "a%2Fb", "a%2Fpause", "renew/x"])
def test_openapi_undeclared_method_answers_405_with_declared_ones(at: Served, schema: Any, id: str) -> None:
    """`HEAD` is allowed where `GET` is; no path declares `OPTIONS`. Ids that the service generates have no slash."""
    with httpx.Client(base_url=at.url, trust_env=False) as client:
        for path, operations in schema.raw_schema["paths"].items():
            if path.startswith("/v1/destinations/") and not id.isalnum():
                continue
            declared = {method.upper() for method in operations}
            allowed = declared | ({"HEAD"} if "GET" in declared else set())
            for method in set(METHODS) - allowed:
                answer = client.request(method, path.replace("{id}", id).replace("{number}", "1"))
                assert answer.status_code == 405, (method, path)
                assert set(answer.headers["allow"].split(", ")) == allowed, (method, path)


def test_openapi_declared_method_reaches_its_route(at: Served, schema: Any) -> None:
    """A request without a token is rejected by the route of the document."""
    with httpx.Client(base_url=at.url, trust_env=False) as client:
        for path, operations in schema.raw_schema["paths"].items():
            address = path.replace("{id}", "1").replace("{number}", "1")
            for method in [*operations, *(["head"] if "get" in operations else [])]:
                assert client.request(method, address).status_code == 401, (method, path)
