"""Many subscriptions over HTTP, one a line, on a real server: each is answered as it would be alone."""

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
    with Tidings(tmp_path_factory.mktemp("home")) as tidings, served_api(tidings, limits) as made:
        provider = Provider(tidings.store)
        provider.load_schema(SCHEMA.read_bytes(), "text/turtle")
        provider.register(DOC, HOST.read_bytes(), "application/rdf+xml")
        yield made


def send(client: httpx.Client, *lines: Any, **more: str) -> httpx.Response:
    """Values as lines; what is a text or bytes already is sent as it is."""
    written = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in lines]
    return client.post("/v1/subscriptions", content=b"\n".join(written), headers=LINES | more)


@pytest.mark.parametrize("kind", ["application/json", "application/x-www-form-urlencoded", "text/plain", ""])
def test_json_lines_sent_as_json_are_refused_with_a_hint(service: Service, kind: str) -> None:
    ana, headers = service.caller("ana"), {"Content-Type": kind} if kind else {}
    for lines in (b'{"text": "a = 1"}\n{"text": "a = 2"}\n', b'\n{"text": "a = 1"}\r\n\r\n{"text": '):
        told = ana.post("/v1/subscriptions", content=lines, headers=headers).json()
        assert told["status"] == (400 if kind == "application/json" else 415)
        assert told["hint"] == (
            "this looks like JSON Lines; send several as JSON Lines, one on each line, "
            "with Content-Type: application/x-ndjson"
        )
        assert told["hint"] in told["message"]
    for other in (
        b'{"text":\n"a = 1"}}',
        b'{"text": "a = 1"}}',
        b'"a"\n{"text": "a = 1"}',
        b"{}\nx",
        b"\xff\n{",
    ):
        hint = ana.post("/v1/subscriptions", content=other, headers=headers).json().get("hint", "")
        assert "lines" not in hint, other


def test_too_large_subscription_request_has_a_hint_at_lines(service: Service) -> None:
    told = service.caller("ana").post("/v1/subscriptions", json={"text": "x" * 3_000}).json()
    assert (told["status"], told["accepted"]) == (413, "2,000 bytes")
    assert (
        told["hint"]
        == "send several as JSON Lines, one on each line, with Content-Type: application/x-ndjson"
    )


def test_an_outcome_for_each_line(service: Service) -> None:
    ana, kept = service.caller("ana"), service.tidings.store.subscriptions
    version = kept.version()
    lines = ({"text": "price < 1", "id": "one"}, b"", {"text": "price <"}, {"text": "price < 2"})
    some = send(ana, *lines)
    assert some.status_code == 207
    told = some.json()
    assert (told["subscribed"], told["known"], told["refused"]) == (2, 0, 1)
    assert [one["line"] for one in told["outcomes"]] == [1, 3, 4], "an empty line counts, and is none"
    assert told["outcomes"][0] == {"line": 1, "id": "one", "new": True}
    problem = told["outcomes"][1]["problem"]
    assert (problem["status"], problem["error"], problem["pointer"]) == (422, "SyntaxProblem", "/text")
    assert problem["place"] == {"line": 1, "column": 8, "length": 1}
    assert kept.version() == version + 1, "one version for the stream"
    made = told["outcomes"][2]["id"]
    assert ana.get(f"/v1/subscriptions/{made}").json()["text"] == "price < 2"
    again = send(ana, {"text": "price < 1", "id": "one"}, {"text": "price < 1", "id": "one"})
    assert (again.status_code, again.json()["known"]) == (200, 2)
    taken = send(ana, {"text": "price < 3", "id": "one"}).json()["outcomes"][0]["problem"]
    assert (taken["status"], taken["error"], taken["pointer"]) == (409, "IdTaken", "/id")
    none = send(ana, b"\n \n")
    assert (none.status_code, none.json()["outcomes"]) == (200, [])


