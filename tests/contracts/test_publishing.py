"""The console reports about a publication what the API reports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import unescape
from typing import Any

import httpx
import pytest

from tests.support.processes.console_visitor import Visitor
from tests.support.servers.application import Served, served
from tidings.api.limits import VARIABLE

TRIG = "@prefix e: <http://e.example/> . e:one { e:a e:b 1 } e:two { e:a e:b 2 }"
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><title>f</title><updated>2026-01-01T00:00:00Z</updated>
<entry><id>urn:e</id><title>e</title><updated>2026-01-01T00:00:00Z</updated></entry></feed>"""
EVENT = {"specversion": "1.0", "type": "t", "source": "/s", "id": "from-the-event", "data": {"price": 1}}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, "bulk=5")
        with served(tmp_path_factory.mktemp("home")) as at:
            at.context.tidings.publish('{"price": 1}', "taken")
            yield at


def publish_by_api(service: Served, text: str, kind: str, **parameters: str) -> httpx.Response:
    headers = {"authorization": f"Bearer {service.token}", "content-type": kind}
    return httpx.post(
        f"{service.url}/v1/publications", content=text.encode(), params=parameters, headers=headers
    )


def publish_by_console(service: Served, text: str, kind: str, **fields: str) -> httpx.Response:
    return Visitor(service.url, service.token).post("/console/publish", text=text, kind=kind, **fields)


@pytest.mark.parametrize(
    ("kind", "text", "more"),
    [
        ("application/json", '{"price": 1e999}', {}),
        ("application/json", '{"price": 2}', {"id": "taken"}),
        ("application/json", '{"price": 2}', {"base": "http://e.example/"}),
        ("application/xml", "<a><b></a>", {}),
        ("text/turtle", "<a> <b> .", {}),
        ("text/turtle", "<a> <b> 1 .", {}),
        ("application/trig", "@prefix e: <http://e.example/> . e:one { e:a", {}),
        ("application/atom+xml", "<feed>", {}),
        ("application/jsonl", '{"a": 1}', {"id": "one-for-many"}),
        ("application/jsonl", '{"a": 1}\n' * 9, {}),
        ("text/css", "{}", {}),
        ("application/cloudevents+json", json.dumps(EVENT | {"audience": "board"}), {"audience": "press"}),
    ],
)
def test_publish_console_errors_have_facts_of_api_errors(
    service: Served, kind: str, text: str, more: dict[str, str]
) -> None:
    answer, page = (
        publish_by_api(service, text, kind, **more),
        publish_by_console(service, text, kind, **more),
    )
    assert answer.status_code in (409, 413, 415, 422), answer.text
    assert page.status_code == (409 if answer.status_code == 409 else 422)
    page_text = unescape(page.text)
    problem: dict[str, Any] = answer.json()
    assert problem["what"].lower() in page_text.lower()
    for fact in ("received", "accepted", "hint"):
        assert (problem.get(fact) or "").lower() in page_text.lower(), fact


@pytest.mark.parametrize(
    ("kind", "text", "id", "ids"),
    [
        ("application/json", '{"price": 7}', "mine", ["mine"]),
        ("application/trig", TRIG, "graphs", ["graphs-1", "graphs-2"]),
        ("application/atom+xml", ATOM, "items", ["items-1"]),
        ("application/cloudevents+json", json.dumps(EVENT), "", ["from-the-event"]),
    ],
)
def test_publish_console_then_api_is_idempotent(
    service: Served, kind: str, text: str, id: str, ids: list[str]
) -> None:
    """With the same ids and the same bytes."""
    page = publish_by_console(service, text, kind, id=id)
    assert page.status_code == 200 and all(f"<code>{each}</code>" in page.text for each in ids), page.text
    again = publish_by_api(service, text, kind, **({"id": id} if id else {}))
    assert again.status_code == 200, again.text
    payload = again.json()
    assert [one["new"] for one in payload.get("publications", [payload])] == [False] * len(ids)


def test_publish_lines_console_reports_outcomes_of_api(service: Served) -> None:
    text = '{"price": 1}\n\n{"price": }\n{"price": 3}\n["no event"]\n'
    payload = publish_by_api(service, text, "application/jsonl").json()
    page = unescape(publish_by_console(service, text, "").text)
    assert "2 publications" in page and "2 refused" in page
    refused = [one for one in payload["outcomes"] if one.get("problem")]
    assert [one["line"] for one in refused] == [3, 5]
    for one in refused:
        assert f"Line {one['line']} refused:" in page and one["problem"]["message"] in page
