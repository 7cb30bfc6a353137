"""The fast path for few small events, in a shared transaction, gives the same results as the slow path."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.servers.api_server import Service, served_api
from tidings.api.limits import Limits
from tidings.api.v1 import ingest
from tidings.api.v1.ingest import FEW, SMALL, IngestEndpoint
from tidings.service.tidings import Tidings

SCHEMA = """
attributes: {price: numeric, lot: string}
event_types: {chair: {attributes: {price: optional, lot: optional}}}
"""
LINES, BATCH, JSON = "application/x-ndjson", "application/cloudevents-batch+json", "application/json"


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, Service]]:
    """Two equal services; the slow path is patched into one of them."""
    homes = [tmp_path_factory.mktemp(name) for name in ("short", "long")]
    with Tidings(homes[0]) as first, Tidings(homes[1]) as second:
        for tidings in (first, second):
            tidings.extend_schema(SCHEMA)
        limits = Limits(bulk=60, burst=10_000)
        with served_api(first, limits) as short, served_api(second, limits) as long:
            yield short, long


def event(choose: random.Random) -> dict[str, Any]:
    """Return an event with one of a few ids, so that ids collide, and sometimes a word in place of a number."""
    price = choose.choice([1, 2, 3, 3, 3, "cheap"])
    return {"event_type": "chair", "price": price, "lot": choose.choice(["a", "b", "c", "d", "", 7, None])}


def line(choose: random.Random) -> bytes:
    if choose.random() < 0.85:
        encoded = json.dumps(event_or_cloud_event(choose)).encode()
        return choose.choice([encoded, encoded, b" %b\r" % encoded])
    return choose.choice([b"", b" ", b"{", b"[]", b"\xff", b'{"lot": "\\ud800"}', b'{"a": 1, "a": 2}'])


def cloud_event(choose: random.Random) -> Any:
    if choose.random() < 0.05:
        return choose.choice([{"price": 1}, 5, None])
    attributes = {"specversion": "1.0", "id": choose.choice("efg"), "source": "/shop", "type": "sale"}
    label = {"audience": choose.choice(["staff", "board"])} if choose.random() < 0.2 else {}
    return attributes | label | {"data": {"price": choose.choice([1, 1, 1, 2])}}


def event_or_cloud_event(choose: random.Random) -> Any:
    """Return an event or a CloudEvent, which has an id of its own."""
    return cloud_event(choose) if choose.random() < 0.2 else event(choose)


def random_request(choose: random.Random) -> dict[str, Any]:
    """Return the arguments of a random request."""
    kind = choose.choice([LINES, LINES, LINES, BATCH, JSON])
    count = choose.choice([0, 1, 2, 3, 5])
    if kind == LINES:
        body = b"\n".join(line(choose) for _ in range(count))
    elif kind == BATCH:
        body = json.dumps([cloud_event(choose) for _ in range(count)]).encode()
    else:
        body = json.dumps(event_or_cloud_event(choose)).encode()
    query = {"id_field": "lot"} if kind == LINES and choose.random() < 0.9 else {}
    query |= {"audience": choose.choice(["staff", "two\nlines"])} if choose.random() < 0.1 else {}
    query |= {"id": choose.choice("ab")} if choose.random() < (0.5 if kind == JSON else 0.1) else {}
    accepts = {"Accept": LINES} if choose.random() < 0.1 else {}
    return {"content": body, "headers": {"Content-Type": kind} | accepts, "params": query}


def comparable(answer: httpx.Response) -> tuple[int, str, Any]:
    """Return the answer without generated ids."""
    text = [json.loads(outcome) for outcome in answer.text.splitlines()]
    for outcome in [one for outer in text for one in (outer, *outer.get("outcomes", ()))]:
        if str(outcome.get("id", "")).startswith("p-"):
            outcome["id"] = "made"
    return answer.status_code, answer.headers["content-type"], text


def post_both_ways(
    services: tuple[Service, Service], monkeypatch: pytest.MonkeyPatch, request: dict[str, Any]
) -> httpx.Response:
    """Send a request by both paths, and return the answer, which is the same."""
    short, long = services
    answer = short.shop.post("/v1/publications", **request)
    with monkeypatch.context() as patched:
        patched.setattr(ingest, "SMALL", -1)
        otherwise = long.shop.post("/v1/publications", **request)
    assert comparable(answer) == comparable(otherwise), request
    return answer


@pytest.mark.parametrize("seed", [2_026])
def test_ingest_fast_and_slow_path_agree(
    services: tuple[Service, Service], monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    choose = random.Random(seed)
    statuses = {post_both_ways(services, monkeypatch, random_request(choose)).status_code for _ in range(80)}
    assert statuses >= {200, 201, 207, 409, 422}
    fast, slow = ([*each.tidings.store.journal.read(0)] for each in services)
    assert [(each.media_type, each.body, each.audience) for each in fast] == [
        (each.media_type, each.body, each.audience) for each in slow
    ]


ONE = b'{"event_type": "chair"}\n'
LONG = b'{"event_type": "chair", "lot": "%b"}'
LETTERS = SMALL - len(LONG % b"")


@pytest.mark.parametrize(
    ("body", "is_short"),
    [
        pytest.param(ONE * FEW, True, id="few"),
        pytest.param(ONE * FEW + ONE.strip(), True, id="few and a line that does not end"),
        pytest.param(ONE * (FEW + 1), False, id="more than a few"),
        pytest.param(ONE * 61, False, id="more than may be"),
        pytest.param(LONG % (b"x" * LETTERS), True, id="small"),
        pytest.param(LONG % (b"x" * (LETTERS + 1)), False, id="larger than small"),
    ],
)
def test_ingest_fast_path_is_used_for_few_small_events(
    services: tuple[Service, Service], monkeypatch: pytest.MonkeyPatch, body: bytes, is_short: bool
) -> None:
    fast_path = list[bool]()
    publish_fast = IngestEndpoint._publish_fast

    async def record_path(*arguments: Any) -> Any:
        answer = await publish_fast(*arguments)
        fast_path.append(answer is not None)
        return answer

    request = {"content": ONE, "headers": {"Content-Type": LINES}}
    post_both_ways(services, monkeypatch, request)  # the schema is known from now on
    monkeypatch.setattr(IngestEndpoint, "_publish_fast", record_path)
    post_both_ways(services, monkeypatch, request | {"content": body})
    assert fast_path == [is_short, False]
