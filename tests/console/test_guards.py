"""Guards of every console page: CSRF protection, security headers, and escaping of published content."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fastapi.routing import APIRoute

from tests.console.place import FORMS, PAGES, Place
from tidings.api.limits import Limits
from tidings.console.pages import HOME, SECURITY_HEADERS
from tidings.console.router import list_routers
from tidings.service.delivery import open_destinations


def test_every_console_route_is_tested(place: Place) -> None:
    def kind(path: str) -> str:
        parameters = {"1", "t-1", "CycleProvider", "S", "D"}
        return "/".join(
            part for part in path.split("/") if part not in parameters and not part.startswith("{")
        )

    tested = {kind(path.split("?")[0]) for path in (*PAGES, *FORMS)}
    destinations, feeds = open_destinations(place.tidings.store), place.tidings.feeds_at("http://127.0.0.1:1")
    parts = list_routers(place.tidings, destinations, feeds, Limits())
    routes = [route for part in parts for route in part.routes]
    routed = {kind(route.path.removeprefix(f"{HOME}/")) for route in routes if isinstance(route, APIRoute)}
    assert routed == tested | {"login", "static"}


def test_console_answers_have_security_headers_and_no_inline_scripts(place: Place) -> None:
    pages = [
        page.replace("S", place.table).replace("D", place.hook)
        for page in PAGES
        if "notifications" not in page
    ]
    answers = [place.root.get(f"/console/{page}") for page in pages]
    answers += [place.anonymous.get("/console/login"), place.ana.get("/console/tokens")]
    answers += [place.ana.get("/console/nonsense"), place.anonymous.get("/console")]
    assert [answer.status_code for answer in answers[:-3]] == [200] * (len(answers) - 3)
    for answer in answers:
        for name, value in SECURITY_HEADERS.items():
            assert answer.headers[name] == value
        assert "<script>" not in answer.text and " style=" not in answer.text and "onclick" not in answer.text
    assert "default-src 'none'; script-src 'self'" in SECURITY_HEADERS["Content-Security-Policy"]


def test_form_without_csrf_token_is_rejected(place: Place) -> None:
    before = place.tidings.store.journal.head()
    for word in ("", "0" * 64, place.bo.word):
        answer = place.shop.client.post("/console/publish", data={"word": word, "text": '{"a": 1}'})
        assert (answer.status_code, "belongs to another session" in answer.text) == (403, True)
    assert place.tidings.store.journal.head() == before


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_cross_site_form_is_rejected(place: Place, headers: dict[str, str]) -> None:
    before = place.tidings.store.journal.head()
    data = {"word": place.shop.word, "text": '{"a": 1}'}
    answer = place.shop.client.post("/console/publish", data=data, headers=headers)
    assert (answer.status_code, "cross-site request refused" in answer.text.lower()) == (403, True)
    logged_in = place.anonymous.client.post(
        "/console/login", data={"token": place.secrets["bo"]}, headers=headers
    )
    assert (logged_in.status_code, "set-cookie" in logged_in.headers) == (403, False)
    assert place.tidings.store.journal.head() == before


def test_console_unstorable_parameter_is_rejected(place: Place) -> None:
    huge = "9" * 5_000
    for path in (f"notifications/{huge[:40]}", f"dead-letters/{huge[:40]}/mend", "notifications/x"):
        assert place.root.get(f"/console/{path}", subscriber="ana").status_code == 400
    for path, parameters in (
        ("notifications", {"before": huge[:40]}),
        ("subscriptions", {"search": "a\0"}),
        ("subscriptions", {"after": "\0"}),
        ("dead-letters", {"published": "\0"}),
        ("browse/metadata/class/%00", {}),
    ):
        assert place.root.get(f"/console/{path}", **parameters).status_code == 400
    assert place.ana.post("/console/notifications/acknowledge", upto=huge).status_code == 422
    assert place.ana.post("/console/notifications/acknowledge", upto="").status_code == 422
    hook = f"/console/destinations/{place.hook}"
    for number in (huge, "all", "\u0661"):
        assert place.ana.post(f"{hook}/replay", number=number).status_code == 422
    assert place.ana.post(f"{hook}/replay", number="1\0").status_code == 400
    assert place.ana.client.post(f"{hook}/replay", json={}).status_code == 415
    assert place.ana.client.post("/console/login", data={"token": "x" * 20_000}).status_code == 413


def test_published_markup_is_escaped(place: Place) -> None:
    evil = "<script>alert(1)</script>"
    resource = place.ana.get("/console/browse/metadata/resource", uri="http://example.org/doc.ttl#host").text
    assert "&lt;b&gt;pirates&lt;/b&gt; &amp; co" in resource
    assert evil not in place.bo.post("/console/publish", text=evil, kind="application/json").text
    assert evil not in place.ana.get(f"/console/{evil}").text


def test_static_files_are_revalidated(place: Place) -> None:
    first = place.anonymous.get("/console/static/console.css")
    headers = {"If-None-Match": first.headers["etag"]}
    assert first.headers["content-type"].startswith("text/css")
    assert place.anonymous.client.get("/console/static/console.css", headers=headers).status_code == 304
    assert place.anonymous.get("/console/static/console.py").status_code == 404
    assert place.anonymous.get("/console/static/..%2F__init__.py").status_code in (303, 404)


def test_pages_load_nothing_from_other_sites() -> None:
    """No file that a browser loads names another host, and pages have neither scripts nor styles in them."""
    folder = Path(__import__("tidings.console", fromlist=["x"]).__file__).parent
    for file in (*folder.glob("static/*"), *folder.glob("templates/*")):
        text = re.sub(r'http://www\.w3\.org/2000/svg|placeholder="[^"]*"', "", file.read_text())
        assert "http:" not in text and "https:" not in text and "@import" not in text, file.name
        assert "style=" not in text and "onclick" not in text and "javascript:" not in text, file.name
