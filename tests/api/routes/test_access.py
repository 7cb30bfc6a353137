"""Access control of every route of the whole application."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from socket import create_connection, socket
from xmlrpc.client import Fault, ServerProxy

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from tests.api.routes.place import SECRET, Place, bearing
from tests.api.routes.route_walk import ANY_TOKEN, OPEN, PARAMETER, REFUSED, Route, ask, leads_to_login
from tests.support.servers.application import served
from tidings.api.authentication import COOKIE
from tidings.service.authorization import Access

JSON = {"Content-Type": "application/json"}


def test_route_walk_finds_all_listed_routes(place: Place) -> None:
    """The listed public routes exist: a list of past routes would prove nothing."""
    paths = {route.path for route in place.routes}
    assert len(paths) > 60 and "/v1/notifications" in paths
    assert not (OPEN.keys() | ANY_TOKEN.keys()) - paths
    assert [route.path for route in place.routes if route.takes] == ["/v1/subscriptions"]
    assert place.sockets == ["/v1/notifications/ws"]


def test_route_without_valid_token_answers_401_unless_public(place: Place) -> None:
    wrong: dict[str, int] = {}
    strangers = (
        {},
        bearing("tdg_" + "x" * 43),
        {"Cookie": f"{COOKIE}=tdg_{'x' * 43}", "Sec-Fetch-Site": "same-origin"},
        {"X-Forwarded-For": "127.0.0.1", "X-Forwarded-User": "root", "X-Original-URL": "/healthz"},
    )
    for route, headers in product(place.guarded, strangers):
        answer = ask(place.anonymous, route, route.at("s-of-bo"), headers=headers)
        is_refused = answer.status_code == 401 or leads_to_login(answer)
        if not is_refused:
            wrong[f"{route.method} {route.path} {headers}"] = answer.status_code
    assert wrong == {}


def test_route_wrong_scope_is_forbidden(place: Place) -> None:
    """No route accepts both publishers and subscribers, unless it is listed."""
    wrong = []
    for route in place.guarded:
        answers = [ask(each, route, route.at("s-of-bo")).status_code for each in (place.ana, place.shop)]
        if route.path not in ANY_TOKEN and not any(status in REFUSED for status in answers):
            wrong.append((route.method, route.path, answers))
    assert wrong == []


def test_route_without_token_answers_401_with_www_authenticate(place: Place) -> None:
    wrong = []
    for route in place.guarded:
        answer = ask(place.anonymous, route, route.at("s-of-bo"))
        if answer.status_code == 401 and not answer.headers.get("www-authenticate"):
            wrong.append((route.method, route.path))
    assert wrong == []


def test_route_with_valid_token_never_answers_401(place: Place) -> None:
    """An authenticated caller without permission gets 403: logging in again would not help."""
    wrong, refused = [], 0
    for route, client in product(place.guarded, (place.ana, place.shop)):
        answer = ask(client, route, route.at("s-of-bo"))
        refused += answer.status_code == 403
        if answer.status_code == 401:
            wrong.append((route.method, route.path))
    assert wrong == [] and refused > 40


def test_watch_with_subscriber_token_answers_403_with_required_scope(place: Place) -> None:
    answer = place.ana.post("/objects/any/watches", json={"as": "Student:1", "watches": "Course:1"})
    assert answer.status_code == 403
    problem = answer.json()
    assert (problem["error"], problem["received"], problem["accepted"]) == (
        "NotAllowed",
        "subscribe",
        "administer",
    )
    assert "tidings token make NAME --scope administer" in problem["hint"]


def test_route_checks_authentication_before_body(place: Place) -> None:
    """Without permission, the answer is the same for a malformed body and for none."""
    wrong = []
    changing = [route for route in place.guarded if route.method not in ("GET", "HEAD")]
    assert len(changing) > 40
    for route, name in product(changing, ("anonymous", "ana", "shop")):
        client, path = getattr(place, name), route.at("s-of-bo", "1")
        bare = ask(client, route, path)
        if bare.status_code in REFUSED or leads_to_login(bare):
            answer = ask(client, route, path, content=b'{"a":', headers=JSON)
            if (answer.status_code, answer.text) != (bare.status_code, bare.text):
                wrong.append((route.method, route.path, name, answer.status_code))
    assert wrong == []


def test_route_invalid_body_with_valid_token_is_rejected(place: Place) -> None:
    """Shows that the routes of the test above do read a body."""
    for route in routes_with_bodies(place):
        answer = ask(place.root, route, route.at("s-of-bo", "1"), content=b'{"a":', headers=JSON)
        assert answer.status_code in (400, 422) and answer.json()["error"] == "DecodeProblem", route


def test_route_invalid_token_answers_401_before_body_arrives(place: Place) -> None:
    for route in routes_with_bodies(place):
        with announced_request(place, route, "tdg_x") as connection:
            assert connection.recv(12) == b"HTTP/1.1 401", route


def test_route_token_revoked_during_upload_answers_401(place: Place) -> None:
    access = Access(place.served.context.tidings.store)
    for route in routes_with_bodies(place):
        revoked = access.make("lost", ["administer"])
        with announced_request(place, route, revoked.secret) as connection:
            assert connection.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n", route
            access.revoke(revoked.token.id)
            connection.sendall(b'{"a":1}')
            assert connection.recv(12) == b"HTTP/1.1 401", route


@contextmanager
def announced_request(place: Place, route: Route, secret: str) -> Iterator[socket]:
    """Send the head of a request whose body is yet to come; the server answers 100 when it reads the body."""
    headers = {**JSON, **bearing(secret), "Content-Length": "7", "Expect": "100-continue", "Host": "here"}
    lines = [
        f"{route.method} {route.at('s-of-bo', '1')} HTTP/1.1",
        *(": ".join(one) for one in headers.items()),
    ]
    address = httpx.URL(place.served.url)
    with create_connection((address.host, address.port), timeout=10) as connection:
        connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        yield connection


def routes_with_bodies(place: Place) -> list[Route]:
    """Return the routes below /v1 that take a body, as the application describes them, except those for JSON Lines."""
    described = place.anonymous.get("/v1/openapi.json").json()["paths"]
    routes = [
        route
        for route in place.guarded
        if not route.takes
        and "requestBody"
        in described.get(PARAMETER.sub(r"{\1}", route.path), {}).get(route.method.lower(), {})
    ]
    assert len(routes) > 9
    return routes


def test_administrator_route_with_other_scope_is_forbidden(place: Place) -> None:
    closed = re.compile(
        r"/metrics|/metadata|/browse|/objects|/v1/(audiences|pipeline)|/console/(tokens|dead|pipe)"
    )
    routes = [route for route in place.guarded if closed.match(route.path)]
    assert len(routes) > 25
    for route in routes:
        for client in (place.ana, place.shop):
            assert ask(client, route, route.at("1")).status_code in REFUSED, route


def test_route_with_revoked_token_answers_401(place: Place) -> None:
    access = Access(place.served.context.tidings.store)
    revoked = access.make("gone", ["administer"])
    access.revoke(revoked.token.id)
    for route in place.guarded:
        answer = ask(place.anonymous, route, route.at("1"), headers=bearing(revoked.secret))
        assert answer.status_code == 401 or leads_to_login(answer), route


@pytest.mark.parametrize("query", ["", "?subscriber=bo", "?after=0"])
def test_websocket_without_permission_is_closed(place: Place, query: str) -> None:
    for path in place.sockets:
        address = place.served.url.replace("http", "ws", 1) + path + query
        for headers in ({}, bearing("tdg_x"), bearing(place.secrets["shop"])):
            assert is_refused(address, headers), (path, headers)
    if "subscriber" in query:
        assert is_refused(address, bearing(place.secrets["ana"]))


def is_refused(address: str, headers: dict[str, str]) -> bool:
    try:
        with connect(address, additional_headers=headers, proxy=None) as opened:
            first = opened.recv(timeout=0.3)
    except InvalidStatus as refused:
        return refused.response.status_code in REFUSED
    except ConnectionClosed as closed:
        return closed.rcvd is not None and closed.rcvd.code >= 3000
    except TimeoutError:
        return True  # it waits for a token in a message, and sends nothing before
    return SECRET not in str(first) and "specversion" not in str(first)


def test_route_path_variants_do_not_bypass_authentication(place: Place) -> None:
    variants = (
        "/v1/notifications/",
        "//v1/notifications",
        "/v1/../v1/notifications",
        "/healthz/../v1/notifications",
        "/console/static/../notifications",
        "/console/static/%2e%2e/notifications",
        "/V1/notifications",
        "/v1/notifications%00",
        "/v1/notifications;a=b",
        "/feeds/../v1/pipeline",
    )
    for path in variants:
        request = place.anonymous.build_request("GET", place.served.url)
        request.url = request.url.copy_with(raw_path=path.encode())
        answer = place.anonymous.send(request, follow_redirects=False)
        assert answer.status_code in (*REFUSED, 303, 307, 404, 405), path
        assert SECRET not in answer.text


def test_authorization_header_overrides_cookie_and_proxy_headers(place: Place, tmp_path: Path) -> None:
    """The header is set by the program, the cookie by the browser; proxy headers identify no one."""
    mixed = {**bearing(place.secrets["ana"]), "Cookie": f"{COOKIE}={place.secrets['root']}"}
    assert place.anonymous.get("/v1/pipeline", headers=mixed).status_code == 403
    bad = {**bearing("tdg_wrong"), "Cookie": f"{COOKIE}={place.secrets['root']}"}
    assert place.anonymous.get("/v1/pipeline", headers=bad).status_code == 401
    twice = [
        ("Authorization", f"Bearer {place.secrets['shop']}"),
        ("Authorization", f"Bearer {place.secrets['root']}"),
    ]
    assert place.anonymous.get("/v1/pipeline", headers=twice).status_code in REFUSED
    for name in ("X-Subscriber", "X-Forwarded-User", "X-Http-Method-Override", "Subscriber"):
        answer = place.ana.get("/v1/notifications?after=0", headers={name: "bo"})
        assert answer.status_code == 200 and SECRET not in answer.text
    assert place.ana.get("/v1/notifications?subscriber=ana&subscriber=bo").status_code == 400
    for name in ("bo%00", "BO", "bo%20", "%62o", "bo\u200b"):
        answer = place.ana.get(f"/v1/notifications?after=0&subscriber={name}")
        refused = (400,) if "%00" in name else (403, 404, 422)
        assert answer.status_code in refused and SECRET not in answer.text


def test_loopback_without_token_reads_metadata_only(tmp_path: Path) -> None:
    """Metadata belongs to no subscriber: local requests may read it where the service listens on loopback only."""
    with served(tmp_path) as at, httpx.Client(base_url=at.url, trust_env=False) as anonymous:
        assert anonymous.get("/objects").status_code == 401
        assert anonymous.get("/metadata/status").status_code == 200
        anonymous_rpc = ServerProxy(f"{at.url}/RPC2").tidings
        authenticated_rpc = ServerProxy(f"{at.url.replace('//', f'//x:{at.token}@')}/RPC2").tidings
        for call in (anonymous_rpc.list, anonymous_rpc.notifications):
            with pytest.raises(Fault, match="needs the token"):
                call("bo")
        assert authenticated_rpc.list("bo") == []
