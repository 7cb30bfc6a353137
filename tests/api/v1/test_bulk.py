"""Many subscriptions over HTTP as JSON Lines, on a real server: each line gets the answer of a single request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.guesses import Guesses
from tests.support.servers.api_server import Service, served_api
from tests.support.servers.provider_server import DOC, HOST, SCHEMA
from tidings.api.limits import Limits
from tidings.api.v1 import bulk
from tidings.core import suggest
from tidings.errors import StoreError
from tidings.metadata.provider.provider import Provider
from tidings.service import bulk_subscribe
from tidings.service.subscription_lines import MAX_LENGTHS
from tidings.service.tidings import Tidings

XPATH = '//stock[symbol = "YHOO" and price > 50]'
GQL = "SELECT ?x WHERE (?x, rss:title, ?t) AND ?t contains 'cats'"
RULE = "search CycleProvider c register c where c.serverInformation.memory > 64"
LINES = {"Content-Type": "application/x-ndjson"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    limits = Limits(subscriptions=20, request=2_000, body=100_000, bulk=40, clauses=16, burst=1_000)
    with Tidings(tmp_path_factory.mktemp("home")) as tidings, served_api(tidings, limits) as running:
        provider = Provider(tidings.store)
        provider.load_schema(SCHEMA.read_bytes(), "text/turtle")
        provider.register(DOC, HOST.read_bytes(), "application/rdf+xml")
        yield running


def send(client: httpx.Client, *lines: Any, **more: str) -> httpx.Response:
    """Post values as JSON Lines; bytes are sent as they are."""
    written = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    return client.post("/v1/subscriptions", content=b"\n".join(written), headers=LINES | more)


@pytest.mark.parametrize("kind", ["application/json", "application/x-www-form-urlencoded", "text/plain", ""])
def test_subscribe_lines_with_other_media_type_are_rejected_with_hint(service: Service, kind: str) -> None:
    ana, headers = service.caller("ana"), {"Content-Type": kind} if kind else {}
    for lines in (b'{"text": "a = 1"}\n{"text": "a = 2"}\n', b'\n{"text": "a = 1"}\r\n\r\n{"text": '):
        problem = ana.post("/v1/subscriptions", content=lines, headers=headers).json()
        assert problem["status"] == (400 if kind == "application/json" else 415)
        assert problem["hint"] == (
            "this looks like JSON Lines; send several as JSON Lines, one on each line, "
            "with Content-Type: application/x-ndjson"
        )
        assert problem["hint"] in problem["message"]
    for other in (
        b'{"text":\n"a = 1"}}',
        b'{"text": "a = 1"}}',
        b'"a"\n{"text": "a = 1"}',
        b"{}\nx",
        b"\xff\n{",
    ):
        hint = ana.post("/v1/subscriptions", content=other, headers=headers).json().get("hint", "")
        assert "lines" not in hint, other


def test_subscribe_too_large_request_hints_at_json_lines(service: Service) -> None:
    problem = service.caller("ana").post("/v1/subscriptions", json={"text": "x" * 3_000}).json()
    assert (problem["status"], problem["accepted"]) == (413, "2,000 bytes")
    assert (
        problem["hint"]
        == "send several as JSON Lines, one on each line, with Content-Type: application/x-ndjson"
    )


def test_subscribe_lines_have_one_outcome_per_line(service: Service) -> None:
    ana, subscriptions = service.caller("ana"), service.tidings.store.subscriptions
    version = subscriptions.version()
    lines = ({"text": "price < 1", "id": "one"}, b"", {"text": "price <"}, {"text": "price < 2"})
    some = send(ana, *lines)
    assert some.status_code == 207
    payload = some.json()
    assert (payload["subscribed"], payload["known"], payload["refused"]) == (2, 0, 1)
    assert [one["line"] for one in payload["outcomes"]] == [1, 3, 4], "an empty line counts, and is none"
    assert payload["outcomes"][0] == {"line": 1, "id": "one", "new": True}
    problem = payload["outcomes"][1]["problem"]
    assert (problem["status"], problem["error"], problem["pointer"]) == (422, "SyntaxProblem", "/text")
    assert problem["place"] == {"line": 1, "column": 8, "length": 1}
    assert subscriptions.version() == version + 1, "one version for the stream"
    created = payload["outcomes"][2]["id"]
    assert ana.get(f"/v1/subscriptions/{created}").json()["text"] == "price < 2"
    again = send(ana, {"text": "price < 1", "id": "one"}, {"text": "price < 1", "id": "one"})
    assert (again.status_code, again.json()["known"]) == (200, 2)
    taken = send(ana, {"text": "price < 3", "id": "one"}).json()["outcomes"][0]["problem"]
    assert (taken["status"], taken["error"], taken["pointer"]) == (409, "IdConflict", "/id")
    none = send(ana, b"\n \n")
    assert (none.status_code, none.json()["outcomes"]) == (200, [])


def test_subscribe_lines_may_mix_languages(service: Service) -> None:
    """Including rules, which may search rules of earlier lines; an id is unique across languages."""
    bo = service.caller("bo")
    dependent = "search memory m register m where m.serverPort > 5"
    lines = (
        {"text": RULE, "language": "rules", "id": "memory", "within": "1 hour"},
        {"text": XPATH, "language": "xpath", "id": "x"},
        {"text": "search Nothing n register n", "language": "rules"},
        {"text": dependent, "language": "rules", "within": "1 hour"},
        {"text": GQL, "language": "gql", "within": "10 minutes", "id": "g"},
        {"text": RULE, "language": "rules"},
        {"text": "a = 1", "id": "memory"},
        {"text": RULE, "language": "rules", "id": "x"},
        {"text": RULE, "language": "rules", "id": "memory", "within": "1 hour"},
        {"text": "a = 1", "language": "prose"},
    )
    outcomes = send(bo, *lines).json()["outcomes"]
    assert [each.get("new") for each in outcomes] == [
        *(True, True, None, True, True, True),
        *(None, None, False, None),
    ]
    errors = [each["problem"]["error"] for each in outcomes if "problem" in each]
    assert errors == ["CheckProblem", "IdConflict", "IdConflict", "InputError"]
    read = bo.get("/v1/subscriptions/g").json()
    assert (read["language"], read["text"], read["within"]) == ("gql", GQL, "10 minutes")
    assert bo.get("/v1/subscriptions/memory").json()["language"] == "rules"
    assert {each["new"] for each in send(bo, lines[0], lines[1], lines[4]).json()["outcomes"]} == {False}
    bo.post("/v1/subscriptions/x/pause")
    paused = send(bo, lines[1]).json()["outcomes"][0]["problem"]
    assert (paused["status"], "is paused" in paused["what"]) == (409, True)


def test_subscribe_id_of_paused_rule_stays_taken(service: Service) -> None:
    """For single requests and for lines; an error about an id points to the id."""
    mo, ny = service.caller("mo"), service.caller("ny")
    rule = {"text": RULE, "language": "rules", "id": "mo-1"}
    assert mo.post("/v1/subscriptions", json=rule).status_code == 201
    taken = ny.post("/v1/subscriptions", json=rule | {"text": f"{RULE}5"}).json()
    assert (taken["error"], taken["pointer"]) == ("IdConflict", "/id")
    mo.post("/v1/subscriptions/mo-1/pause")
    for other in (ny, mo):
        alone = other.post("/v1/subscriptions", json=rule | {"text": f"{RULE}5"})
        [line] = send(other, rule | {"text": f"{RULE}5"}).json()["outcomes"]
        assert (alone.status_code, alone.json()["pointer"]) == (409, "/id")
        assert line["problem"] | {"instance": "/v1/subscriptions"} == alone.json()
    assert len(mo.get("/v1/subscriptions").json()["subscriptions"]) == 1
    assert mo.post("/v1/subscriptions/mo-1/resume").json()["text"] == RULE
    unprintable = ny.post("/v1/subscriptions", json=rule | {"id": "two\nlines"}).json()
    assert unprintable["pointer"] == "/id"


WRONG: tuple[dict[str, Any], ...] = (
    {"text": "price < 200 and"},
    {"text": "price < 1", "language": "prose"},
    {"text": "price < 1", "language": None},
    {"text": XPATH},
    {"text": "//a[", "language": "xpath"},
    {"text": "SELECT", "language": "gql"},
    {"text": "search Nothing n register n", "language": "rules"},
    {"text": "search", "language": "rules"},
    {"text": " and ".join(f"(a = {n} or b = {n})" for n in range(6))},
    {"text": "a = '\0'"},
    {"text": "\0"},
    {"text": ""},
    {"text": 5},
    {"text": "a = 1", "id": ""},
    {"text": "a = 1", "id": "two\nlines"},
    {"text": "a = 1", "id": True},
    {"text": "a = 1", "id": "i" * 501},
    {"text": "a = 1", "within": "soon"},
    {"text": "a = 1", "within": "0 s"},
    {"text": "a = 1", "within": 10},
    {"text": "a = 1", "subscriber": "somebody"},
    {"text": "a = 1", "subscriber": ["cy"]},
    {"text": "a = 1", "language": "l" * 101},
    {"text": "a = 1", "witihn": "10 minutes"},
    {"texts": "a = 1"},
    {"a/b~c": 1},
    {"language": "xpath"},
    {},
)


def test_subscribe_lines_errors_equal_those_of_single_requests(service: Service) -> None:
    cy = service.caller("cy")
    together = send(cy, *WRONG).json()["outcomes"]
    for request, outcome in zip(WRONG, together, strict=True):
        alone = cy.post("/v1/subscriptions", json=request)
        assert alone.status_code == outcome["problem"]["status"], request
        assert alone.json() == outcome["problem"] | {"instance": "/v1/subscriptions"}, request
    assert cy.get("/v1/subscriptions").json()["subscriptions"] == []


def test_subscribe_lines_not_objects_are_rejected(service: Service) -> None:
    lines = (b"{", b" [", b'"price < 1"', b'{"text": NaN}', b'{"text": "a = 1", "text": "a = 2"}', b"\xff")
    payload = send(service.caller("cy"), *lines).json()
    problems = [each["problem"] for each in payload["outcomes"]]
    errors = [each["error"] for each in problems]
    assert errors == ["DecodeProblem", "InputError", "InputError", *["DecodeProblem"] * 3]
    assert problems[1]["received"] == "an array"
    assert problems[1]["hint"] == "one object per line, without an array around them"
    assert [each["accepted"] for each in problems[1:3]] == ["a JSON object"] * 2


def test_subscribe_lines_for_other_subscriber_require_administrator(service: Service) -> None:
    di, root = service.caller("di"), service.root
    own = send(di, {"text": "a = 1", "id": "di-1", "subscriber": "di"}, {"text": "a = 2", "subscriber": "ed"})
    assert [each.get("problem", {}).get("status") for each in own.json()["outcomes"]] == [None, 403]
    assert own.json()["outcomes"][1]["problem"]["pointer"] == "/subscriber"
    named = send(
        root,
        {"text": "a = 1", "subscriber": "ed", "id": "ed-1"},
        {"text": "a = 1"},
        {"text": "a = 1", "subscriber": "fy", "id": "fy-1"},
        {"text": "a = 1", "subscriber": "fy", "id": "di-1"},
    ).json()["outcomes"]
    assert [each.get("problem", {}).get("what") for each in named] == [
        None,
        "the subscriber is missing",
        None,
        "the id 'di-1' is taken",
    ]
    assert [one.id for one in service.tidings.subscriptions("fy")] == ["fy-1"]
    assert send(service.shop, {"text": "a = 1"}).status_code == 403
    with httpx.Client(base_url=service.address, trust_env=False) as anonymous:
        assert send(anonymous, {"text": "a = 1"}).status_code == 401


def test_subscribe_lines_token_revoked_during_upload_is_rejected(service: Service) -> None:
    late = service.caller("late")
    [token] = [one for one in service.tidings.store.tokens.list() if one.name == "late"]

    def lines() -> Iterator[bytes]:
        yield b'{"text": "a = 1"}\n'
        service.tidings.store.tokens.revoke(token.id)
        yield b'{"text": "a = 2"}\n'

    refused = late.post("/v1/subscriptions", content=lines(), headers=LINES)
    assert (refused.status_code, refused.json()["what"]) == (401, "invalid token")
    assert service.tidings.subscriptions("late") == []


def test_subscribe_lines_over_limit_per_subscriber_are_rejected(service: Service) -> None:
    """Paused ones and rules count, rejected and existing ones do not; each subscriber has a separate limit."""
    gu, root = service.caller("gu"), service.root
    first = [{"text": f"a = {n}", "id": f"gu-{n}"} for n in range(17)]
    rules = [{"text": RULE, "language": "rules", "id": f"gu-r{n}"} for n in range(4)]
    bad = {"text": "search", "language": "rules"}
    assert send(gu, *first).json()["subscribed"] == 17
    gu.post("/v1/subscriptions/gu-0/pause")
    payload = send(gu, first[1], bad, *rules).json()
    assert (payload["subscribed"], payload["known"], payload["refused"]) == (3, 1, 2)
    over = payload["outcomes"][-1]["problem"]
    assert (over["status"], over["error"], over["accepted"]) == (
        422,
        "LimitExceeded",
        "20 for each subscriber",
    )
    more = [{"text": "b = 1", "subscriber": name} for name in ("gu", "hy", "gu")]
    assert [each.get("new") for each in send(root, *more).json()["outcomes"]] == [None, True, None]
    gu.delete("/v1/subscriptions/gu-3")
    assert [each.get("new") for each in send(gu, *more[:1], *more[:1]).json()["outcomes"]] == [True, None]
    assert gu.post("/v1/subscriptions", json={"text": "a = 1"}).json()["error"] == "LimitExceeded"


def test_subscribe_lines_body_over_limit_is_rejected(service: Service) -> None:
    iv = service.caller("iv")
    many = send(iv, *[b"{}"] * 42)
    assert (many.status_code, many.json()["accepted"]) == (413, "40")
    long = send(iv, {"text": "a" * 100_000})
    assert (long.status_code, long.json()["accepted"]) == (413, "100,000 bytes")
    wide = send(iv, {"text": f"a in ({', '.join(map(str, range(1_000)))})"})
    assert wide.status_code == 201, "one that is too long for a request of one is not too long for many"
    packed = send(iv, {"text": "a = 1"}, **{"Content-Encoding": "gzip"})
    assert packed.status_code == 415


@pytest.mark.parametrize("kind", ["application/jsonl", "application/x-jsonlines; charset=utf-8"])
def test_subscribe_lines_media_type_aliases_answer_in_lines(service: Service, kind: str) -> None:
    sent = {"Content-Type": kind, "Accept": "application/x-ndjson"}
    answer = send(service.caller("jo"), {"text": "a = 1", "id": "jo"}, {"text": "a ="}, **sent)
    assert (answer.status_code, answer.headers["content-type"]) == (207, "application/x-ndjson")
    first, second = map(json.loads, answer.text.splitlines())
    assert first["id"] == "jo" and second["problem"]["error"] == "SyntaxProblem"


def test_subscribe_lines_large_answer_is_spooled(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "IN_MEMORY", 100)
    monkeypatch.setattr(bulk, "PIECE", 64)
    answer = send(service.caller("ko"), *[{"text": f"a = {n} and"} for n in range(20)])
    assert [each["line"] for each in answer.json()["outcomes"]] == [*range(1, 21)]
    assert int(answer.headers["content-length"]) == len(answer.content) > 5_000


def test_subscribe_lines_after_store_failure_keep_committed_batches(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request answers 503; a client that sends it again, with ids, creates each subscription once."""
    monkeypatch.setattr(bulk_subscribe, "SUBSCRIBE_CHUNK", 2)
    store, li = service.tidings.store, service.caller("li")
    offer, lines = store.subscriptions.offer, [{"text": f"a = {n}", "id": f"li-{n}"} for n in range(5)]
    left = [offer, offer]

    def failing(*arguments: Any) -> Any:
        if not left:
            raise StoreError("it is gone")
        return left.pop()(*arguments)

    with monkeypatch.context() as broken:
        broken.setattr(store.subscriptions, "offer", failing)
        assert send(li, *lines).status_code == 503
    assert store.subscriptions.count("li") == 4
    payload = send(li, *lines).json()
    assert (payload["subscribed"], payload["known"]) == (1, 4)


