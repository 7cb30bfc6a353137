"""What is asked again, and after how long; on a real server that is not always in the mood to answer."""

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
from tidings.client import Client, NoAnswer, RetryPolicy
from tidings.client.stream import EventStreamParser
from tidings.cloud_events import cloud_event
from tidings.errors import Absent, CheckProblem, ConsistencyProblem, TidingsError, TooOften, error_from
from tidings.model import Notification
from tidings.operations.retry_after import parse_retry_after

QUICK = RetryPolicy(attempts=4, initial_delay=0.001, max_delay=0.002)
STANDING = {"acknowledged": 1, "last": 2, "time": None}


class Moody:
    """Answers what the test has put there, one after the other; streams are what it says, cut off at the end."""

    def __init__(self) -> None:
        self.answers: list[Response] = []
        self.streams: list[list[str]] = []
        """An empty one is: not now."""
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
            return not_now(503)
        return StreamingResponse(iter(what), media_type="text/event-stream")


@pytest.fixture(scope="module")
def serving() -> Iterator[tuple[Moody, str]]:
    moody = Moody()
    with served(moody.router) as address:
        yield moody, address


@pytest.fixture
def moody(serving: tuple[Moody, str]) -> Moody:
    found, _ = serving
    found.answers, found.streams, found.resumed = [], [], []
    return found


@pytest.fixture
def client(serving: tuple[Moody, str]) -> Iterator[Client]:
    with Client(serving[1], "tdg_x", QUICK) as made:
        yield made


def not_now(status: int, after: str = "0") -> Response:
    return Response(status_code=status, headers={"Retry-After": after})


def right() -> Response:
    return Response(json.dumps(STANDING), media_type="application/json")


def test_client_retries_after_429_502_and_503(moody: Moody, client: Client) -> None:
    moody.answers = [not_now(503), not_now(429), not_now(502), right()]
    assert client.position().last == 2
    assert moody.answers == []


def test_often_enough(moody: Moody, client: Client) -> None:
    problem = TooOften("too many requests", seconds=0, accepted="10 a second")
    moody.answers = [problem_response(problem) for _ in range(5)]
    with pytest.raises(TooOften, match="too many requests") as refused:
        client.position()
    assert (refused.value.seconds, refused.value.accepted) == (0, "10 a second")
    assert len(moody.answers) == 1


def test_client_with_a_long_retry_after_raises(moody: Moody, client: Client) -> None:
    moody.answers = [problem_response(TooOften("come back next week", seconds=604_800)), right()]
    with pytest.raises(TooOften) as refused:
        client.position()
    assert refused.value.seconds == 604_800


def test_client_does_not_retry_refused_calls(moody: Moody, client: Client) -> None:
    moody.answers = [problem_response(Absent("there is no such thing")), right()]
    with pytest.raises(Absent):
        client.position()
    assert len(moody.answers) == 1


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
def test_something_else_answers(moody: Moody, client: Client, answer: Response) -> None:
    moody.answers = [answer]
    with pytest.raises(NoAnswer, match="not a response of Tidings"):
        client.position()


@pytest.mark.parametrize(
    "data", ["{", "[]", '{"data": 5}', "[" * 100_000], ids=["no JSON", "a list", "no event", "deep"]
)
def test_following_a_stream_of_something_else_is_an_error(moody: Moody, client: Client, data: str) -> None:
    moody.streams = [[f"id: 1\ndata: {data}\n\n"]]
    with pytest.raises(NoAnswer, match="not a stream of Tidings"):
        next(iter(client.follow(after=0)))


def test_event_lines_with_an_id_that_is_no_cursor_are_left_out() -> None:
    lines = EventStreamParser()
    for id in ("9" * 5_000, "\u0663", "-1", "x"):
        assert [lines.feed_line(line) for line in (f"id: {id}", "data: {}", "")] == [None, None, None]


def event(number: int) -> str:
    told = Notification(f"n-{number}", "ana", number, "s-1", "p-1", (), "2026-11-17T03:00:00Z")
    return f"id: {number}\ndata: {json.dumps(cloud_event(told, None))}\n\n"


def test_a_stream_that_is_cut_off_anywhere_and_repeats_itself(moody: Moody, client: Client) -> None:
    """Half an event counts for nothing, what comes again is left out, and an id alone moves the cursor."""
    whole = event(3)
    moody.streams = [
        ["retry: 1\n\n", event(1), ": still here\n\n", event(2), whole[: len(whole) // 2]],
        [event(2), whole],
        ["id: 7\n\n"],
        [event(8)],
    ]
    assert [told.sequence for told in islice(client.follow(after=0), 4)] == [1, 2, 3, 8]
    assert moody.resumed == ["0", "2", "3", "7"]


def test_stream_reconnects_to_a_busy_server(moody: Moody, client: Client) -> None:
    moody.streams = [[event(1)], [], [], [event(2)]]
    assert [told.sequence for told in islice(client.follow(after=0), 2)] == [1, 2]
    assert moody.resumed == ["0", "1", "1", "1"]


def test_pauses_double_and_are_drawn() -> None:
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


def test_retry_after_is_parsed() -> None:
    now = datetime(2026, 11, 17, 3, 0, 0, tzinfo=UTC)
    given = ["", "5", "Tue, 17 Nov 2026 03:00:30 GMT", "Tue, 17 Nov 2026 02:00:00 GMT", "soon"]
    assert [parse_retry_after({"retry-after": one}, now) for one in given] == [None, 5, 30, 0, None]


@pytest.mark.parametrize(
    "problem",
    [
        CheckProblem(
            "no event type has an attribute 'prise'", where="column 1", hint="did you mean 'price'?"
        ),
        ConsistencyProblem("R2", "furniture_category is mandatory"),
        Absent("there is no such subscription", received="s-1"),
    ],
)
def test_errors_come_back_as_they_were(problem: TidingsError) -> None:
    again = error_from(problem.facts())
    assert (type(again), again.facts(), str(again)) == (type(problem), problem.facts(), str(problem))


def test_client_error_underlines_the_sent_text() -> None:
    facts = {"error": "CheckProblem", "what": "no attribute", "place": {"line": 1, "column": 3, "length": 2}}
    assert str(error_from(facts, "a bc")) == "no attribute (column 3)\n  a bc\n    ^^"
    assert str(error_from(facts)) == "no attribute (line 1, column 3)"
    assert type(error_from({"error": "OfNextYear", "what": "x"})) is TidingsError
