"""Every route of the whole application: who is let in, and that nobody gets at what is somebody else's.

The routes are those that the application has, so one that is added later is tried, too. Whoever adds one that is open
on purpose says so in `OPEN`, with the reason. All the others answer 401 without a token, and 401 or 403 with a token
that is for something else. What belongs to bo is put everywhere that things can be; ana asks for all of it, by every
id and every parameter, and must not find a trace.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from xmlrpc.client import Fault, ServerProxy

import httpx
import pytest
from starlette.routing import Mount
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from tests.operating.served import Served, served
from tidings.interfaces.http.access import COOKIE
from tidings.interfaces.http.app import app_for
from tidings.model import Publication, Reason
from tidings.service.access import Access
from tidings.service.delivering import destinations_of, rules_of
from tidings.store import DeadLetter, Found, instant, utc
from tidings.store.undelivered import Letter, bury

SECRET = "seen-by-bo-alone"
"""Stands in everything that is bo's."""

OPEN = {
    "/": "says where the console is, and nothing else",
    "/healthz": "load balancers and supervisors ask it",
    "/readyz": "the same",
    "/v1/openapi.json": "a description of the interface, the same everywhere",
    "/v1/asyncapi.json": "the same for streams",
    "/problems": "what errors mean, the same everywhere",
    "/feeds/{name}": "its address is the secret",
    "/feeds/{token}/archive/{number}": "its address is the secret",
    "/opml/{token}": "its address is the secret",
    "/hub": "whoever knows the address of a feed may follow it; callbacks are asked back",
    "/RPC2": "content systems ping without a token; its other methods want one (test_pings.py)",
    "/websub/{word}": "hubs call back; the word is the secret",
    "/console/login": "where one shows a token",
    "/console/logout": "forgets the cookie",
    "/console/static/{name}": "scripts and styles, the same everywhere",
    "/console/{rest:path}": "there is no such page",
}
"""Routes without a token, and why."""

ANY_TOKEN = {
    "/console": "leads to the first page that a token is for",
    "/console/browse": "what publications and metadata look like is for everybody with a token",
    "/console/browse/schema": "the same",
    "/console/browse/taxonomies": "the same",
    "/console/browse/references": "the same",
    "/console/browse/metadata": "the same",
    "/console/browse/metadata/class/{name}": "the same",
    "/console/browse/metadata/resource": "the same",
    "/console/browse/model": "the same",
    "/console/browse/rules": "the same",
}
"""Routes for whoever has a token, whatever it is for, and why."""

PARAMETER = re.compile(r"{(\w+)(?::\w+)?}")
REFUSED = (401, 403)


@dataclass(frozen=True)
class Route:
    """A way to ask: a method and a path with parameters; and the names that its query may have, if not any."""

    method: str
    path: str
    names: frozenset[str] | None = None

    def at(self, *values: str) -> str:
        """The path with these parameters, the last one for all that remain."""
        given = [*values, *[values[-1]] * 9] if values else []
        return PARAMETER.sub(lambda _: given.pop(0), self.path)

    def query(self, given: dict[str, str]) -> str:
        """What of this it takes, as a query."""
        return urlencode(
            {name: value for name, value in given.items() if self.names is None or name in self.names}
        )


@dataclass
class Place:
    """The application with what is bo's in it, and clients with tokens of all kinds."""

    served: Served
    routes: Sequence[Route]
    sockets: Sequence[str]
    ids: Sequence[str]
    ana: httpx.Client
    bo: httpx.Client
    shop: httpx.Client
    root: httpx.Client
    nobody: httpx.Client
    secrets: dict[str, str] = field(default_factory=dict)


