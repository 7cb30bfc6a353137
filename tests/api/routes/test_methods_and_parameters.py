"""Every route of the whole application: whoever asks otherwise than one can is told how one can."""

from __future__ import annotations

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.api.routes.place import Place
from tests.api.routes.route_walk import ask


def test_parameters_that_no_route_reads_are_refused(place: Place) -> None:
    """Below /v1 each route says which it has; who may not ask at all is told that first."""
    routes = [route for route in place.guarded if route.path.startswith("/v1/")]
    assert len(routes) > 25
    for route in routes:
        path = route.at("1") + "?surprise=1"
        answer = ask(place.root, route, path)
        assert (answer.status_code, answer.headers["content-type"]) == (400, "application/problem+json"), (
            route
        )
        if route.method != "HEAD":
            assert answer.json()["what"] == "there is no parameter 'surprise'", route
        assert ask(place.nobody, route, path).status_code == 401, route
    for open_to_readers in ("/v1/openapi.json", "/v1/asyncapi.json", "/healthz", "/problems"):
        assert place.nobody.get(f"{open_to_readers}?surprise=1").status_code == 200


@pytest.mark.parametrize(
    ("path", "name", "accepted", "hint"),
    [
        (
            "/v1/notifications?limt=5",
            "limt",
            "after, limit, subscriber, subscription, wait",
            "did you mean 'limit'?",
        ),
        (
            "/v1/destinations?subcriber=bo",
            "subcriber",
            "after, limit, subscriber",
            "did you mean 'subscriber'?",
        ),
        ("/v1/pipeline?minutes=5&zzz", "zzz", "minutes, points", None),
        ("/v1/publications/p-of-bo?limit=1", "limit", None, None),
    ],
)
def test_a_mistyped_parameter_is_named_with_those_that_there_are(
    place: Place, path: str, name: str, accepted: str | None, hint: str | None
) -> None:
    told = place.root.get(path).json()
    assert (told["error"], told["what"]) == ("InputError", f"there is no parameter '{name}'")
    assert (told.get("accepted"), told.get("hint")) == (accepted, hint)


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain", ""])
def test_json_without_its_media_type_answers_415_with_a_hint(place: Place, kind: str) -> None:
    """What curl says of a body unless it is told otherwise, on each route below /v1 that makes something of JSON."""
    routes = [route for route in place.guarded if route.is_json]
    assert len(routes) > 8
    for route in routes:
        answer = ask(place.root, route, route.at("1"), content=b'{"a": 1}', headers={"Content-Type": kind})
        told = answer.json()
        assert (answer.status_code, told["where"], told["received"]) == (
            415,
            "Content-Type",
            kind or "nothing",
        ), route
        assert (told["accepted"], told["hint"]) == ("application/json", "Content-Type: application/json"), (
            route
        )
    many = b'{"text": "a = 1"}\n{"text": "a = 2"}\n'
    lines = place.ana.post("/v1/subscriptions", content=many, headers={"Content-Type": kind})
    assert lines.status_code == 415 and "application/x-ndjson" in lines.json()["hint"]


def test_where_no_route_is_the_answer_is_a_problem_too(place: Place) -> None:
    assert place.nobody.get("/v1").json()["error"] == "Absent"
    nothing, method = place.nobody.get("/v1/nothing"), place.nobody.delete("/v1/publications")
    elsewhere = place.nobody.get("/nothing")
    assert (nothing.status_code, nothing.json()["error"]) == (404, "Absent")
    assert nothing.json()["instance"] == "/v1/nothing" and "openapi" in nothing.json()["hint"]
    assert (method.status_code, method.json()["received"]) == (405, "DELETE")
    assert method.json()["accepted"] == method.headers["allow"] == "HEAD, GET, POST"
    assert (elsewhere.status_code, elsewhere.json()["instance"]) == (404, "/nothing")
    wrong = (nothing, method, elsewhere, place.nobody.delete("/healthz"))
    assert {each.headers["content-type"] for each in wrong} == {"application/problem+json"}


def test_plain_request_to_the_websocket_answers_426(place: Place) -> None:
    """An address of a WebSocket that is asked for as a page, and a WebSocket that is opened where there is none."""
    for path in place.sockets:
        answer = place.nobody.get(path, params={"after": 1})
        assert (answer.status_code, answer.headers["upgrade"]) == (426, "websocket"), path
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["what"] == "this address is for WebSockets"
    for path in ("/v1/notifications", "/v1/nothing"):
        address = place.served.url.replace("http:", "ws:") + path
        with pytest.raises(InvalidStatus) as refused, connect(address, proxy=None):
            pass
        assert refused.value.response.status_code == 403  # with 404, uvicorn 0.54 logs an error at each


def test_wrong_method_answers_405_with_all_methods(place: Place) -> None:
    """What `Allow` says is what the application has, wherever another method is tried."""
    told: dict[str, set[str]] = {}
    for route in place.routes:
        told.setdefault(route.at("s-of-bo", "1"), set()).add(route.method)
    for path, methods in told.items():
        answer = place.nobody.request("BREW", path)
        assert answer.status_code == 405, path
        allowed = set(answer.headers["allow"].split(", "))
        assert methods <= allowed and ("HEAD" in allowed) == ("GET" in allowed), path


def test_head_answers_as_get_without_a_body(place: Place) -> None:
    for path in (
        "/healthz",
        "/v1/openapi.json",
        "/v1/publications",
        "/v1/nothing",
        "/console/login",
        "/metrics",
    ):
        whole, head = place.root.get(path), place.root.head(path)
        assert head.status_code == whole.status_code and head.content == b"", path
        assert head.headers["content-type"] == whole.headers["content-type"], path
    stream = place.bo.head("/v1/notifications/stream")
    assert (stream.status_code, stream.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert place.bo.head("/v1/destinations/none").status_code == 404
    assert place.bo.head("/v1/check").status_code == 405


def test_unexpected_exception_answers_500_problem_details(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(place.served.context.tidings.store.journal), "latest", None)
    answer = place.root.get("/v1/publications")
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert answer.json()["instance"] == "/v1/publications" and "NoneType" not in answer.text