def test_all_languages_in_one_body(service: Service) -> None:
    """Rules, too, which may search those on earlier lines; an id stands for one thing, whatever it is written in."""
    bo = service.caller("bo")
    above = "search memory m register m where m.serverPort > 5"
    lines = (
        {"text": RULE, "language": "rules", "id": "memory", "within": "1 hour"},
        {"text": XPATH, "language": "xpath", "id": "x"},
        {"text": "search Nothing n register n", "language": "rules"},
        {"text": above, "language": "rules", "within": "1 hour"},
        {"text": GQL, "language": "gql", "within": "10 minutes", "id": "g"},
        {"text": RULE, "language": "rules"},
        {"text": "a = 1", "id": "memory"},
        {"text": RULE, "language": "rules", "id": "x"},
        {"text": RULE, "language": "rules", "id": "memory", "within": "1 hour"},
        {"text": "a = 1", "language": "prose"},
    )
    told = send(bo, *lines).json()["outcomes"]
    assert [each.get("new") for each in told] == [
        *(True, True, None, True, True, True),
        *(None, None, False, None),
    ]
    errors = [each["problem"]["error"] for each in told if "problem" in each]
    assert errors == ["CheckProblem", "IdTaken", "IdTaken", "InputError"]
    read = bo.get("/v1/subscriptions/g").json()
    assert (read["language"], read["text"], read["within"]) == ("gql", GQL, "10 minutes")
    assert bo.get("/v1/subscriptions/memory").json()["language"] == "rules"
    assert {each["new"] for each in send(bo, lines[0], lines[1], lines[4]).json()["outcomes"]} == {False}
    bo.post("/v1/subscriptions/x/pause")
    paused = send(bo, lines[1]).json()["outcomes"][0]["problem"]
    assert (paused["status"], "is paused" in paused["what"]) == (409, True)


def test_id_of_a_paused_rule_stays_taken(service: Service) -> None:
    """Whoever asks for it, alone or among others; and what is wrong with an id is told of the id."""
    mo, ny = service.caller("mo"), service.caller("ny")
    rule = {"text": RULE, "language": "rules", "id": "mo-1"}
    assert mo.post("/v1/subscriptions", json=rule).status_code == 201
    taken = ny.post("/v1/subscriptions", json=rule | {"text": f"{RULE}5"}).json()
    assert (taken["error"], taken["pointer"]) == ("IdTaken", "/id")
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


def test_bulk_errors_equal_those_of_single_requests(service: Service) -> None:
    cy = service.caller("cy")
    together = send(cy, *WRONG).json()["outcomes"]
    for asked, told in zip(WRONG, together, strict=True):
        alone = cy.post("/v1/subscriptions", json=asked)
        assert alone.status_code == told["problem"]["status"], asked
        assert alone.json() == told["problem"] | {"instance": "/v1/subscriptions"}, asked
    assert cy.get("/v1/subscriptions").json()["subscriptions"] == []


def test_lines_that_are_no_objects(service: Service) -> None:
    lines = (b"{", b" [", b'"price < 1"', b'{"text": NaN}', b'{"text": "a = 1", "text": "a = 2"}', b"\xff")
    told = send(service.caller("cy"), *lines).json()
    problems = [each["problem"] for each in told["outcomes"]]
    errors = [each["error"] for each in problems]
    assert errors == ["DecodeProblem", "InputError", "InputError", *["DecodeProblem"] * 3]
    assert problems[1]["received"] == "an array"
    assert problems[1]["hint"] == "one object per line, without an array around them"
    assert [each["accepted"] for each in problems[1:3]] == ["a JSON object"] * 2


def test_bulk_lines_for_another_subscriber_need_an_administrator(service: Service) -> None:
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
    with httpx.Client(base_url=service.address, trust_env=False) as nobody:
        assert send(nobody, {"text": "a = 1"}).status_code == 401


