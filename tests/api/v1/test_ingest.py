"""A few small events come to the same by the short way, in a transaction that others share, as by the long way."""

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
    """Two that are alike; whoever wants the long way of one takes it."""
    homes = [tmp_path_factory.mktemp(name) for name in ("short", "long")]
    with Tidings(homes[0]) as one, Tidings(homes[1]) as other:
        for each in (one, other):
            each.extend_schema(SCHEMA)
        limits = Limits(bulk=60, burst=10_000)
        with served_api(one, limits) as short, served_api(other, limits) as long:
            yield short, long


def event(choose: random.Random) -> dict[str, Any]:
    """Few ids, so that they meet, and a word in the place of a number now and then."""
    price = choose.choice([1, 2, 3, 3, 3, "cheap"])
    return {"event_type": "chair", "price": price, "lot": choose.choice(["a", "b", "c", "d", "", 7, None])}


def line(choose: random.Random) -> bytes:
    if choose.random() < 0.85:
        written = json.dumps(event_or_cloud_event(choose)).encode()
        return choose.choice([written, written, b" %b\r" % written])
    return choose.choice([b"", b" ", b"{", b"[]", b"\xff", b'{"lot": "\\ud800"}', b'{"a": 1, "a": 2}'])


def cloud_event(choose: random.Random) -> Any:
    if choose.random() < 0.05:
        return choose.choice([{"price": 1}, 5, None])
    told = {"specversion": "1.0", "id": choose.choice("efg"), "source": "/shop", "type": "sale"}
    label = {"audience": choose.choice(["staff", "board"])} if choose.random() < 0.2 else {}
    return told | label | {"data": {"price": choose.choice([1, 1, 1, 2])}}


def event_or_cloud_event(choose: random.Random) -> Any:
    """Those that are sent as events may be CloudEvents, which have ids of their own."""
    return cloud_event(choose) if choose.random() < 0.2 else event(choose)


def drawn(choose: random.Random) -> dict[str, Any]:
    """A request."""
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


def told(answer: httpx.Response) -> tuple[int, str, Any]:
    """What was answered, but for the ids that were made."""
    text = [json.loads(each) for each in answer.text.splitlines()]
    for each in [one for outer in text for one in (outer, *outer.get("outcomes", ()))]:
        if str(each.get("id", "")).startswith("p-"):
            each["id"] = "made"
    return answer.status_code, answer.headers["content-type"], text


def both(
    services: tuple[Service, Service], monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any]
) -> httpx.Response:
    """The answer to a request, which is the same by both ways."""
    short, long = services
    answer = short.shop.post("/v1/publications", **asked)
    with monkeypatch.context() as patched:
        patched.setattr(ingest, "SMALL", -1)
        otherwise = long.shop.post("/v1/publications", **asked)
    assert told(answer) == told(otherwise), asked
    return answer


@pytest.mark.parametrize("seed", [2_026])
def test_both_ways_come_to_the_same(
    services: tuple[Service, Service], monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    choose = random.Random(seed)
    statuses = {both(services, monkeypatch, drawn(choose)).status_code for _ in range(80)}
    assert statuses >= {200, 201, 207, 409, 422}
    one, other = ([*each.tidings.store.journal.read(0)] for each in services)
    assert [(each.media_type, each.body, each.audience) for each in one] == [
        (each.media_type, each.body, each.audience) for each in other
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
def test_how_small_and_how_few(
    services: tuple[Service, Service], monkeypatch: pytest.MonkeyPatch, body: bytes, is_short: bool
) -> None:
    ways = list[bool]()
    at_once = IngestEndpoint._publish_fast

    async def watched(*given: Any) -> Any:
        answer = await at_once(*given)
        ways.append(answer is not None)
        return answer

    asked = {"content": ONE, "headers": {"Content-Type": LINES}}
    both(services, monkeypatch, asked)  # the schema is known from now on
    monkeypatch.setattr(IngestEndpoint, "_publish_fast", watched)
    both(services, monkeypatch, asked | {"content": body})
    assert ways == [is_short, False]
