"""Every parameter of every route, with characters and numbers that a database cannot store.

On SQLite and PostgreSQL. The routes, their parameters and the XML-RPC methods are read from the application, so
that a new one is tested, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from xmlrpc.client import Fault, ServerProxy, dumps, loads

import httpx
import pytest
from fastapi import params
from fastapi.dependencies.utils import get_flat_params
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from tests.api.routes.place import bearing, fill
from tests.api.routes.route_walk import PARAMETER, methods_of, walk
from tests.support.servers.application import Served, served
from tidings.api.app import create_app
from tidings.api.xml_rpc.service_methods import XmlRpcService
from tidings.core.arguments import LARGEST_INTEGER

NUMBERS = (str(LARGEST_INTEGER + 1), "9" * 400, str(-(2**63) - 1))
TEXTS = ("a\x00b", "\ud800", "\n")
UNSTORABLE = TEXTS[:2]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def at(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    is_postgresql = request.param == "postgresql"
    store = request.getfixturevalue("postgres_places").empty() if is_postgresql else None
    with served(tmp_path_factory.mktemp("home"), store=store) as running:
        fill(running)
        yield running


@pytest.fixture
def client(at: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=at.url, headers=bearing(at.token), trust_env=False) as opened:
        yield opened


@dataclass(frozen=True)
class Parameter:
    """A parameter of a route."""

    method: str
    path: str
    name: str
    kind: str
    needed: tuple[str, ...]
    """The other required query parameters."""

    def send(self, client: httpx.Client, value: str) -> httpx.Response:
        """Send a request and return the answer; of a stream only the head."""
        raw = quote(value.encode("utf-8", "surrogatepass"), safe="")
        path = PARAMETER.sub(
            lambda match: raw if (self.kind, self.name) == ("path", match[1]) else "1", self.path
        )
        query = [f"{name}=1" for name in self.needed if name != self.name]
        headers = {}
        if self.kind == "query":
            query.append(f"{self.name}={raw}")
        elif self.kind == "header":
            headers[self.name] = (
                value.encode("utf-8", "surrogatepass").replace(b"\x00", b"0").replace(b"\n", b"")
            )
        address = f"{path}?{'&'.join(query)}" if query else path
        with client.stream(self.method, address, headers=headers) as answer:
            if "event-stream" not in answer.headers.get("content-type", ""):
                answer.read()
            return answer


def parameters_of(at: Served) -> list[Parameter]:
    """Return the path, query and header parameters of all routes."""
    parameters = []
    kinds = {params.Path: "path", params.Query: "query", params.Header: "header"}
    for path, route in walk(create_app(at.context).routes):
        if not hasattr(route, "dependant"):
            continue
        flat = get_flat_params(route.dependant)
        needed = tuple(
            parameter.alias
            for parameter in flat
            if isinstance(parameter.field_info, params.Query) and parameter.field_info.is_required()
        )
        for method in methods_of(route):
            for parameter in flat:
                kind = next(
                    (name for cls, name in kinds.items() if isinstance(parameter.field_info, cls)), None
                )
                if kind is not None and method != "HEAD":
                    parameters.append(Parameter(method, path, parameter.alias, kind, needed))
    return parameters


def test_route_parameter_unstorable_value_is_client_error(at: Served, client: httpx.Client) -> None:
    parameters = parameters_of(at)
    assert len(parameters) > 80 and {parameter.kind for parameter in parameters} == {
        "path",
        "query",
        "header",
    }
    wrong = []
    for parameter in parameters:
        for value in (*NUMBERS, *TEXTS):
            status = parameter.send(client, value).status_code
            if status >= 500 or (status < 300 and value in UNSTORABLE and parameter.kind != "header"):
                wrong.append((parameter.method, parameter.path, parameter.name, value[:30], status))
    assert not wrong, "\n".join(map(str, wrong))


ONE = {"text": "price < 5", "language": "predicates"}
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "/v1/subscriptions"): ONE
    | {"id": "s", "subscriber": "ana", "within": "1 hour", "state": "active"},
    ("PUT", "/v1/subscriptions/s-of-ana"): {"text": "price < 5", "within": "1 hour"},
    ("PATCH", "/v1/subscriptions/s-of-ana"): {"text": "price < 5", "within": "1 hour"},
    ("POST", "/v1/check"): ONE,
    ("POST", "/v1/preview"): ONE | {"last": 5, "subscriber": "ana"},
    ("PUT", "/v1/notifications/ack?subscriber=ana"): {"upto": 1},
    ("POST", "/v1/notifications/ack?subscriber=ana"): {"upto": 1},
    ("PUT", "/v1/audiences"): {"label": "a", "subscriber": "ana"},
    ("POST", "/v1/destinations?subscriber=ana"): {
        "kind": "webhook",
        "target": "https://example.org/",
        "name": "hook",
        "subscription": "s-of-ana",
    },
    ("PATCH", "/v1/destinations/HOOK"): {"name": "hook", "target": "https://example.org/"},
    ("PUT", "/v1/preferences?subscriber=ana"): {
        "quiet_hours": {"from": "22:00", "to": "07:00", "zone": "Europe/Berlin"}
    },
}
"""An accepted body for each route that parses JSON into a model."""


def with_replaced_members(value: Any, by: Any) -> Iterator[Any]:
    """Yield copies of the value in which each member, at any depth, is replaced in turn."""
    if not isinstance(value, dict):
        yield by
        return
    for name, inner in value.items():
        yield from (value | {name: each} for each in with_replaced_members(inner, by))


def test_route_body_member_unstorable_value_is_client_error(at: Served, client: httpx.Client) -> None:
    hook = at.context.tidings.store.destinations.list("bo")[0].id
    described = client.get("/v1/openapi.json").json()["paths"]
    expected = {
        (method.upper(), path)
        for path, operations in described.items()
        for method, operation in operations.items()
        if "application/json" in operation.get("requestBody", {}).get("content", {})
    }
    tried = {(method, path.partition("?")[0]) for method, path in BODIES}
    tried = {(method, path.replace("s-of-ana", "{id}").replace("HOOK", "{id}")) for method, path in tried}
    assert expected - tried == {("POST", "/v1/publications")}, "each is tried here"
    wrong = []
    headers = {"Content-Type": "application/json"}
    for (method, path), body in BODIES.items():
        address = path.replace("HOOK", hook)
        taken = client.request(method, address, json=body)
        assert taken.status_code < 300, (method, path, taken.text)
        for value in (2**63, 10**400, 1e308, *TEXTS):
            for changed in with_replaced_members(body, value):
                sent = json.dumps(changed).encode()
                status = client.request(method, address, content=sent, headers=headers).status_code
                if status >= 500 or (status < 300 and value in UNSTORABLE):
                    wrong.append((method, path, str(changed)[:80], status))
    assert not wrong, "\n".join(map(str, wrong))


def test_publish_unstorable_name_is_client_error(
    client: httpx.Client,
) -> None:
    """The body itself may have any characters: it is stored as bytes."""
    headers = {"Content-Type": "application/json"}
    event = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "data": 1}
    wrong = []
    for value in (*NUMBERS, *TEXTS):
        for name in event:
            sent = json.dumps(event | {name: value}).encode()
            wrong.append(
                (name, value[:9], client.post("/v1/publications", content=sent, headers=headers).status_code)
            )
        lines = json.dumps({"name": value}).encode()
        kind = {"Content-Type": "application/jsonl"}
        answer = client.post("/v1/publications?id_field=name", content=lines, headers=kind)
        wrong.append(("id_field", value[:9], answer.status_code))
    assert [parameter for parameter in wrong if parameter[2] >= 500] == []


ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "tidings.publish": ("<rss version='2.0'><channel><title>t</title></channel></rss>",),
    "tidings.subscribe": ("ana", "SELECT ?x WHERE (?x, rss:title, ?t)"),
    "tidings.list": ("ana",),
    "tidings.unsubscribe": ("ana", "s-of-none"),
    "tidings.notifications": ("ana", 0),
}


def call(at: Served, method: str, arguments: tuple[Any, ...]) -> tuple[int, Any]:
    """Call an XML-RPC method, and return the status and the result or fault. Python's client rejects integers over
    31 bits.
    """
    numbers = {argument: 1_000_000_000 + n for n, argument in enumerate(arguments) if type(argument) is int}
    body = dumps(
        tuple(
            numbers.get(argument, argument) if type(argument) is int else argument for argument in arguments
        ),
        method,
    )
    for number, stand_in in numbers.items():
        body = body.replace(f"<int>{stand_in}</int>", f"<i8>{number}</i8>")
    headers = {"Content-Type": "text/xml", **bearing(at.token)}
    answer = httpx.post(
        f"{at.url}/RPC2", content=body.encode("utf-8", "surrogatepass"), headers=headers, trust_env=False
    )
    if answer.status_code != 200:
        return answer.status_code, None
    try:
        return 200, loads(answer.text)
    except Fault as fault:
        return 200, fault


def test_xml_rpc_unstorable_argument_is_fault(at: Served) -> None:
    service = XmlRpcService(at.context.tidings, at.context.hub.feeds.places)
    assert service.methods.keys() == ARGUMENTS.keys(), "each is tried here"
    for method, arguments in ARGUMENTS.items():
        assert not isinstance(call(at, method, arguments)[1], Fault), method
        for place, kind in enumerate(map(type, arguments)):
            values = [*map(int, NUMBERS)] if kind is int else [*UNSTORABLE, "x" * 3_000]
            for value in values:
                changed = (*arguments[:place], value, *arguments[place + 1 :])
                status, result = call(at, method, changed)
                assert status == 200, (method, value)
                is_text = isinstance(value, str) and value not in UNSTORABLE
                assert is_text or isinstance(result, Fault), (method, value, result)


def test_xml_rpc_ping_with_invalid_address_reports_error(at: Served) -> None:
    rpc = ServerProxy(f"{at.url}/RPC2")
    for value in ("\ufffd", "x" * 3_000, "http://[", "9" * 400):
        assert rpc.weblogUpdates.ping(value, value)["flerror"] is True


@pytest.mark.parametrize("value", NUMBERS)
def test_notifications_unstorable_cursor_is_rejected(at: Served, client: httpx.Client, value: str) -> None:
    with client.stream(
        "GET", "/v1/notifications/stream?subscriber=ana", headers={"Last-Event-ID": value}
    ) as answer:
        assert 400 <= answer.status_code < 500
    address = at.url.replace("http", "ws", 1) + f"/v1/notifications/ws?subscriber=ana&after={value}"
    with (
        pytest.raises((ConnectionClosed, InvalidStatus)) as refused,
        connect(address, additional_headers=bearing(at.token), proxy=None) as socket,
    ):
        socket.recv(timeout=10)
    assert "4400" in str(refused.value) or "4422" in str(refused.value), refused.value


@pytest.mark.parametrize("value", [2**63, 2**64, -1, "\x00"])
def test_websocket_unstorable_acknowledgement_is_rejected(at: Served, value: int | str) -> None:
    address = at.url.replace("http", "ws", 1) + "/v1/notifications/ws?subscriber=nobody&after=0"
    with connect(address, additional_headers=bearing(at.token), proxy=None) as socket:
        socket.send(json.dumps({"ack": value}))
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(timeout=10)
    assert "4400" in str(closed.value) or "4422" in str(closed.value), closed.value