def test_bulk_subscribe_with_a_token_revoked_during_upload_is_refused(service: Service) -> None:
    late = service.caller("late")
    [token] = [one for one in service.tidings.store.tokens.list() if one.name == "late"]

    def lines() -> Iterator[bytes]:
        yield b'{"text": "a = 1"}\n'
        service.tidings.store.tokens.revoke(token.id)
        yield b'{"text": "a = 2"}\n'

    refused = late.post("/v1/subscriptions", content=lines(), headers=LINES)
    assert (refused.status_code, refused.json()["what"]) == (401, "invalid token")
    assert service.tidings.subscriptions("late") == []


def test_a_subscriber_has_as_many_as_the_limit_says(service: Service) -> None:
    """Paused ones and rules are counted, what is refused and what is there already is not; others have their own."""
    gu, root = service.caller("gu"), service.root
    first = [{"text": f"a = {n}", "id": f"gu-{n}"} for n in range(17)]
    rules = [{"text": RULE, "language": "rules", "id": f"gu-r{n}"} for n in range(4)]
    bad = {"text": "search", "language": "rules"}
    assert send(gu, *first).json()["subscribed"] == 17
    gu.post("/v1/subscriptions/gu-0/pause")
    told = send(gu, first[1], bad, *rules).json()
    assert (told["subscribed"], told["known"], told["refused"]) == (3, 1, 2)
    over = told["outcomes"][-1]["problem"]
    assert (over["status"], over["error"], over["accepted"]) == (422, "OverLimit", "20 for each subscriber")
    more = [{"text": "b = 1", "subscriber": name} for name in ("gu", "hy", "gu")]
    assert [each.get("new") for each in send(root, *more).json()["outcomes"]] == [None, True, None]
    gu.delete("/v1/subscriptions/gu-3")
    assert [each.get("new") for each in send(gu, *more[:1], *more[:1]).json()["outcomes"]] == [True, None]
    assert gu.post("/v1/subscriptions", json={"text": "a = 1"}).json()["error"] == "OverLimit"


def test_limits_of_a_body(service: Service) -> None:
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
def test_other_names_of_lines_and_answers_in_lines(service: Service, kind: str) -> None:
    sent = {"Content-Type": kind, "Accept": "application/x-ndjson"}
    told = send(service.caller("jo"), {"text": "a = 1", "id": "jo"}, {"text": "a ="}, **sent)
    assert (told.status_code, told.headers["content-type"]) == (207, "application/x-ndjson")
    first, second = map(json.loads, told.text.splitlines())
    assert first["id"] == "jo" and second["problem"]["error"] == "SyntaxProblem"


def test_an_answer_that_is_longer_than_memory_is_meant_for(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "IN_MEMORY", 100)
    monkeypatch.setattr(bulk, "PIECE", 64)
    told = send(service.caller("ko"), *[{"text": f"a = {n} and"} for n in range(20)])
    assert [each["line"] for each in told.json()["outcomes"]] == [*range(1, 21)]
    assert int(told.headers["content-length"]) == len(told.content) > 5_000


