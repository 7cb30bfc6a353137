"""Every route of the whole application: who is let in."""

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


def test_there_are_routes(place: Place) -> None:
    """And what is listed as open is there: a list of what was once says nothing."""
    paths = {route.path for route in place.routes}
    assert len(paths) > 60 and "/v1/notifications" in paths
    assert not (OPEN.keys() | ANY_TOKEN.keys()) - paths
    assert [route.path for route in place.routes if route.takes] == ["/v1/subscriptions"]
    assert place.sockets == ["/v1/notifications/ws"]


def test_routes_without_a_token_answer_401_unless_listed(place: Place) -> None:
    wrong: dict[str, int] = {}
    strangers = (
        {},
        bearing("tdg_" + "x" * 43),
        {"Cookie": f"{COOKIE}=tdg_{'x' * 43}", "Sec-Fetch-Site": "same-origin"},
        {"X-Forwarded-For": "127.0.0.1", "X-Forwarded-User": "root", "X-Original-URL": "/healthz"},
    )
    for route, headers in product(place.guarded, strangers):
        answer = ask(place.nobody, route, route.at("s-of-bo"), headers=headers)
        is_refused = answer.status_code == 401 or leads_to_login(answer)
        if not is_refused:
            wrong[f"{route.method} {route.path} {headers}"] = answer.status_code
    assert wrong == {}


def test_a_token_for_something_else_opens_nothing(place: Place) -> None:
    """No route is for those who publish and for those who subscribe, unless it is listed as being for both."""
    wrong = []
    for route in place.guarded:
        answers = [ask(each, route, route.at("s-of-bo")).status_code for each in (place.ana, place.shop)]
        if route.path not in ANY_TOKEN and not any(status in REFUSED for status in answers):
            wrong.append((route.method, route.path, answers))
    assert wrong == []


def test_guarded_route_without_token_answers_401_and_names_the_scheme(place: Place) -> None:
    wrong = []
    for route in place.guarded:
        answer = ask(place.nobody, route, route.at("s-of-bo"))
        if answer.status_code == 401 and not answer.headers.get("www-authenticate"):
            wrong.append((route.method, route.path))
    assert wrong == []


def test_guarded_route_with_a_valid_token_never_answers_401(place: Place) -> None:
    """A caller who is known and may not is answered 403: logging in again would change nothing."""
    wrong, refused = [], 0
    for route, client in product(place.guarded, (place.ana, place.shop)):
        answer = ask(client, route, route.at("s-of-bo"))
        refused += answer.status_code == 403
        if answer.status_code == 401:
            wrong.append((route.method, route.path))
    assert wrong == [] and refused > 40


def test_watch_with_a_subscribers_token_answers_403_and_says_what_is_needed(place: Place) -> None:
    answer = place.ana.post("/objects/any/watches", json={"as": "Student:1", "watches": "Course:1"})
    assert answer.status_code == 403
    told = answer.json()
    assert (told["error"], told["received"], told["accepted"]) == ("NotAllowed", "subscribe", "administer")
    assert "tidings token make NAME --scope administer" in told["hint"]


def test_authentication_comes_before_the_body(place: Place) -> None:
    """Who may not ask learns nothing of a body, however broken: with none at all they are told the same."""
    wrong = []
    changing = [route for route in place.guarded if route.method not in ("GET", "HEAD")]
    assert len(changing) > 40
    for route, name in product(changing, ("nobody", "ana", "shop")):
        client, path = getattr(place, name), route.at("s-of-bo", "1")
        bare = ask(client, route, path)
        if bare.status_code in REFUSED or leads_to_login(bare):
            answer = ask(client, route, path, content=b'{"a":', headers=JSON)
            if (answer.status_code, answer.text) != (bare.status_code, bare.text):
                wrong.append((route.method, route.path, name, answer.status_code))
    assert wrong == []


def test_invalid_body_with_a_valid_token_is_refused(place: Place) -> None:
    """Otherwise the test above would show nothing of the routes that take one."""
    for route in taking_bodies(place):
        answer = ask(place.root, route, route.at("s-of-bo", "1"), content=b'{"a":', headers=JSON)
        assert answer.status_code in (400, 422) and answer.json()["error"] == "DecodeProblem", route


def test_strangers_are_not_waited_for(place: Place) -> None:
    """They are refused before any of the body has come."""
    for route in taking_bodies(place):
        with announced(place, route, "tdg_x") as connection:
            assert connection.recv(12) == b"HTTP/1.1 401", route


def test_token_revoked_during_upload_is_refused(place: Place) -> None:
    access = Access(place.served.context.tidings.store)
    for route in taking_bodies(place):
        lost = access.make("lost", ["administer"])
        with announced(place, route, lost.secret) as connection:
            assert connection.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n", route
            access.revoke(lost.token.id)
            connection.sendall(b'{"a":1}')
            assert connection.recv(12) == b"HTTP/1.1 401", route


@contextmanager
def announced(place: Place, route: Route, secret: str) -> Iterator[socket]:
    """A request of which the body is yet to come: the server says when it begins to read it."""
    headers = {**JSON, **bearing(secret), "Content-Length": "7", "Expect": "100-continue", "Host": "here"}
    lines = [
        f"{route.method} {route.at('s-of-bo', '1')} HTTP/1.1",
        *(": ".join(one) for one in headers.items()),
    ]
    address = httpx.URL(place.served.url)
    with create_connection((address.host, address.port), timeout=10) as connection:
        connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        yield connection


