"""Limits of the API: settings, rates, charges and sizes."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from xmlrpc.client import dumps

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.support.servers.api_server import served_api
from tests.support.servers.application import Served, served
from tidings.api.limits import VARIABLE, Limits, load_limits
from tidings.api.rate_limiter import RateLimiter
from tidings.errors import SetupError
from tidings.model import Subscription
from tidings.service.authorization import Access
from tidings.service.bulk_subscribe import BulkWarnings
from tidings.service.tidings import Tidings


def test_load_limits_reads_environment_and_rejects_invalid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "rate=600, burst=10 subscriptions=5")
    assert load_limits() == Limits(rate=600, burst=10, subscriptions=5)
    for wrong in ("rate=0", "speed=5", "clauses=100000"):
        monkeypatch.setenv(VARIABLE, wrong)
        with pytest.raises(SetupError, match="limit"):
            load_limits()


def test_rate_limiter_bucket_refills_over_time() -> None:
    now = [0.0]
    rates = RateLimiter(60, 3, 2, clock=lambda: now[0])
    assert [rates.take("a").is_allowed for _ in range(4)] == [True, True, True, False]
    left = rates.take("a")
    assert (left.requests, left.seconds) == (0, 1)
    assert rates.take("b").is_allowed
    now[0] = 1.5
    assert [rates.take("a").is_allowed for _ in range(2)] == [True, False]
    rates.take("b"), rates.take("c")
    assert rates.take("a").requests == 2, "the least recently used bucket is dropped"


def test_rate_limiter_look_takes_no_token() -> None:
    rates = RateLimiter(60, 1, 2, clock=lambda: 0.0)
    assert rates.look("a").is_allowed and rates.look("a").is_allowed
    rates.take("a")
    assert (rates.look("a").is_allowed, rates.look("a").seconds) == (False, 1)
    rates.look("b"), rates.look("c")
    assert not rates.take("a").is_allowed, "a look creates no bucket"


def test_rate_limiter_charge_beyond_balance_delays_next_request() -> None:
    now = [0.0]
    rates = RateLimiter(60, 3, 2, clock=lambda: now[0])
    rates.take("a")
    rates.charge("a", 4)
    left = rates.take("a")
    assert (left.is_allowed, left.requests, left.seconds) == (False, 0, 3)
    now[0] = 3.0
    assert rates.take("a").is_allowed
    rates.charge("a", 1_000)
    assert rates.look("a").seconds == 4, "the wait is at most that for a full bucket and one request"


def test_publish_is_charged_for_bytes_of_body(tmp_path: Path) -> None:
    with Tidings(tmp_path) as tidings, served_api(tidings, Limits(rate=1, burst=100)) as service:
        event = {"Content-Type": "application/json"}
        body = b'{"a": "' + b"x" * 800_000 + b'"}'
        assert service.shop.post("/v1/publications", content=body, headers=event).status_code == 201
        left = service.shop.get("/v1/publications").headers["ratelimit"]
        assert left.startswith('"token";r=48;')


@pytest.mark.parametrize("kind", ["publications", "subscriptions"])
def test_invalid_lines_are_charged_and_rest_is_not_validated(tmp_path: Path, kind: str) -> None:
    limits = Limits(rate=1, burst=100, refusals=10)
    with Tidings(tmp_path) as tidings, served_api(tidings, limits) as service:
        caller = service.shop if kind == "publications" else service.caller("ana")
        good = b'{"text": "price < 5"}\n'
        body = good + b'{"text": \n' * 20_000 + good
        answer = caller.post(f"/v1/{kind}", content=body, headers={"Content-Type": "application/x-ndjson"})
        payload = answer.json()
        assert (answer.status_code, len(payload["outcomes"]), payload["refused"]) == (207, 20_002, 20_001)
        messages = [one["problem"]["what"] for one in payload["outcomes"][1:]]
        assert (
            messages[0] == "expected a value"
            and messages[-1] == "not validated, because too many items before it were rejected"
        )
        read = [one for one in messages if one == "expected a value"]
        assert len(read) == (11 if kind == "publications" else 999)  # subscriptions are read by the thousand
        left = caller.get(f"/v1/{kind}").headers["ratelimit"]
        texts = 0 if kind == "publications" else (len(good) + 999 * len(b'{"text": ')) // 500
        assert left.startswith(f'"token";r={100 - 2 - 10 - len(body) // 16_000 - texts};')


def requests_left_after(caller: httpx.Client, path: str, body: bytes, kind: str) -> int:
    """Return the number of requests a caller has left after this request and one more."""
    assert caller.post(path, content=body, headers={"Content-Type": kind}).status_code == 201
    return int(caller.get(path).headers["ratelimit"].split(";")[1].removeprefix("r="))


def test_publish_lines_are_charged_for_their_count(tmp_path: Path) -> None:
    with Tidings(tmp_path) as tidings, served_api(tidings, Limits(rate=1, burst=100)) as service:
        lines = "application/x-ndjson"
        assert (
            requests_left_after(service.shop, "/v1/publications", b"{}\n" * 2_000, lines)
            == 100 - 2 - 2_000 // 50
        )


def test_publish_json_ld_is_charged_for_its_objects(tmp_path: Path) -> None:
    with Tidings(tmp_path) as tidings, served_api(tidings, Limits(rate=1, burst=100)) as service:
        body = b"[" + b",".join([b'{"urn:p":1}'] * 1_000) + b"]"
        left = requests_left_after(service.shop, "/v1/publications", body, "application/ld+json")
        assert left == 100 - 2 - 1_000 // 50


def test_subscribe_lines_are_charged_for_their_bytes(tmp_path: Path) -> None:
    with Tidings(tmp_path) as tidings, served_api(tidings, Limits(rate=1, burst=100)) as service:
        line = b'{"text": "price in (%s)"}' % b", ".join(b"%d" % n for n in range(1_000, 1_950))
        lines = b"\n".join(line.replace(b"price", b"p%d" % n) for n in range(3))
        left = requests_left_after(service.caller("ana"), "/v1/subscriptions", lines, "application/x-ndjson")
        assert left == 100 - 2 - len(lines) // 16_000 - (len(lines) - 2) // 500


def test_bulk_warnings_of_long_texts_are_bounded(tmp_path: Path) -> None:
    with Tidings(tmp_path) as tidings:
        subscribing = tidings.subscribing()
        warnings = BulkWarnings(subscribing)
        text = f"a > 5 and a < 3 and b in ({', '.join(map(str, range(1_000, 2_500)))})"
        assert warnings.about(Subscription("first", "ana", "predicates", text))
        for number in range(20):
            warnings.about(Subscription(str(number), "ana", "predicates", text))
        assert warnings.skipped == 21 - 100_000 // len(text)


@pytest.mark.parametrize(
    "kind", ["application/json", "application/cloudevents-batch+json", "application/ld+json"]
)
def test_json_with_too_many_values_is_rejected_before_parsing(tmp_path: Path, kind: str) -> None:
    with Tidings(tmp_path) as tidings, served_api(tidings, Limits(values=100)) as service:
        for body in (b"[" * 1_000, b"[" + b",".join([b"{}"] * 600) + b"]"):
            rejected = service.shop.post("/v1/publications", content=body, headers={"Content-Type": kind})
            assert (rejected.status_code, rejected.json()["what"]) == (413, "too many values in this JSON")
        line = b'{"a": [' + b"1," * 200 + b"1]}"
        lines = {"Content-Type": "application/x-ndjson"}
        payload = service.shop.post("/v1/publications", content=b'{"a": 1}\n' + line, headers=lines).json()
        assert payload["published"] == 1
        assert payload["outcomes"][1]["problem"]["accepted"] == "at most 100 values"
        ana = service.caller("ana")
        payload = ana.post("/v1/subscriptions", content=b'{"text": "a = 1"}\n' + line, headers=lines).json()
        assert payload["subscribed"] == 1
        assert payload["outcomes"][1]["problem"]["accepted"] == "at most 100 values"
        answer = ana.post("/v1/subscriptions", content=line, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["what"]) == (400, "too many values in this JSON")


def test_requests_over_rate_of_token_answer_429(tmp_path: Path) -> None:
    with Tidings(tmp_path) as tidings, served_api(tidings, Limits(rate=1, burst=3)) as service:
        ana, bo = service.caller("ana"), service.caller("bo")
        answers = [ana.get("/v1/subscriptions") for _ in range(4)]
        assert [one.status_code for one in answers] == [200, 200, 200, 429]
        assert answers[0].headers["ratelimit-policy"] == '"token";q=1;w=60'
        assert answers[0].headers["ratelimit"].startswith('"token";r=2;t=')
        refused = answers[3]
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert (refused.json()["error"], refused.json()["status"]) == ("RateLimited", 429)
        assert refused.json()["accepted"] == "1 request a minute with one token, 3 at once"
        assert refused.headers["ratelimit"].startswith('"token";r=0')
        assert bo.get("/v1/subscriptions").status_code == 200, "each token has its own"
        assert httpx.get(f"{service.address}/v1/openapi.json").status_code == 200


def test_request_with_body_is_counted_once(tmp_path: Path) -> None:
    """Although its token is checked before the body is read, and after."""
    with Tidings(tmp_path) as tidings, served_api(tidings, Limits(rate=1, burst=3)) as service:
        ana, headers = service.caller("ana"), {"Content-Type": "application/json"}
        bodies = (b'{"text": "a = 1"}', b'{"text":', b'{"txet": "a = 1"}', b'{"text":')
        answers = [ana.post("/v1/subscriptions", content=each, headers=headers) for each in bodies]
        assert [one.status_code for one in answers] == [201, 400, 422, 429]
        check_fourth_is_limited(answers)


@pytest.fixture(scope="module")
def thrice(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The whole service, with a rate limit of three requests per minute and token."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, "rate=1 burst=3")
        with served(tmp_path_factory.mktemp("home"), rpc_token="of-the-service") as at:
            yield at


def basic(secret: str) -> dict[str, str]:
    return {"Authorization": "Basic " + b64encode(f"me:{secret}".encode()).decode()}


def check_fourth_is_limited(answers: list[httpx.Response]) -> None:
    assert [one.status_code == 429 for one in answers] == [False, False, False, True]
    assert [one.headers["ratelimit"].split(";")[1] for one in answers] == ["r=2", "r=1", "r=0", "r=0"]
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 60


PLACES = ("/metadata/status", "/metadata/classes", "/objects", "/browse")


@pytest.mark.parametrize("path", PLACES)
def test_token_is_counted_across_routes_and_schemes(thrice: Served, path: str) -> None:
    """A token has one bucket, whatever the route and the authentication scheme."""
    secret = Access(thrice.context.tidings.store).make("many", ["administer"]).secret
    bearer = {"Authorization": f"Bearer {secret}"}
    ways = (("/v1/subscriptions", bearer), (path, bearer), (path, basic(secret)), (path, bearer))
    check_fourth_is_limited([httpx.get(f"{thrice.url}{each}", headers=headers) for each, headers in ways])


def test_service_token_is_counted(thrice: Served) -> None:
    headers = {"Authorization": "Bearer of-the-service"}
    check_fourth_is_limited([httpx.get(f"{thrice.url}{path}", headers=headers) for path in PLACES])


def test_token_is_counted_over_xml_rpc_and_pings_are_not(thrice: Served) -> None:
    """Pings need no token; they have a limit of their own."""
    secret = Access(thrice.context.tidings.store).make("friend", ["subscribe"], "ana").secret
    call = dumps(("ana",), "tidings.list").encode()
    more = {"content": call, "headers": {"Content-Type": "text/xml"} | basic(secret)}
    check_fourth_is_limited([httpx.post(f"{thrice.url}/RPC2", **more) for _ in range(4)])  # type: ignore[arg-type]
    ping = dumps(("Blog", "http://example.org/"), "weblogUpdates.ping").encode()
    several = [
        httpx.post(f"{thrice.url}/RPC2", content=ping, headers={"Content-Type": "text/xml"}) for _ in range(4)
    ]
    assert {one.status_code for one in several} == {200}


def test_token_is_counted_when_websocket_opens(thrice: Served) -> None:
    secret = Access(thrice.context.tidings.store).make("socket", ["subscribe"], "ana").secret
    headers = {"Authorization": f"Bearer {secret}"}
    statuses = [httpx.get(f"{thrice.url}/v1/notifications", headers=headers).status_code for _ in range(3)]
    address = thrice.url.replace("http", "ws", 1) + "/v1/notifications/ws"
    with (
        connect(address, additional_headers=headers, proxy=None) as socket,
        pytest.raises(ConnectionClosed) as over,
    ):
        socket.recv()
    assert statuses == [200] * 3 and over.value.rcvd is not None
    assert over.value.rcvd.code == 1013 and over.value.rcvd.reason.startswith("too many requests")


@pytest.mark.parametrize("is_list", [False, True])
def test_feed_address_is_counted_like_token(thrice: Served, is_list: bool) -> None:
    """The address is a token by itself. Unknown addresses have no bucket."""
    tidings = thrice.context.tidings
    tidings.subscribe("bo", "price < 9", id=f"s-{is_list}")
    feeds = tidings.feeds_at(thrice.url)
    [(_, token), *_] = feeds.list_with_tokens("bo")
    path = f"/opml/{feeds.addresses.token('bo')}" if is_list else f"/feeds/{token}.atom"
    check_fourth_is_limited([httpx.get(f"{thrice.url}{path}") for _ in range(4)])
    assert {httpx.get(f"{thrice.url}/feeds/{'x' * 32}").status_code for _ in range(5)} == {404}


def test_publish_beyond_memory_for_uploads_answers_503(tmp_path: Path) -> None:
    """A body within its own limit can still exceed the memory for all bodies."""
    with Tidings(tmp_path) as tidings, served_api(tidings, Limits(body=5_000, uploads=1_000)) as service:
        headers = {"Content-Type": "application/json"}
        answer = service.shop.post("/v1/publications", content=b"x" * 2_000, headers=headers)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert service.shop.post("/v1/publications", content=b"{}", headers=headers).status_code == 201


def test_rate_limiter_after_clock_was_set_back_refills() -> None:
    now = [100_000.0]
    rates = RateLimiter(60, 3, 2, clock=lambda: now[0])
    assert rates.take("ana").requests == 2
    now[0] -= 24 * 60 * 60
    assert rates.take("ana").requests == 1
    now[0] += 1
    assert rates.look("ana").requests == 2