def test_bulk_subscribe_after_a_store_failure_keeps_committed_batches(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole is answered with 503 then, and whoever sends it again, with ids, has each once."""
    monkeypatch.setattr(bulk_subscribe, "SUBSCRIBE_CHUNK", 2)
    store, li = service.tidings.store, service.caller("li")
    offer, lines = store.subscriptions.offer, [{"text": f"a = {n}", "id": f"li-{n}"} for n in range(5)]
    left = [offer, offer]

    def failing(*given: Any) -> Any:
        if not left:
            raise StoreError("it is gone")
        return left.pop()(*given)

    with monkeypatch.context() as broken:
        broken.setattr(store.subscriptions, "offer", failing)
        assert send(li, *lines).status_code == 503
    assert store.subscriptions.count("li") == 4
    told = send(li, *lines).json()
    assert (told["subscribed"], told["known"]) == (1, 4)


def test_the_description_has_both_ways(service: Service) -> None:
    operation = service.root.get("/v1/openapi.json").json()["paths"]["/v1/subscriptions"]["post"]
    assert {"application/json", "application/x-ndjson"} <= operation["requestBody"]["content"].keys()
    assert {"200", "201", "207", "409", "413"} <= operation["responses"].keys()
    refers = json.dumps(operation["responses"]["201"]["content"]["application/json"])
    assert "schemas/SubscribeOutcomes" in refers and "schemas/Subscription" in refers
    members = service.root.get("/v1/openapi.json").json()["components"]["schemas"]["NewSubscription"]
    assert members["properties"].keys() == MAX_LENGTHS.keys()


def test_subscription_created_paused_alone_and_in_bulk_is_paused(service: Service) -> None:
    di, one = service.caller("di"), {"text": "a = 1", "state": "paused"}
    alone = di.post("/v1/subscriptions", json=one)
    assert (alone.status_code, alone.json()["state"]) == (201, "paused")
    told = send(
        di, one | {"id": "p-1"}, one | {"state": "active", "id": "p-2"}, one | {"state": None}, one
    ).json()
    assert told["subscribed"] == 4
    listed = di.get("/v1/subscriptions", params={"state": "paused"}).json()["subscriptions"]
    assert {each["id"] for each in listed} == {alone.json()["id"], "p-1", told["outcomes"][3]["id"]}
    again = di.post("/v1/subscriptions", json=one | {"id": "p-1"})
    assert (again.status_code, again.json()["state"]) == (200, "paused")
    wrong = di.post("/v1/subscriptions", json=one | {"state": "asleep"}).json()
    [line] = send(di, one | {"state": "asleep"}).json()["outcomes"]
    for problem in (wrong, line["problem"]):
        assert (problem["pointer"], problem["accepted"]) == ("/state", "'active' or 'paused'")
    other = di.post("/v1/subscriptions", json=one | {"id": "p-2"})
    assert (other.status_code, other.json()["error"]) == (409, "IdTaken")


def test_of_many_that_are_refused_the_first_have_hints(
    service: Service, guesses: Guesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has this machine guess without end what a hundred thousand slips may have meant."""
    monkeypatch.setattr(suggest, "MOST", 100)
    slips = [{"text": f"price < {n} adn b = 1"} for n in range(20)]
    mistyped = [
        {"txt": "a = 1"},
        {"language": "xpth", "text": "//a"},
        {"language": "xpath", "text": "//a[contans(b, 1)]"},
    ]
    told = send(service.caller("ana"), *slips, *mistyped, *slips[:17]).json()
    assert (told["refused"], guesses.explained) == (40, 4)
    problems = [one["problem"] for one in told["outcomes"]]
    assert [one.get("hint") for one in problems[:4]] == ["did you mean 'and'?"] * 4
    assert problems[20]["hint"] == "did you mean 'text'?", "lines are read before texts are looked at"
    assert not any("did you mean" in one["message"] for one in problems[4:20] + problems[21:])
    assert {one["place"]["column"] for one in problems if one["error"] == "SyntaxProblem"} == {11, 12}
    assert guesses.compared <= 100
    again = send(service.caller("ana"), mistyped[0]).json()["outcomes"][0]["problem"]
    assert again["hint"] == "did you mean 'text'?", "each request has its own"


def test_lines_are_answered_with_the_warnings_about_their_texts(service: Service) -> None:
    ana = service.caller("ana")
    impossible, possible = {"text": "/a and /b", "language": "xpath"}, {"text": XPATH, "language": "xpath"}
    first, second = send(ana, impossible, possible).json()["outcomes"]
    assert first["new"] and first["warnings"][0]["what"].startswith("no document can match")
    assert first["warnings"][0]["place"] == {"line": 1, "column": 8, "length": 2}
    assert second["new"] and second.get("warnings") is None