def taking_bodies(place: Place) -> list[Route]:
    """The routes below /v1 that take a body, as the application describes them; those for lines aside."""
    described = place.nobody.get("/v1/openapi.json").json()["paths"]
    found = [
        route
        for route in place.guarded
        if not route.takes
        and "requestBody"
        in described.get(PARAMETER.sub(r"{\1}", route.path), {}).get(route.method.lower(), {})
    ]
    assert len(found) > 9
    return found


def test_administrator_routes_refuse_other_tokens(place: Place) -> None:
    closed = re.compile(
        r"/metrics|/metadata|/browse|/objects|/v1/(audiences|pipeline)|/console/(tokens|dead|pipe)"
    )
    found = [route for route in place.guarded if closed.match(route.path)]
    assert len(found) > 25
    for route in found:
        for client in (place.ana, place.shop):
            assert ask(client, route, route.at("1")).status_code in REFUSED, route


def test_a_token_that_is_revoked_is_none(place: Place) -> None:
    access = Access(place.served.context.tidings.store)
    gone = access.make("gone", ["administer"])
    access.revoke(gone.token.id)
    for route in place.guarded:
        answer = ask(place.nobody, route, route.at("1"), headers=bearing(gone.secret))
        assert answer.status_code == 401 or leads_to_login(answer), route


@pytest.mark.parametrize("query", ["", "?subscriber=bo", "?after=0"])
def test_sockets_are_guarded(place: Place, query: str) -> None:
    for path in place.sockets:
        address = place.served.url.replace("http", "ws", 1) + path + query
        for headers in ({}, bearing("tdg_x"), bearing(place.secrets["shop"])):
            assert is_shut(address, headers), (path, headers)
    if "subscriber" in query:
        assert is_shut(address, bearing(place.secrets["ana"]))


def is_shut(address: str, headers: dict[str, str]) -> bool:
    try:
        with connect(address, additional_headers=headers, proxy=None) as opened:
            first = opened.recv(timeout=0.3)
    except InvalidStatus as refused:
        return refused.response.status_code in REFUSED
    except ConnectionClosed as closed:
        return closed.rcvd is not None and closed.rcvd.code >= 3000
    except TimeoutError:
        return True  # it waits for a token in a message, and says nothing before
    return SECRET not in str(first) and "specversion" not in str(first)


def test_paths_that_are_spelled_otherwise_are_no_way_round(place: Place) -> None:
    spelled = (
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
    for path in spelled:
        request = place.nobody.build_request("GET", place.served.url)
        request.url = request.url.copy_with(raw_path=path.encode())
        answer = place.nobody.send(request, follow_redirects=False)
        assert answer.status_code in (*REFUSED, 303, 307, 404, 405), path
        assert SECRET not in answer.text


def test_authorization_header_decides_over_cookie_and_proxy_headers(place: Place, tmp_path: Path) -> None:
    """Two tokens in one request are the program's, not the browser's; headers of proxies say nothing about who asks."""
    mixed = {**bearing(place.secrets["ana"]), "Cookie": f"{COOKIE}={place.secrets['root']}"}
    assert place.nobody.get("/v1/pipeline", headers=mixed).status_code == 403
    bad = {**bearing("tdg_wrong"), "Cookie": f"{COOKIE}={place.secrets['root']}"}
    assert place.nobody.get("/v1/pipeline", headers=bad).status_code == 401
    twice = [
        ("Authorization", f"Bearer {place.secrets['shop']}"),
        ("Authorization", f"Bearer {place.secrets['root']}"),
    ]
    assert place.nobody.get("/v1/pipeline", headers=twice).status_code in REFUSED
    for name in ("X-Subscriber", "X-Forwarded-User", "X-Http-Method-Override", "Subscriber"):
        answer = place.ana.get("/v1/notifications?after=0", headers={name: "bo"})
        assert answer.status_code == 200 and SECRET not in answer.text
    assert place.ana.get("/v1/notifications?subscriber=ana&subscriber=bo").status_code == 400
    for name in ("bo%00", "BO", "bo%20", "%62o", "bo\u200b"):
        answer = place.ana.get(f"/v1/notifications?after=0&subscriber={name}")
        refused = (400,) if "%00" in name else (403, 404, 422)
        assert answer.status_code in refused and SECRET not in answer.text


def test_subscriber_data_needs_a_token_on_this_machine(tmp_path: Path) -> None:
    """Metadata is nobody's in particular: whoever asks from this machine may, where the service is for it alone."""
    with served(tmp_path) as at, httpx.Client(base_url=at.url, trust_env=False) as nobody:
        assert nobody.get("/objects").status_code == 401
        assert nobody.get("/metadata/status").status_code == 200
        anybody = ServerProxy(f"{at.url}/RPC2").tidings
        friend = ServerProxy(f"{at.url.replace('//', f'//x:{at.token}@')}/RPC2").tidings
        for call in (anybody.list, anybody.notifications):
            with pytest.raises(Fault, match="needs the token"):
                call("bo")
        assert friend.list("bo") == []
