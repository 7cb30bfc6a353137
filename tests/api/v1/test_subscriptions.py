"""Subscriptions over HTTP, on a real server: all languages, states, health and owners."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.servers.api_server import Service, served_api
from tests.support.servers.provider_server import DOC, HOST, SCHEMA, SMALL
from tidings.api.limits import Limits
from tidings.delivery.sql.cursors import RunOutcome
from tidings.delivery.sql.destination_store import Destination
from tidings.metadata.provider.provider import Provider
from tidings.model import Reason
from tidings.service.tidings import Tidings
from tidings.store.encoding import MatchRow
from tidings.store.subscriptions.registry import SubscriptionChanges

XPATH = '//stock[symbol = "YHOO" and price > 50]'
GQL = "SELECT ?x WHERE (?x, rss:title, ?t) AND ?t contains 'cats'"
RULE = "search CycleProvider c register c where c.serverInformation.memory > 64"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    limits = Limits(subscriptions=60, request=20_000, clauses=16)
    with Tidings(tmp_path_factory.mktemp("home")) as tidings, served_api(tidings, limits) as running:
        provider = Provider(tidings.store)
        provider.load_schema(SCHEMA.read_bytes(), "text/turtle")
        provider.register(DOC, HOST.read_bytes(), "application/rdf+xml")
        yield running


def create(client: httpx.Client, text: str, language: str = "predicates", **more: Any) -> httpx.Response:
    return client.post("/v1/subscriptions", json={"language": language, "text": text} | more)


def test_subscription_lifecycle_is_same_in_all_languages(service: Service) -> None:
    ana = service.caller("ana")
    for language, text, through in (
        ("predicates", "price < 200 and period = 'XVI'", "period"),
        ("xpath", XPATH, "/symbol"),
        ("gql", GQL, "rss:title"),
        ("rules", RULE, "CycleProvider"),
    ):
        created = create(ana, text, language, within="10 minutes")
        assert created.status_code == 201, created.text
        payload = created.json()
        assert (payload["subscriber"], payload["language"], payload["text"]) == ("ana", language, text)
        assert (payload["within"], payload["state"]) == ("10 minutes", "active")
        assert payload["predicates"] >= 1 and through in payload["reached_through"]
        read = ana.get(created.headers["location"]).json()
        assert {**payload, "predicates": None, "reached_through": None, "warnings": None} == read
        paused = ana.post(f"{created.headers['location']}/pause").json()
        assert paused["state"] == "paused" and paused["paused"]
        assert ana.post(f"{created.headers['location']}/pause").json() == paused
        resumed = ana.post(f"{created.headers['location']}/resume").json()
        assert (resumed["state"], resumed["text"], resumed["within"]) == ("active", text, "10 minutes")
        assert ana.delete(created.headers["location"]).status_code == 204
        assert ana.get(created.headers["location"]).status_code == 404
        assert ana.delete(created.headers["location"]).status_code == 404


def test_subscription_change_keeps_id_and_is_one_version(service: Service) -> None:
    ana, subscriptions = service.caller("ana"), service.tidings.store.subscriptions
    create(ana, "price < 200", id="change")
    version = subscriptions.version()
    put = ana.put("/v1/subscriptions/change", json={"text": "price < 100"}).json()
    assert (put["id"], put["text"], put["reached_through"]) == ("change", "price < 100", "price")
    changes = subscriptions.changes(version)
    assert (changes.version, changes.removed, [one.text for one in changes.added]) == (
        version + 1,
        ["change"],
        ["price < 100"],
    )
    patched = ana.patch("/v1/subscriptions/change", json={"within": "1 hour"}).json()
    assert (patched["text"], patched["within"]) == ("price < 100", "1 hour")
    assert ana.patch("/v1/subscriptions/change", json={"text": "price < 50"}).json()["within"] == "1 hour"
    assert ana.patch("/v1/subscriptions/change", json={"within": None}).json()["within"] is None
    ana.post("/v1/subscriptions/change/pause")
    version = subscriptions.version()
    ana.patch("/v1/subscriptions/change", json={"text": "price < 25"})
    odd = ana.patch("/v1/subscriptions/change", json={"text": "price = '\x00'"})
    assert (odd.status_code, odd.json()["pointer"]) == (422, "/text"), (
        "no database stores it, not even as paused"
    )
    assert subscriptions.version() == version, "to the stream nothing has happened"
    ana.post("/v1/subscriptions/change/resume")
    assert subscriptions.changes(version) == SubscriptionChanges(
        version + 1, [subscriptions.find("change")], []
    )  # type: ignore[list-item]
    assert subscriptions.find("change").text == "price < 25"  # type: ignore[union-attr]
    refused = ana.put("/v1/subscriptions/change", json={"text": "price <"})
    assert (refused.status_code, refused.json()["pointer"]) == (422, "/text")
    assert ana.get("/v1/subscriptions/change").json()["text"] == "price < 25"


def test_rule_change_notifies_of_entered_and_left_resources(service: Service) -> None:
    root, store = service.root, service.tidings.store
    assert create(root, RULE, "rules", id="large", subscriber="ro").status_code == 201
    smaller = RULE.replace("> 64", "> 640")
    assert root.put("/v1/subscriptions/large", json={"text": smaller}).json()["text"] == smaller
    assert [one.kind for one in store.notifications.read("ro")] == ["entered", "left"]
    root.put("/v1/subscriptions/large", json={"text": RULE})
    root.post("/v1/subscriptions/large/pause")
    assert store.metadata.rules_named(["large"]) == {}
    Provider(store).register(DOC, SMALL.read_bytes(), "application/rdf+xml")
    root.post("/v1/subscriptions/large/resume")
    Provider(store).register(DOC, HOST.read_bytes(), "application/rdf+xml")
    kinds = [one.kind for one in store.notifications.read("ro")]
    assert kinds == ["entered", "left", "entered", "left", "entered"], (
        "resources that left while paused are reported on resume"
    )
    assert create(root, "price < 5", id="large", subscriber="ro").status_code == 409
    assert create(root, RULE, "rules", id="large", subscriber="other").status_code == 409
    on_top = "search large l register l where l.serverPort > 5"
    assert create(root, on_top, "rules", id="top", subscriber="ro").status_code == 201
    refused = root.post("/v1/subscriptions/large/pause")
    assert refused.status_code == 422 and "searched by another" in refused.json()["what"]


def test_subscribe_same_id_again_is_idempotent(service: Service) -> None:
    ana = service.caller("ana")
    assert create(ana, "price < 7", id="mine").status_code == 201
    assert create(ana, "price < 7", id="mine").status_code == 200
    taken = create(ana, "price < 8", id="mine")
    assert (taken.status_code, taken.json()["error"]) == (409, "IdConflict")
    ana.post("/v1/subscriptions/mine/pause")
    assert create(ana, "price < 7", id="mine").status_code == 409
    odd = create(ana, "price < 7", id="a/b c?d")
    assert odd.headers["location"] == "/v1/subscriptions/a%2Fb%20c%3Fd"
    assert ana.post(f"{odd.headers['location']}/pause").json()["id"] == "a/b c?d"
    assert ana.delete(odd.headers["location"]).status_code == 204


def test_subscription_id_ending_like_action_is_reached_percent_encoded(service: Service) -> None:
    ana = service.caller("ana")
    for id in ("a", "a/pause"):
        create(ana, "price < 7", id=id)
    assert ana.get("/v1/subscriptions/a%2Fpause").json()["id"] == "a/pause"
    assert ana.post("/v1/subscriptions/a%2Fpause").status_code == 405
    assert ana.post("/v1/subscriptions/a%2Fpause/pause").json()["id"] == "a/pause"
    other = ana.delete("/v1/subscriptions/a/pause")
    assert (other.status_code, other.headers["allow"]) == (405, "POST")
    assert ana.get("/v1/subscriptions/a").json()["state"] == "active"


@pytest.mark.parametrize(
    ("body", "status", "pointer", "column"),
    [
        ({"text": "price < 200 and"}, 422, "/text", 16),
        ({"text": "/a/b[2]", "language": "xpath"}, 422, "/text", 6),
        ({"text": "SELECT", "language": "gql"}, 422, "/text", None),
        ({"text": "search Nothing n register n", "language": "rules"}, 422, "/text", 8),
        ({"text": " or ".join(f"(a{i} = 1 and b{i} = 2)" for i in range(20))}, 422, "/text", None),
        ({"text": "price < 5", "language": "sql"}, 422, "/language", None),
        ({"text": "price < 5", "within": "soon"}, 422, "/within", None),
        ({"text": "price < 5", "within": 5}, 422, "/within", None),
        ({"text": "price < 5", "id": ""}, 422, "/id", None),
        ({"text": "price < 5", "id": "\x00"}, 422, "/id", None),
        ({"text": "price = '\x00'"}, 422, "/text", None),
        ({"text": "price < 5", "subscriber": "bo"}, 403, "/subscriber", None),
        ({"text": 5}, 422, "/text", None),
        ({}, 422, "/text", None),
        ({"text": "price < 5", "color": "red"}, 422, "/color", None),
        ({"text": "x" * 30_000}, 413, None, None),
    ],
)
def test_invalid_subscription_error_has_pointer_and_place(
    service: Service, body: dict[str, Any], status: int, pointer: str | None, column: int | None
) -> None:
    answer = service.caller("ana").post("/v1/subscriptions", json=body)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    problem = answer.json()
    assert problem.get("pointer") == pointer
    if column is not None:
        assert problem["place"]["column"] == column


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "'text' is missing"),
        (
            {"txt": "price < 9"},
            "there is no member 'txt'; accepted: language, text, id, within, subscriber, state; did you mean 'text'?",
        ),
        ({"text": 5}, "'text' is invalid; received 5; accepted: a text"),
        (
            {"text": "price < 5", "langauge": "xpath"},
            "there is no member 'langauge'; accepted: language, text, id, within, subscriber, state; "
            "did you mean 'language'?",
        ),
        (
            [],
            "the body is not a JSON object; received an array; accepted: a JSON object; "
            "send several as JSON Lines, one on each line, with Content-Type: application/x-ndjson",
        ),
    ],
)
def test_invalid_member_error_states_received_and_accepted(service: Service, body: Any, message: str) -> None:
    assert service.caller("ana").post("/v1/subscriptions", json=body).json()["message"] == message


def test_subscriptions_invalid_parameter_error_states_accepted(service: Service) -> None:
    ana = service.caller("ana")
    problem = ana.get("/v1/subscriptions", params={"state": "pausd"}).json()
    assert (problem["where"], problem["received"], problem["accepted"]) == (
        "state",
        "pausd",
        "'active' or 'paused'",
    )
    assert ana.get("/v1/subscriptions", params={"limit": "ten"}).json()["accepted"] == "a whole number"
    assert ana.get("/v1/subscriptions", params={"limit": 0}).json()["accepted"] == "1 or more"


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"{", 400), (b'{"text": NaN}', 400), (b"[" * 300, 400), (b"\xff", 400), (b"[]", 422), (b"", 422)],
    ids=["cut", "NaN", "deep", "no UTF-8", "a list", "nothing"],
)
def test_subscribe_malformed_body_is_rejected(service: Service, body: bytes, status: int) -> None:
    headers = {"Content-Type": "application/json"}
    answer = service.caller("ana").post("/v1/subscriptions", content=body, headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    text = service.caller("ana").post("/v1/subscriptions", content=b'{"text": "price < 5"}')
    assert text.status_code == 415, "a form of a foreign page could send that"


@pytest.mark.parametrize("kind", ["application/json", "application/x-ndjson"])
def test_subscribe_invalid_json_error_states_json_object(service: Service, kind: str) -> None:
    """The error is about the request: an object is expected, and nothing was published."""
    answer = service.caller("ana").post("/v1/subscriptions", content=b"hello", headers={"Content-Type": kind})
    payload = answer.json()
    problem = payload["outcomes"][0]["problem"] if "outcomes" in payload else payload
    assert (problem["what"], problem["accepted"]) == ("expected a value", "a JSON object")
    assert problem["title"] == "The bytes do not match their media type"


def test_subscription_of_other_subscriber_answers_404(service: Service) -> None:
    ana, bo = service.caller("ana"), service.caller("bo")
    create(ana, "price < 9", id="anas")
    for foreign in (
        bo.get("/v1/subscriptions/anas"),
        bo.put("/v1/subscriptions/anas", json={"text": "price < 1"}),
        bo.patch("/v1/subscriptions/anas", json={"within": None}),
        bo.post("/v1/subscriptions/anas/pause"),
        bo.post("/v1/subscriptions/anas/resume"),
        bo.delete("/v1/subscriptions/anas"),
    ):
        none = foreign.request.url.path.replace("anas", "none")
        absent = bo.request(
            foreign.request.method, none, content=foreign.request.content, headers=foreign.request.headers
        )
        assert (foreign.status_code, absent.status_code) == (404, 404)
        assert foreign.json()["what"] == absent.json()["what"]
    assert bo.get("/v1/subscriptions").json()["subscriptions"] == []
    assert bo.get("/v1/subscriptions", params={"subscriber": "ana"}).status_code == 403
    assert ana.get("/v1/subscriptions/anas").json()["text"] == "price < 9"
    assert service.root.post("/v1/subscriptions/anas/pause").json()["state"] == "paused"
    assert service.shop.get("/v1/subscriptions").status_code == 403


def test_subscriptions_list_is_paginated_and_filtered(service: Service) -> None:
    cy = service.caller("cy")
    for number in range(5):
        create(cy, f"price < {number} and title contains '100%'", id=f"cy-{number}")
    create(cy, XPATH, "xpath", id="cy-x")
    create(service.root, RULE, "rules", id="cy-rule", subscriber="cy")
    cy.post("/v1/subscriptions/cy-2/pause")

    def ids(**params: Any) -> list[str]:
        listed, after = list[str](), ""
        while after is not None:
            page = cy.get("/v1/subscriptions", params=params | {"after": after}).json()
            listed += [one["id"] for one in page["subscriptions"]]
            after = page["next"]
        return listed

    everything = ["cy-0", "cy-1", "cy-2", "cy-3", "cy-4", "cy-rule", "cy-x"]
    assert ids() == ids(limit=1) == ids(limit=3) == ids(limit=7) == everything
    assert ids(q="YHOO") == ids(language="xpath") == ["cy-x"]
    assert (ids(state="paused"), ids(language="rules"), ids(q="CY-3")) == (["cy-2"], ["cy-rule"], ["cy-3"])
    assert len(ids(q="100%")) == 5 and ids(q="10_%") == []
    root = service.root.get("/v1/subscriptions", params={"subscriber": "cy", "limit": 1_000}).json()
    assert [one["id"] for one in root["subscriptions"]] == everything
    assert cy.get("/v1/subscriptions", params={"state": "asleep"}).status_code == 400
    assert cy.get("/v1/subscriptions", params={"q": "\x00"}).status_code == 400


def test_subscription_health_counts_matches(service: Service) -> None:
    di, store = service.caller("di"), service.tidings.store
    create(di, "price < 9", id="di-1")
    fresh = di.get("/v1/subscriptions/di-1").json()["health"]
    assert fresh == {
        "matched": 0,
        "last_matched": None,
        "delivered": 0,
        "last_success": None,
        "consecutive_failures": 0,
        "last_error": None,
    }
    why = (Reason("price < 9", 4, "/price"),)
    store.notifications.commit_batch("test", 1, [MatchRow(f"p-{n}", "di-1", "di", why) for n in range(3)])
    health = di.get("/v1/subscriptions").json()["subscriptions"][0]["health"]
    assert (health["matched"], health["last_matched"]) == (3, store.notifications.read("di")[-1].time)


def test_subscription_health_counts_deliveries_and_failures(service: Service) -> None:
    fy, store = service.caller("fy"), service.tidings.store
    create(fy, "price < 9", id="fy-1")
    store.destinations.add(Destination("", "fy", None, "webhook", "http://127.0.0.1:9/", "127.0.0.1"))
    why = (Reason("price < 9", 4, "/price"),)
    store.notifications.commit_batch("test", 2, [MatchRow(f"p-{n}", "fy-1", "fy", why) for n in range(3)])
    for progress in (
        RunOutcome(2, 2),
        RunOutcome(2, 0, "no answer", 0.0),
        RunOutcome(2, 0, "still none", 60.0),
    ):
        store.delivery_cursors.wake(10)
        [lane] = [
            one for one in store.delivery_cursors.take(10, timedelta(minutes=1)) if one.subscriber == "fy"
        ]
        assert store.delivery_cursors.finish([(lane, progress)]) == [True]
    health = fy.get("/v1/subscriptions/fy-1").json()["health"]
    assert (health["matched"], health["delivered"], health["consecutive_failures"]) == (3, 2, 2)
    assert health["last_success"] and health["last_error"] == "still none"


def test_subscribe_over_limit_is_rejected(service: Service) -> None:
    ed = service.caller("ed")
    for number in range(60):
        assert create(ed, "price < 5", id=f"ed-{number}").status_code == 201
    for language, text in (("predicates", "price < 5"), ("rules", RULE)):
        refused = create(ed, text, language)
        assert (refused.status_code, refused.json()["error"]) == (422, "LimitExceeded")
        assert refused.json()["accepted"] == "60 for each subscriber"
    ed.delete("/v1/subscriptions/ed-0")
    assert create(ed, "price < 5").status_code == 201


def test_paused_subscription_keeps_feed(tmp_path: Path) -> None:
    with Tidings(tmp_path) as tidings:
        tidings.subscribe("ana", "price < 5", id="s-1")
        feeds = tidings.feeds_at("http://127.0.0.1:1")
        [(_, token)] = feeds.list_with_tokens("ana")
        token = token or feeds.addresses.tokens("ana", ["s-1"])["s-1"]
        tidings.subscribing().pause("s-1")
        assert [one.id for one, _ in feeds.list_with_tokens("ana")] == ["s-1"]
        assert feeds.open(token) is not None


@pytest.mark.parametrize(
    ("language", "text"), [("predicates", "price < 7"), ("xpath", "//a"), ("rules", RULE)]
)
def test_created_subscription_equals_stored_one(service: Service, language: str, text: str) -> None:
    """The store is not read for a new id; a rule may have matched at once."""
    created = create(service.root, text, language, subscriber="nia", within="10 minutes")
    stored = service.root.get(created.headers["location"]).json()
    payload = created.json()
    assert payload["predicates"] is not None and stored["predicates"] is None
    assert {**payload, "predicates": None, "reached_through": None, "warnings": None} == stored


def test_subscription_answer_has_warnings_only_when_text_is_parsed(service: Service) -> None:
    empty = "price > 6 and price < 4"
    ana = service.caller("ana")
    for id in (None, "s-warned"):
        created = ana.post("/v1/subscriptions", json={"text": empty, "id": id}).json()
        assert ["no single value of price" in one["what"] for one in created["warnings"]] == [True]
    at = f"/v1/subscriptions/{created['id']}"
    assert ana.get(at).json()["warnings"] is None, "its text was not read"
    assert ana.patch(at, json={"text": "price < 4"}).json()["warnings"] == []
    assert len(ana.put(at, json={"text": empty}).json()["warnings"]) == 1
