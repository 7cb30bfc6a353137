"""The OpenAPI document and the service agree: schemathesis makes requests of the document and checks the answers.

What the document allows is taken, or refused with 422 for a reason that no schema can state: a text that is not in its
language, a cursor that is ahead of everything. What violates the document is refused, and every answer is one that the
document has. `make fuzz` makes more requests.
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

from tests.interfaces.routes.place import fill
from tests.operating.served import Served, served
from tidings.service.access import Access

EXAMPLES = max(3, settings.default.max_examples // 30)
ACCEPTED = ["2xx", "403", "404", "409", "422"]
CONFIG = {"checks": {"positive_data_acceptance": {"expected-statuses": ACCEPTED}}}


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("home")) as made:
        fill(made)
        yield made


@pytest.fixture(scope="module")
def schema(at: Served) -> Any:
    config = SchemathesisConfig.from_dict(CONFIG)
    return schemathesis.openapi.from_url(f"{at.url}/v1/openapi.json", config=config)


def failures(case: Any, headers: dict[str, str]) -> list[str]:
    """What of an answer contradicts the document."""
    try:
        case.call_and_validate(headers=headers, timeout=30)
    except FailureGroup as group:
        return [f"{type(each).__name__}: {each}" for each in group.exceptions]
    except Failure as failure:
        return [f"{type(failure).__name__}: {failure}"]
    return []


@pytest.mark.parametrize(
    "mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["valid", "violating"]
)
def test_generated_request_is_answered_as_the_document_says(
    at: Served, schema: Any, mode: GenerationMode
) -> None:
    made = Access(at.context.tidings.store).make(f"ana {mode.value}", ["subscribe", "publish"], "ana")
    headers = {"Authorization": f"Bearer {made.secret}"}
    wrong: dict[str, str] = {}
    tried = set[str]()
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.path.endswith("/stream"):  # its answer does not end
            continue

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
            tried.add(label)
            for each in failures(case, headers):
                wrong.setdefault(label, f"{each}\n{case.as_curl_command()[:400]}")

        check()
    assert len(tried) > 25
    assert not wrong, "\n\n".join(f"{label}: {told}" for label, told in wrong.items())


def test_document_declares_which_texts_a_parameter_takes(schema: Any) -> None:
    """A NUL is refused in every address: whoever generates requests of the document sends none."""
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


METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")


def test_method_that_is_not_declared_is_refused_with_those_that_are(at: Served, schema: Any) -> None:
    """Below an id that may have slashes in it, an address is that of an id, too: those are left out."""
    for path, operations in schema.raw_schema["paths"].items():
        if path.startswith(("/v1/subscriptions/{id}/", "/v1/feeds/")):
            continue
        declared = {method.upper() for method in operations}
        address = at.url + path.replace("{id}", "1").replace("{number}", "1")
        for method in METHODS:
            if method in declared:
                continue
            answer = httpx.request(method, address, trust_env=False)
            assert answer.status_code == 405, (method, path)
            assert set(answer.headers["allow"].split(", ")) - {"HEAD"} == declared, (method, path)
