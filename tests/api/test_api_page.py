"""The examples of docs/api.md, asked of a real server. `...` stands for anything, and for any other members."""

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
from tidings.service.submission import accepted_media_types
from tidings.service.tidings import Tidings

PAGE = (ROOT / "docs" / "api.md").read_text()
EXAMPLE = re.compile(
    r"^```http\n(.*?)\n\n(?:(.*?)\n\n)??HTTP/1.1 (\d+) [^\n]*\n((?:\S+: [^\n]*\n)*)\n(.*?)^```",
    re.MULTILINE | re.DOTALL,
)


def same(told: Any, found: Any) -> bool:
    """Whether what was answered is what the page says."""
    if told == "...":
        return True
    if isinstance(told, dict) and isinstance(found, dict):
        named = told.keys() - {"..."}
        complete = "..." in told or named == found.keys()
        return complete and all(name in found and same(told[name], found[name]) for name in named)
    if isinstance(told, list) and isinstance(found, list):
        return len(told) == len(found) and all(map(same, told, found))
    return bool(told == found)


def ask(service: Service, head: str, body: str) -> httpx.Response:
    (line, *rest), clients = head.splitlines(), {"ANA": service.caller("ana"), "SHOP": service.shop}
    method, path = line.split()
    headers = dict(each.split(": ", 1) for each in rest)
    client = clients[headers.pop("Authorization").removeprefix("Bearer ")]
    return client.request(method, path, content=body.encode(), headers=headers)


def test_every_example_is_true(tmp_path: Path) -> None:
    examples = EXAMPLE.findall(PAGE)
    assert len(examples) == PAGE.count("```http") == 9
    with Tidings(tmp_path) as tidings, served_api(tidings) as service:
        for head, body, status, told, answer in examples:
            response = ask(service, head, body)
            assert response.status_code == int(status), response.text
            for name, value in (each.split(": ", 1) for each in told.splitlines()):
                assert response.headers[name] == value
            assert same(json.loads(answer), response.json()), f"{head}\n{response.text}"


def test_every_limit_and_media_type_is_named() -> None:
    limits = Limits()
    for field in fields(Limits):
        assert f"| `{field.name}` | {getattr(limits, field.name):,} |" in PAGE
    known = {kind for kind in accepted_media_types() if not kind.startswith("application/x-")}
    assert {kind for kind in known if f"`{kind}`" not in PAGE} == set()
