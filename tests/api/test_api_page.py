"""The examples of docs/api.md, sent to a real server. `...` stands for any value, and for any other members."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import httpx

from tests.support.paths import ROOT
from tests.support.servers.api_server import Service, served_api
from tidings.api.limits import Limits
from tidings.ingest.submission import accepted_media_types
from tidings.service.tidings import Tidings

PAGE = (ROOT / "docs" / "api.md").read_text()
EXAMPLE = re.compile(
    r"^```http\n(.*?)\n\n(?:(.*?)\n\n)??HTTP/1.1 (\d+) [^\n]*\n((?:\S+: [^\n]*\n)*)\n(.*?)^```",
    re.MULTILINE | re.DOTALL,
)


def conforms(expected: Any, actual: Any) -> bool:
    """Whether an answer conforms to the example of the page."""
    if expected == "...":
        return True
    if isinstance(expected, dict) and isinstance(actual, dict):
        named = expected.keys() - {"..."}
        complete = "..." in expected or named == actual.keys()
        return complete and all(name in actual and conforms(expected[name], actual[name]) for name in named)
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(conforms, expected, actual))
    return bool(expected == actual)


def ask(service: Service, head: str, body: str) -> httpx.Response:
    (line, *rest), clients = head.splitlines(), {"ANA": service.caller("ana"), "SHOP": service.shop}
    method, path = line.split()
    headers = dict(each.split(": ", 1) for each in rest)
    client = clients[headers.pop("Authorization").removeprefix("Bearer ")]
    return client.request(method, path, content=body.encode(), headers=headers)


def test_api_page_examples_match_real_answers(tmp_path: Path) -> None:
    examples = EXAMPLE.findall(PAGE)
    assert len(examples) == PAGE.count("```http") == 9
    with Tidings(tmp_path) as tidings, served_api(tidings) as service:
        for head, body, status, headers, answer in examples:
            response = ask(service, head, body)
            assert response.status_code == int(status), response.text
            for name, value in (each.split(": ", 1) for each in headers.splitlines()):
                assert response.headers[name] == value
            assert conforms(json.loads(answer), response.json()), f"{head}\n{response.text}"


def test_api_page_lists_every_limit_and_media_type() -> None:
    limits = Limits()
    for field in fields(Limits):
        assert f"| `{field.name}` | {getattr(limits, field.name):,} |" in PAGE
    accepted = {kind for kind in accepted_media_types() if not kind.startswith("application/x-")}
    assert {kind for kind in accepted if f"`{kind}`" not in PAGE} == set()
