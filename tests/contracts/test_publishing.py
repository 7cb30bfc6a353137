"""What the console says of what somebody publishes is what the API says."""

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


def over_http(service: Served, text: str, kind: str, **parameters: str) -> httpx.Response:
    headers = {"authorization": f"Bearer {service.token}", "content-type": kind}
    return httpx.post(
        f"{service.url}/v1/publications", content=text.encode(), params=parameters, headers=headers
    )


def by_paste(service: Served, text: str, kind: str, **fields: str) -> httpx.Response:
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
def test_what_is_wrong_is_said_in_the_same_words(
    service: Served, kind: str, text: str, more: dict[str, str]
) -> None:
    said, page = over_http(service, text, kind, **more), by_paste(service, text, kind, **more)
    assert said.status_code in (409, 413, 415, 422), said.text
    assert page.status_code == (409 if said.status_code == 409 else 422)
    shown = unescape(page.text)
    told: dict[str, Any] = said.json()
    assert told["what"].lower() in shown.lower()
    for fact in ("received", "accepted", "hint"):
        assert (told.get(fact) or "").lower() in shown.lower(), fact


@pytest.mark.parametrize(
    ("kind", "text", "id", "ids"),
    [
        ("application/json", '{"price": 7}', "mine", ["mine"]),
        ("application/trig", TRIG, "graphs", ["graphs-1", "graphs-2"]),
        ("application/atom+xml", ATOM, "items", ["items-1"]),
        ("application/cloudevents+json", json.dumps(EVENT), "", ["from-the-event"]),
    ],
)
def test_what_was_published_there_is_known_here(
    service: Served, kind: str, text: str, id: str, ids: list[str]
) -> None:
    """By the same ids, with the same bytes: nothing is new the second time."""
    page = by_paste(service, text, kind, id=id)
    assert page.status_code == 200 and all(f"<code>{each}</code>" in page.text for each in ids), page.text
    again = over_http(service, text, kind, **({"id": id} if id else {}))
    assert again.status_code == 200, again.text
    told = again.json()
    assert [one["new"] for one in told.get("publications", [told])] == [False] * len(ids)


def test_each_of_many_lines_stands_for_itself_under_its_number(service: Served) -> None:
    text = '{"price": 1}\n\n{"price": }\n{"price": 3}\n["no event"]\n'
    told = over_http(service, text, "application/jsonl").json()
    page = unescape(by_paste(service, text, "").text)
    assert "2 publications" in page and "2 refused" in page
    refused = [one for one in told["outcomes"] if one.get("problem")]
    assert [one["line"] for one in refused] == [3, 5]
    for one in refused:
        assert f"Line {one['line']} refused:" in page and one["problem"]["message"] in page