def walk(routes: Sequence[Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Each route with its whole path, those of included routers, too."""
    for route in routes:
        if hasattr(route, "original_router"):
            yield from walk(route.original_router.routes, prefix + route.include_context.prefix)
        elif isinstance(route, Mount):
            yield from (
                walk(route.routes or [], prefix + route.path)
                if route.routes
                else [(prefix + route.path + "/{rest:path}", route)]
            )
        else:
            yield prefix + route.path, route


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    home = tmp_path_factory.mktemp("home")
    with served(home, rpc_token="not-of-the-store") as at:
        ids = fill(at)
        make = Access(at.context.tidings.store).make
        secrets = {
            "ana": make("phone", ["subscribe"], "ana").secret,
            "bo": make(f"{SECRET} token", ["subscribe"], "bo").secret,
            "shop": make("shop", ["publish"]).secret,
            "root": at.token,
        }
        clients = {
            name: httpx.Client(base_url=at.url, headers=bearing(each)) for name, each in secrets.items()
        }
        found = list(walk(app_for(at.context).routes))
        routes = [
            Route(method, path, names_of(route)) for path, route in found for method in methods_of(route)
        ]
        sockets = [path for path, route in found if not methods_of(route)]
        yield Place(
            at, routes, sockets, ids, **clients, nobody=httpx.Client(base_url=at.url), secrets=secrets
        )
        for client in clients.values():
            client.close()


def methods_of(route: Any) -> list[str]:
    return sorted(getattr(route, "methods", None) or ())


def names_of(route: Any) -> frozenset[str] | None:
    return frozenset(route.parameters) if getattr(route, "is_strict", False) else None


def bearing(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def fill(at: Served) -> list[str]:
    """Put something of bo's everywhere, and give all ids and numbers that it has."""
    tidings = at.context.tidings
    store = tidings.store
    subscription = tidings.subscribe("bo", f"{SECRET.replace('-', '_')} = '{SECRET}'", id="s-of-bo").id
    tidings.subscribe("ana", "price < 200", id="s-of-ana")
    store.audiences.grant("bo", f"{SECRET}-label")
    label = f"{SECRET}-label"
    secret = Publication("p-of-bo", "application/json", json.dumps({"a": SECRET}).encode(), audience=label)
    store.journal.append([secret])
    because = [Reason(f"a = '{SECRET}'", SECRET, "/a")]
    store.notifications.commit_batch("test", 0, [Found("p-of-bo", subscription, "bo", because)] * 2)
    store.notifications.commit_batch("test", 1, [Found("p-for-all", "s-of-ana", "ana")])
    store.dead_letters.add("journal", [DeadLetter("p-of-bo", f"no {SECRET}", {}, 1, SECRET.encode())])
    made = destinations_of(store, rules_of(at.context.settings))
    hook = made.add("bo", "webhook", f"https://example.org/{SECRET}")
    letter = Letter(hook.id, subscription, "bo", "example.org", 1, 1, False, "n-1", SECRET, 3, instant(utc()))
    number = store.database.transact(lambda c: bury(c, letter))
    made.close()
    tidings.feeds_at(at.url).listed("bo")
    return [subscription, hook.id, str(number), "p-of-bo", "1", "bo", "t-2"]


def test_there_are_routes(place: Place) -> None:
    """And what is listed as open is there: a list of what was once says nothing."""
    paths = {route.path for route in place.routes}
    assert len(paths) > 60 and "/v1/notifications" in paths
    assert not (OPEN.keys() | ANY_TOKEN.keys()) - paths
    assert place.sockets == ["/v1/notifications/ws"]


def guarded(place: Place) -> list[Route]:
    return [route for route in place.routes if route.path not in OPEN]


def ask(client: httpx.Client, route: Route, path: str, **more: Any) -> httpx.Response:
    """An answer. What streams is not read to its end: there is none."""
    with client.stream(route.method, path, **more) as answer:
        if "event-stream" not in answer.headers.get("content-type", ""):
            answer.read()
        return answer


def test_without_a_token_nothing_is_open_but_what_is_listed(place: Place) -> None:
    wrong: dict[str, int] = {}
    strangers = (
        {},
        bearing("tdg_" + "x" * 43),
        {"Cookie": f"{COOKIE}=tdg_{'x' * 43}", "Sec-Fetch-Site": "same-origin"},
        {"X-Forwarded-For": "127.0.0.1", "X-Forwarded-User": "root", "X-Original-URL": "/healthz"},
    )
    for route, headers in product(guarded(place), strangers):
        answer = ask(place.nobody, route, route.at("s-of-bo"), headers=headers)
        is_refused = answer.status_code == 401 or leads_to_login(answer)
        if not is_refused:
            wrong[f"{route.method} {route.path} {headers}"] = answer.status_code
    assert wrong == {}


def leads_to_login(answer: httpx.Response) -> bool:
    """What a page does, for a browser."""
    return answer.status_code == 303 and answer.headers["location"].startswith("/console/login")


def test_a_token_for_something_else_opens_nothing(place: Place) -> None:
    """No route is for those who publish and for those who subscribe, unless it is listed as being for both."""
    wrong = []
    for route in guarded(place):
        answers = [ask(each, route, route.at("s-of-bo")).status_code for each in (place.ana, place.shop)]
        if route.path not in ANY_TOKEN and not any(status in REFUSED for status in answers):
            wrong.append((route.method, route.path, answers))
    assert wrong == []


def test_what_is_for_administrators_is_for_nobody_else(place: Place) -> None:
    closed = re.compile(
        r"/metrics|/metadata|/browse|/objects|/v1/(audiences|pipeline)|/console/(tokens|dead|pipe)"
    )
    found = [route for route in guarded(place) if closed.match(route.path)]
    assert len(found) > 25
    for route in found:
        for client in (place.ana, place.shop):
            assert ask(client, route, route.at("1")).status_code in REFUSED, route


def test_a_token_that_is_revoked_is_none(place: Place) -> None:
    access = Access(place.served.context.tidings.store)
    gone = access.make("gone", ["administer"])
    access.revoke(gone.token.id)
    for route in guarded(place):
        answer = ask(place.nobody, route, route.at("1"), headers=bearing(gone.secret))
        assert answer.status_code == 401 or leads_to_login(answer), route


QUERIES: tuple[dict[str, str], ...] = (
    {"subscriber": "bo"},
    {"as": "bo"},
    {"subscription": "s-of-bo", "after": "0", "limit": "1000", "q": "bo", "search": "bo", "word": "bo"},
    {"language": "", "after": "0"},
)
BODIES: tuple[dict[str, Any], ...] = (
    {},
    {"json": {"subscriber": "bo", "text": "price < 200", "language": "predicates"}},
    {"json": {"text": "exists a", "language": "predicates", "subscription": "s-of-bo"}},
    {"json": {"upto": 1, "subscriber": "bo"}},
    {"json": {"kind": "webhook", "target": "https://example.org/", "subscription": "s-of-bo"}},
    {
        "data": {
            "subscriber": "bo",
            "upto": "1",
            "text": "price < 200",
            "language": "predicates",
            "act": "save",
        }
    },
)


def test_nobody_gets_at_what_is_somebody_elses(place: Place) -> None:
    """By any id, any parameter and any body: not to read it, and not to change it."""
    before = state(place)
    with ThreadPoolExecutor(8) as several:
        pairs = product(guarded(place), (place.ana, place.shop))
        list(several.map(lambda pair: try_all(*pair, place.ids), pairs))
    assert state(place) == before


def try_all(route: Route, client: httpx.Client, ids: Sequence[str]) -> None:
    if ask(client, route, route.at("1")).status_code in REFUSED:
        return
    for path, more in attempts(route, ids):
        answer = ask(client, route, path, **more)
        assert answer.status_code < 500, (route, path, more)
        if answer.is_stream_consumed:
            assert SECRET not in answer.text, (route, path, more)


def attempts(route: Route, ids: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """All ways to ask for what is bo's by a route."""
    paths = {route.at(id, ids[2]) for id in ids}
    if route.method in ("GET", "HEAD", "DELETE"):
        yield from product(paths, ({},))
        yield from product([f"{route.at('s-of-bo')}?{route.query(each)}" for each in QUERIES], ({},))
    else:
        yield from product(paths, BODIES[:1])
        yield from product({route.at(id, "1") for id in ids[:2]}, BODIES)


def state(place: Place) -> dict[str, Any]:
    """All that is bo's."""
    store = place.served.context.tidings.store
    return {
        "subscriptions": store.subscriptions.list("bo"),
        "told": store.notifications.read("bo"),
        "read": store.acknowledgements.standing("bo"),
        "destinations": store.destinations.list("bo"),
        "letters": [store.undelivered.list(one.id) for one in store.destinations.list("bo")],
        "grants": store.audiences.list("bo"),
        "tokens": [one for one in store.tokens.list() if one.subscriber == "bo"],
        "quiet": store.preferences.quiet("bo") if hasattr(store.preferences, "quiet") else None,
    }


def test_what_is_bos_is_there_for_bo(place: Place) -> None:
    """Otherwise the tests above would find nothing because there is nothing."""
    assert SECRET in place.bo.get("/v1/subscriptions/s-of-bo").text
    assert SECRET in place.bo.get("/v1/notifications?after=0").text
    assert SECRET in place.bo.get("/v1/destinations").text
    hook = place.ids[1]
    assert SECRET in place.bo.get(f"/v1/destinations/{hook}/letters").text
    assert SECRET in place.root.get("/v1/publications/p-of-bo").text
    assert SECRET in place.root.get("/console/dead-letters").text
    assert place.ana.get("/v1/subscriptions/s-of-bo").status_code == 404
    assert place.ana.get(f"/v1/destinations/{hook}").status_code == 404
    assert place.ana.get("/v1/subscriptions/s-of-nobody").status_code == 404


def test_ids_of_others_are_answered_like_ids_of_nobody(place: Place) -> None:
    """The same status and the same words, but for the id itself."""
    routes = [route for route in guarded(place) if "{" in route.path]
    for route in routes:
        for id in place.ids[:2]:
            own, none = (ask(place.ana, route, route.at(one, "1")) for one in (id, "x" * len(id)))
            assert own.status_code == none.status_code, (route, id)
            assert own.text.replace(id, "") == none.text.replace("x" * len(id), ""), (route, id)


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
        with connect(address, additional_headers=headers, proxy=None) as socket:
            first = socket.recv(timeout=0.3)
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


def test_whose_token_it_is_decides_and_nothing_else_that_is_sent(place: Place, tmp_path: Path) -> None:
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
        assert answer.status_code in (403, 404, 422) and SECRET not in answer.text


def test_what_is_somebodys_wants_a_token_on_this_machine_too(tmp_path: Path) -> None:
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


def test_parameters_that_no_route_reads_are_refused(place: Place) -> None:
    """Below /v1 each route says which it has; who may not ask at all is told that first."""
    routes = [route for route in guarded(place) if route.path.startswith("/v1/")]
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


def test_where_no_route_is_the_answer_is_a_problem_too(place: Place) -> None:
    assert place.nobody.get("/v1").json()["error"] == "Absent"
    nothing, method = place.nobody.get("/v1/nothing"), place.nobody.delete("/v1/publications")
    elsewhere = place.nobody.get("/nothing")
    assert (nothing.status_code, nothing.json()["error"]) == (404, "Absent")
    assert nothing.json()["instance"] == "/v1/nothing" and "openapi" in nothing.json()["hint"]
    assert (method.status_code, method.json()["received"]) == (405, "DELETE")
    assert method.json()["accepted"] == method.headers["allow"] == "HEAD, GET, POST"
    assert {each.headers["content-type"] for each in (nothing, method)} == {"application/problem+json"}
    assert (elsewhere.status_code, elsewhere.json()) == (404, {"detail": "Not Found"})


def test_all_methods_of_an_address_are_told(place: Place) -> None:
    """What `Allow` says is what the application has, wherever another method is tried."""
    told: dict[str, set[str]] = {}
    for route in place.routes:
        told.setdefault(route.at("s-of-bo", "1"), set()).add(route.method)
    for path, methods in told.items():
        answer = place.nobody.request("BREW", path)
        assert answer.status_code == 405, path
        allowed = set(answer.headers["allow"].split(", "))
        assert methods <= allowed and ("HEAD" in allowed) == ("GET" in allowed), path


def test_the_head_of_what_there_is(place: Place) -> None:
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


def test_what_nobody_thought_of_is_a_problem_too(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(place.served.context.tidings.store.journal), "latest", None)
    answer = place.root.get("/v1/publications")
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert answer.json()["instance"] == "/v1/publications" and "NoneType" not in answer.text
