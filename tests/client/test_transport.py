"""Retries and backoff of the client, against a server that fails on demand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice

import pytest
from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse, StreamingResponse

from tests.support.servers.http_server import served
from tidings.api.routes import problem_response
from tidings.client import Client, NoResponse, RetryPolicy
from tidings.client.stream import EventStreamParser
from tidings.cloud_events import cloud_event
from tidings.errors import CheckProblem, ConsistencyProblem, NotFound, RateLimited, TidingsError, error_from
from tidings.model import Notification
from tidings.operations.retry_after import parse_retry_after

QUICK = RetryPolicy(attempts=4, initial_delay=0.001, max_delay=0.002)
STANDING = {"acknowledged": 1, "last": 2, "time": None}


class FlakyServer:
    """Answers with the prepared responses in turn; a prepared stream ends after its text."""

    def __init__(self) -> None:
        self.answers: list[Response] = []
        self.streams: list[list[str]] = []
        """An empty one stands for the answer 503."""
        self.resumed: list[str | None] = []
        self.router = APIRouter()
        self.router.add_api_route("/v1/notifications/ack", self.answer, methods=["GET"])
        self.router.add_api_route("/v1/notifications/stream", self.stream)

    def answer(self) -> Response:
        return self.answers.pop(0)

    def stream(self, request: Request) -> Response:
        self.resumed.append(request.headers.get("last-event-id"))
        what = self.streams.pop(0)
        if not what:
            return unavailable(503)
        return StreamingResponse(iter(what), media_type="text/event-stream")


@pytest.fixture(scope="module")
def serving() -> Iterator[tuple[FlakyServer, str]]:
    server = FlakyServer()
    with served(server.router) as address:
        yield server, address


@pytest.fixture
def server(serving: tuple[FlakyServer, str]) -> FlakyServer:
    server, _ = serving
    server.answers, server.streams, server.resumed = [], [], []
    return server


@pytest.fixture
def client(serving: tuple[FlakyServer, str]) -> Iterator[Client]:
    with Client(serving[1], "tdg_x", QUICK) as opened:
        yield opened


def unavailable(status: int, after: str = "0") -> Response:
    return Response(status_code=status, headers={"Retry-After": after})


def success() -> Response:
    return Response(json.dumps(STANDING), media_type="application/json")


def test_client_retries_after_429_502_and_503(server: FlakyServer, client: Client) -> None:
    server.answers = [unavailable(503), unavailable(429), unavailable(502), success()]
    assert client.position().last == 2
    assert server.answers == []


def test_client_gives_up_after_all_attempts(server: FlakyServer, client: Client) -> None:
    problem = RateLimited("too many requests", seconds=0, accepted="10 a second")
    server.answers = [problem_response(problem) for _ in range(5)]
    with pytest.raises(RateLimited, match="too many requests") as refused:
        client.position()
    assert (refused.value.seconds, refused.value.accepted) == (0, "10 a second")
    assert len(server.answers) == 1


def test_client_with_long_retry_after_raises_without_waiting(server: FlakyServer, client: Client) -> None:
    server.answers = [problem_response(RateLimited("come back next week", seconds=604_800)), success()]
    with pytest.raises(RateLimited) as refused:
        client.position()
    assert refused.value.seconds == 604_800


def test_client_does_not_retry_rejected_requests(server: FlakyServer, client: Client) -> None:
    server.answers = [problem_response(NotFound("there is no such thing")), success()]
    with pytest.raises(NotFound):
        client.position()
    assert len(server.answers) == 1


@pytest.mark.parametrize(
    "answer",
    [
        PlainTextResponse("<html>"),
        PlainTextResponse("a proxy", 500),
        Response("[]", 400),
        Response("[]"),
        Response('{"other": 1}'),
        Response("[" * 100_000),
    ],
)
def test_client_answer_of_other_server_raises_no_answer(
    server: FlakyServer, client: Client, answer: Response
) -> None:
    server.answers = [answer]
    with pytest.raises(NoResponse, match="not a response of Tidings"):
        client.position()


@pytest.mark.parametrize(
    "data", ["{", "[]", '{"data": 5}', "[" * 100_000], ids=["no JSON", "a list", "no event", "deep"]
)
def test_follow_stream_of_other_server_raises_no_answer(
    server: FlakyServer, client: Client, data: str
) -> None:
    server.streams = [[f"id: 1\ndata: {data}\n\n"]]
    with pytest.raises(NoResponse, match="not a stream of Tidings"):
        next(iter(client.follow(after=0)))


def test_event_stream_parser_ignores_events_with_invalid_id() -> None:
    lines = EventStreamParser()
    for id in ("9" * 5_000, "\u0663", "-1", "x"):
        assert [lines.feed_line(line) for line in (f"id: {id}", "data: {}", "")] == [None, None, None]


def event(number: int) -> str:
    notification = Notification(f"n-{number}", "ana", number, "s-1", "p-1", (), "2026-11-17T03:00:00Z")
    return f"id: {number}\ndata: {json.dumps(cloud_event(notification, None))}\n\n"


def test_follow_interrupted_stream_resumes_and_skips_duplicates(server: FlakyServer, client: Client) -> None:
    """Half an event is discarded, a repeated one is skipped, and an id alone moves the cursor."""
    whole = event(3)
    server.streams = [
        ["retry: 1\n\n", event(1), ": still here\n\n", event(2), whole[: len(whole) // 2]],
        [event(2), whole],
        ["id: 7\n\n"],
        [event(8)],
    ]
    assert [notification.sequence for notification in islice(client.follow(after=0), 4)] == [1, 2, 3, 8]
    assert server.resumed == ["0", "2", "3", "7"]


def test_follow_reconnects_to_busy_server(server: FlakyServer, client: Client) -> None:
    server.streams = [[event(1)], [], [], [event(2)]]
    assert [notification.sequence for notification in islice(client.follow(after=0), 2)] == [1, 2]
    assert server.resumed == ["0", "1", "1", "1"]


def test_retry_policy_backoff_doubles_with_jitter() -> None:
    policy = RetryPolicy(initial_delay=1, max_delay=10)
    assert [policy.delay(failures, draw=lambda: 1.0) for failures in (1, 2, 3, 4, 5, 99)] == [
        1,
        2,
        4,
        8,
        10,
        10,
    ]
    assert policy.delay(2, draw=lambda: 0.0) == 1
    assert policy.delay(1, retry_after=20) == 20
    assert 0.5 <= policy.delay(1) <= 1


def test_parse_retry_after_reads_seconds_and_dates() -> None:
    now = datetime(2026, 11, 17, 3, 0, 0, tzinfo=UTC)
    values = ["", "5", "Tue, 17 Nov 2026 03:00:30 GMT", "Tue, 17 Nov 2026 02:00:00 GMT", "soon"]
    assert [parse_retry_after({"retry-after": one}, now) for one in values] == [None, 5, 30, 0, None]


@pytest.mark.parametrize(
    "problem",
    [
        CheckProblem(
            "no event type has an attribute 'prise'", where="column 1", hint="did you mean 'price'?"
        ),
        ConsistencyProblem("R2", "furniture_category is mandatory"),
        NotFound("there is no such subscription", received="s-1"),
    ],
)
def test_error_from_facts_restores_error(problem: TidingsError) -> None:
    restored = error_from(problem.facts())
    assert (type(restored), restored.facts(), str(restored)) == (type(problem), problem.facts(), str(problem))


def test_error_from_facts_underlines_sent_text() -> None:
    facts = {"error": "CheckProblem", "what": "no attribute", "place": {"line": 1, "column": 3, "length": 2}}
    assert str(error_from(facts, "a bc")) == "no attribute (column 3)\n  a bc\n    ^^"
    assert str(error_from(facts)) == "no attribute (line 1, column 3)"
    assert type(error_from({"error": "OfNextYear", "what": "x"})) is TidingsError
