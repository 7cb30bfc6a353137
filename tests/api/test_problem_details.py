"""Errors as Problem Details, and the page that describes each type."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator

import httpx
import pytest
from fastapi import APIRouter

import tidings
from tests.support.paths import ROOT
from tests.support.servers.http_server import served
from tidings.api import problem_details
from tidings.api.routes import STATUSES, ProblemRoute
from tidings.console.metadata import problem_types_router
from tidings.errors import CheckProblem, InputError, Place, RateLimited, pointing

PAGE = ROOT / "docs" / "problems.md"
TEXT = "prise < 200"


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    router = APIRouter(route_class=ProblemRoute)
    router.add_api_route("/text", wrong_text)
    router.add_api_route("/often", too_often)
    router.include_router(problem_types_router())
    with served(router) as address, httpx.Client(base_url=address, trust_env=False) as opened:
        yield opened


def wrong_text() -> None:
    with pointing("/text"):
        raise CheckProblem(
            "there is no attribute 'prise'", place=Place.at(TEXT, 0, 5), hint="did you mean 'price'?"
        )


def too_often() -> None:
    raise RateLimited("too many requests", seconds=7)


def test_problem_details_have_facts_of_error_as_members(client: httpx.Client) -> None:
    answer = client.get("/text")
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    assert answer.json() == {
        "type": "/problems#check-problem",
        "title": "The text parses, but contradicts the schema or itself",
        "status": 422,
        "detail": "there is no attribute 'prise' (column 1)",
        "instance": "/text",
        "error": "CheckProblem",
        "what": "there is no attribute 'prise'",
        "place": {"line": 1, "column": 1, "length": 5},
        "hint": "did you mean 'price'?",
        "pointer": "/text",
        "message": "there is no attribute 'prise' (column 1)\n  prise < 200\n  ^^^^^   did you mean 'price'?",
    }


def test_rate_limit_error_has_retry_after(client: httpx.Client) -> None:
    answer = client.get("/often")
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")


def test_pointing_nested_uses_innermost_pointer() -> None:
    with pytest.raises(InputError) as error, pointing("/text"), pointing("/text/0"):
        raise InputError("no")
    assert error.value.facts()["pointer"] == "/text/0"


def test_problem_type_links_to_page(client: httpx.Client) -> None:
    page = client.get(problem_details.PAGE)
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert 'id="check-problem"' in page.text


def test_problem_page_describes_every_type() -> None:
    for module in pkgutil.walk_packages(tidings.__path__, "tidings."):
        if not module.name.startswith(("tidings.__main__", "tidings.spark", "tidings.relational")):
            importlib.import_module(module.name)
    listed = re.findall(r"^\| `([a-z-]+)` \|", PAGE.read_text(), re.MULTILINE)
    assert listed == [problem_details.problem_name(kind) for kind in problem_details.list_problem_types()]
    assert {problem_details.problem_name(kind) for kind, _ in STATUSES} <= set(listed)