def test_openapi_describes_single_and_bulk_subscribe(service: Service) -> None:
    operation = service.root.get("/v1/openapi.json").json()["paths"]["/v1/subscriptions"]["post"]
    assert {"application/json", "application/x-ndjson"} <= operation["requestBody"]["content"].keys()
    assert {"200", "201", "207", "409", "413"} <= operation["responses"].keys()
    refers = json.dumps(operation["responses"]["201"]["content"]["application/json"])
    assert "schemas/SubscribeOutcomes" in refers and "schemas/Subscription" in refers
    members = service.root.get("/v1/openapi.json").json()["components"]["schemas"]["NewSubscription"]
    assert members["properties"].keys() == MAX_LENGTHS.keys()


def test_subscribe_with_state_paused_alone_and_in_lines_is_paused(service: Service) -> None:
    di, request = service.caller("di"), {"text": "a = 1", "state": "paused"}
    alone = di.post("/v1/subscriptions", json=request)
    assert (alone.status_code, alone.json()["state"]) == (201, "paused")
    payload = send(
        di,
        request | {"id": "p-1"},
        request | {"state": "active", "id": "p-2"},
        request | {"state": None},
        request,
    ).json()
    assert payload["subscribed"] == 4
    listed = di.get("/v1/subscriptions", params={"state": "paused"}).json()["subscriptions"]
    assert {each["id"] for each in listed} == {alone.json()["id"], "p-1", payload["outcomes"][3]["id"]}
    again = di.post("/v1/subscriptions", json=request | {"id": "p-1"})
    assert (again.status_code, again.json()["state"]) == (200, "paused")
    wrong = di.post("/v1/subscriptions", json=request | {"state": "asleep"}).json()
    [line] = send(di, request | {"state": "asleep"}).json()["outcomes"]
    for problem in (wrong, line["problem"]):
        assert (problem["pointer"], problem["accepted"]) == ("/state", "'active' or 'paused'")
    other = di.post("/v1/subscriptions", json=request | {"id": "p-2"})
    assert (other.status_code, other.json()["error"]) == (409, "IdConflict")


