"""Every route of the whole application: wrong methods, parameters and media types get a helpful answer."""

from __future__ import annotations

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.api.routes.place import Place
from tests.api.routes.route_walk import ask


def test_route_unknown_parameter_is_rejected_after_authentication(place: Place) -> None:
    """Each route below /v1 declares its parameters; a missing token is reported first."""
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
        assert ask(place.anonymous, route, path).status_code == 401, route
    for open_to_readers in ("/v1/openapi.json", "/v1/asyncapi.json", "/healthz", "/problems"):
        assert place.anonymous.get(f"{open_to_readers}?surprise=1").status_code == 200


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
def test_route_mistyped_parameter_error_lists_accepted_names(
    place: Place, path: str, name: str, accepted: str | None, hint: str | None
) -> None:
    problem = place.root.get(path).json()
    assert (problem["error"], problem["what"]) == ("InputError", f"there is no parameter '{name}'")
    assert (problem.get("accepted"), problem.get("hint")) == (accepted, hint)


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain", ""])
def test_route_json_without_media_type_answers_415_with_hint(place: Place, kind: str) -> None:
    """With the default media type of curl, and others, on each route below /v1 that parses JSON."""
    routes = [route for route in place.guarded if route.is_json]
    assert len(routes) > 8
    for route in routes:
        answer = ask(place.root, route, route.at("1"), content=b'{"a": 1}', headers={"Content-Type": kind})
        problem = answer.json()
        assert (answer.status_code, problem["where"], problem["received"]) == (
            415,
            "Content-Type",
            kind or "nothing",
        ), route
        assert (problem["accepted"], problem["hint"]) == (
            "application/json",
            "Content-Type: application/json",
        ), route
    many = b'{"text": "a = 1"}\n{"text": "a = 2"}\n'
    lines = place.ana.post("/v1/subscriptions", content=many, headers={"Content-Type": kind})
    assert lines.status_code == 415 and "application/x-ndjson" in lines.json()["hint"]


def test_unknown_path_or_method_answers_problem_details(place: Place) -> None:
    assert place.anonymous.get("/v1").json()["error"] == "NotFound"
    unknown, method = place.anonymous.get("/v1/nothing"), place.anonymous.delete("/v1/publications")
    elsewhere = place.anonymous.get("/nothing")
    assert (unknown.status_code, unknown.json()["error"]) == (404, "NotFound")
    assert unknown.json()["instance"] == "/v1/nothing" and "openapi" in unknown.json()["hint"]
    assert (method.status_code, method.json()["received"]) == (405, "DELETE")
    assert method.json()["accepted"] == method.headers["allow"] == "HEAD, GET, POST"
    assert (elsewhere.status_code, elsewhere.json()["instance"]) == (404, "/nothing")
    wrong = (unknown, method, elsewhere, place.anonymous.delete("/healthz"))
    assert {each.headers["content-type"] for each in wrong} == {"application/problem+json"}


def test_websocket_plain_request_answers_426(place: Place) -> None:
    """And a WebSocket request to an ordinary path is rejected."""
    for path in place.sockets:
        answer = place.anonymous.get(path, params={"after": 1})
        assert (answer.status_code, answer.headers["upgrade"]) == (426, "websocket"), path
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["what"] == "this address is for WebSockets"
    for path in ("/v1/notifications", "/v1/nothing"):
        address = place.served.url.replace("http:", "ws:") + path
        with pytest.raises(InvalidStatus) as refused, connect(address, proxy=None):
            pass
        assert refused.value.response.status_code == 403  # with 404, uvicorn 0.54 logs an error at each


def test_route_wrong_method_answers_405_with_allowed_methods(place: Place) -> None:
    """`Allow` lists the methods of the application, whatever other method is used."""
    methods_by_path: dict[str, set[str]] = {}
    for route in place.routes:
        methods_by_path.setdefault(route.at("s-of-bo", "1"), set()).add(route.method)
    for path, methods in methods_by_path.items():
        answer = place.anonymous.request("BREW", path)
        assert answer.status_code == 405, path
        allowed = set(answer.headers["allow"].split(", "))
        assert methods <= allowed and ("HEAD" in allowed) == ("GET" in allowed), path


def test_head_answers_like_get_without_body(place: Place) -> None:
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