def test_subscribe_many_invalid_lines_only_first_have_hints(
    service: Service, guesses: Guesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work for hints is bounded, whatever the number of mistakes."""
    monkeypatch.setattr(suggest, "MOST", 100)
    slips = [{"text": f"price < {n} adn b = 1"} for n in range(20)]
    mistyped = [
        {"txt": "a = 1"},
        {"language": "xpth", "text": "//a"},
        {"language": "xpath", "text": "//a[contans(b, 1)]"},
    ]
    payload = send(service.caller("ana"), *slips, *mistyped, *slips[:17]).json()
    assert (payload["refused"], guesses.explained) == (40, 4)
    problems = [one["problem"] for one in payload["outcomes"]]
    assert [one.get("hint") for one in problems[:4]] == ["did you mean 'and'?"] * 4
    assert problems[20]["hint"] == "did you mean 'text'?", "lines are parsed before texts are checked"
    assert not any("did you mean" in one["message"] for one in problems[4:20] + problems[21:])
    assert {one["place"]["column"] for one in problems if one["error"] == "SyntaxProblem"} == {11, 12}
    assert guesses.compared <= 100
    again = send(service.caller("ana"), mistyped[0]).json()["outcomes"][0]["problem"]
    assert again["hint"] == "did you mean 'text'?", "each request has its own"


def test_subscribe_lines_outcomes_have_warnings(service: Service) -> None:
    ana = service.caller("ana")
    impossible, possible = {"text": "/a and /b", "language": "xpath"}, {"text": XPATH, "language": "xpath"}
    first, second = send(ana, impossible, possible).json()["outcomes"]
    assert first["new"] and first["warnings"][0]["what"].startswith("no document can match")
    assert first["warnings"][0]["place"] == {"line": 1, "column": 8, "length": 2}
    assert second["new"] and second.get("warnings") is None
