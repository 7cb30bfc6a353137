"""Publishing over HTTP, on a real server: all kinds, idempotency, and rejected requests."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.api.publishing.publish_request import EVENT, post
from tests.support.guesses import Guesses
from tests.support.paths import ROOT
from tests.support.servers.api_server import Service, served_api
from tidings.core import suggest
from tidings.service.tidings import Tidings

TURTLE = "<http://e.org/a> <http://e.org/p> 'x' ."
TRIG = "@prefix e: <http://e.org/> . e:g { e:a e:p [] } e:h { e:b e:p 'y' }"
RSS = (
    "<rss version='2.0'><channel><title>n</title><link>http://e.org/</link>"
    "<item><title>a</title><guid>1</guid></item><item><title>b</title><guid>2</guid></item></channel></rss>"
)

LOOKS_LIKE_LINES = (
    "this looks like JSON Lines; send several as JSON Lines, one on each line, "
    "with Content-Type: application/x-ndjson"
)


def test_publish_same_id_again_is_idempotent(service: Service) -> None:
    answer = post(service, '{"price": 5}', "application/json", id="once")
    assert answer.status_code == 201
    position = answer.json()["position"]
    assert answer.json() == {"id": "once", "position": position, "new": True}
    publication = service.tidings.store.journal.find("once")
    assert publication and publication.position == position
    again = post(service, '{"price": 5}', "application/json", Idempotency_Key='"once"')
    assert (again.status_code, again.json()) == (200, {"id": "once", "position": position, "new": False})
    other = post(service, '{"price": 6}', "application/json", id="once")
    assert (other.status_code, other.json()["error"]) == (409, "IdConflict")
    assert other.headers["content-type"] == "application/problem+json"
    read = service.shop.get(answer.headers["location"]).json()
    assert (
        read["body"] == {"price": 5}
        and read["media_type"] == "application/json"
        and read["position"] == position
    )
    both = post(service, '{"price": 6}', "application/json", id="once", Idempotency_Key="twice")
    assert both.status_code == 422


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json; charset=utf-8", '{"price": 5}'),
        ("application/cloudevents+json", json.dumps(EVENT | {"id": "ce-structured"})),
        ("application/xml", "<stock><price>5</price></stock>"),
        ("text/xml", "<stock/>"),
        ("text/turtle", TURTLE),
        ("application/n-triples", '<http://e.org/a> <http://e.org/p> "x" .'),
        (
            "application/rdf+xml",
            "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e.org/'>"
            "<rdf:Description rdf:about='http://e.org/a'><e:p>x</e:p></rdf:Description></rdf:RDF>",
        ),
        ("application/ld+json", '{"@id": "http://e.org/a", "http://e.org/p": "x"}'),
    ],
)
def test_publish_every_media_type_stores_body_unchanged(service: Service, kind: str, body: str) -> None:
    answer = post(service, body, kind)
    assert answer.status_code == 201, answer.text
    publication = service.tidings.store.journal.find(answer.json()["id"])
    assert publication and (publication.media_type, publication.body) == (
        kind.partition(";")[0],
        body.encode(),
    )


@pytest.mark.parametrize(
    ("kind", "body", "count"),
    [
        ("application/trig", TRIG, 2),
        ("application/n-quads", '<http://e.org/a> <http://e.org/p> "x" <http://e.org/g> .', 1),
        ("application/rss+xml", RSS, 2),
    ],
)
def test_publish_file_with_several_graphs_publishes_each(
    service: Service, kind: str, body: str, count: int
) -> None:
    first = post(service, body, kind, id=kind)
    again = post(service, body, kind, id=kind)
    assert (first.status_code, again.status_code) == (201, 200)
    payload = first.json().get("publications") or [first.json()]
    assert [one["id"] for one in payload] == [f"{kind}-{n}" for n in range(1, count + 1)]
    assert service.tidings.store.journal.find(f"{kind}-1").media_type == "application/n-triples"  # type: ignore[union-attr]


def test_publish_base_parameter_resolves_relative_iris(service: Service) -> None:
    answer = post(service, "<a> <p> 'x' .", "text/turtle", base="http://e.org/")
    publication = service.tidings.store.journal.find(answer.json()["id"])
    assert publication and publication.body == b'<http://e.org/a> <http://e.org/p> "x" .\n'


def test_publish_invalid_or_repeated_id_is_rejected(service: Service) -> None:
    """Ids with invalid UTF-8 would all be one id, and of two ids the last would win: publications would be lost."""
    for query in (b"id=%ff", b"id=%ED%A0%80", b"id=a&id=b", b"id=a&id=a", b"base=%C0%A0"):
        where = httpx.URL(f"{service.address}/v1/publications").copy_with(query=query)
        answer = service.shop.post(where, content=b"{}", headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["error"]) == (400, "InputError"), query
        assert answer.headers["content-type"] == "application/problem+json"
    assert service.shop.get("/v1/publications/%ff").status_code == 400
    for keys in (["a", "b"], ["ü"], ['"ü"']):
        headers = [(b"content-type", b"application/json")]
        headers += [(b"idempotency-key", key.encode()) for key in keys]
        answer = service.shop.post("/v1/publications", content=b"{}", headers=headers)
        assert (answer.status_code, answer.json()["where"]) == (422, "Idempotency-Key"), keys
    assert service.tidings.store.journal.find("a") is None


def test_publish_lines_outcomes_are_independent(service: Service) -> None:
    lines = b'{"lot": "l-1", "a": 1}\n\n{"lot": "l-2", broken\n{"lot": "l-1", "a": 1}\n'
    lines += b'{"lot": "l-1", "a": 2}\n{"a": NaN}\n'
    answer = post(service, lines, "application/x-ndjson", id_field="lot")
    assert answer.status_code == 207
    payload = answer.json()
    assert (payload["published"], payload["known"], payload["refused"]) == (1, 1, 3)
    assert [one["line"] for one in payload["outcomes"]] == [1, 3, 4, 5, 6]
    assert payload["outcomes"][0]["id"] == "l-1" and payload["outcomes"][0]["new"]
    assert [one["problem"]["status"] for one in payload["outcomes"] if "problem" in one] == [422, 409, 422]
    assert payload["outcomes"][1]["problem"]["place"]["column"]
    headers = {"Content-Type": "application/jsonl", "Accept": "application/x-ndjson"}
    streamed = service.shop.post("/v1/publications", content=b'{"a": 1}\n{"a": 2}', headers=headers)
    assert streamed.status_code == 201
    assert [json.loads(line)["new"] for line in streamed.text.splitlines()] == [True, True]
    assert post(service, b"{}", "application/jsonl", id="x").status_code == 422


@pytest.mark.parametrize(
    ("kind", "body", "status", "what"),
    [
        ("application/json", '{"price": NaN}', 422, "NaN"),
        ("application/json", '{"price": ', 422, "expected a value"),
        ("application/json", "[1]", 422, "not a JSON object"),
        ("application/json", '{"a":' * 300 + "1" + "}" * 300, 422, "deep"),
        ("application/json", b"\xff", 422, "UTF-8"),
        ("application/json", "", 422, "empty"),
        ("application/xml", "<a><b></a>", 422, ""),
        ("application/xml", '<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;">]><a>&c;</a>', 422, ""),
        ("application/rdf+xml", '<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;">]><a>&c;</a>', 422, ""),
        ("text/turtle", "<a> <p", 422, ""),
        (
            "text/turtle",
            "",
            422,
            "the body is empty; accepted: a graph, such as <urn:a> <urn:b> 5 .; curl -d '@...'",
        ),
        ("application/n-triples", " \n", 422, "--data-binary @page.ttl"),
        ("application/trig", "\r\n\t", 422, "the body is empty"),
        ("application/n-quads; charset=utf-8", "", 422, "the body is empty"),
        ("application/rdf+xml", "", 422, "the body is empty"),
        ("application/ld+json", "", 422, "the body is empty"),
        ("application/json", "x" * 200_001, 413, "200,000 bytes"),
        ("application/jsonl", "{}\n" * 51, 413, "accepted: 50"),
        ("application/cloudevents-batch+json", f"[{'1,' * 50}1]", 413, "accepted: 50"),
        ("text/plain", "hello", 415, "for an event Content-Type: application/json"),
        ("application/x-www-form-urlencoded", "{}", 415, "for an event Content-Type: application/json"),
        ("", "hello", 415, "application/json"),
        ("application/json", '{"a": 1}\n{"a": 2}\n', 422, LOOKS_LIKE_LINES),
        ("application/x-www-form-urlencoded", '{"a": 1}\n{"a": 2}\n', 415, LOOKS_LIKE_LINES),
        ("", '{"a": 1}\n{"a": 2}\n', 415, LOOKS_LIKE_LINES),
    ],
)
def test_publish_invalid_body_is_rejected(
    service: Service, kind: str, body: bytes | str, status: int, what: str
) -> None:
    answer = post(service, body, kind)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert what in answer.json()["message"]


def test_publish_empty_graph_is_accepted(service: Service) -> None:
    assert post(service, "@prefix e: <http://e.example/> . # nothing", "text/turtle").status_code == 201


def test_publish_same_id_concurrently_accepts_one_body(service: Service) -> None:
    def publish(number: int) -> tuple[int, int]:
        body = json.dumps({"price": number % 2})
        answer = post(service, body, "application/json", id="race")
        return answer.status_code, number % 2

    with ThreadPoolExecutor(8) as threads:
        outcomes = list(threads.map(publish, range(40)))
    publication = service.tidings.store.journal.find("race")
    assert publication is not None
    won = json.loads(publication.body)["price"]
    assert [status for status, price in outcomes if price == won].count(201) == 1
    assert {status for status, price in outcomes if price == won} == {200, 201}
    assert {status for status, price in outcomes if price != won} == {409}


@settings(max_examples=30, deadline=None)
@given(st.text(min_size=1, max_size=40), st.dictionaries(st.text(max_size=5), st.integers(0, 9), max_size=2))
def test_publish_any_id_and_body_is_idempotent(service: Service, id: str, event: dict[str, int]) -> None:
    id = f"h-{id}-{sorted(event.items())}"
    first = post(service, json.dumps(event), "application/json", id=id)
    if first.status_code == 400:
        assert "\x00" in id
        return
    if first.status_code == 422:
        assert not id.isprintable()
        return
    again = post(service, json.dumps(event), "application/json", id=id)
    other = post(service, json.dumps(event | {"more": 10}), "application/json", id=id)
    assert (again.status_code, other.status_code) == (200, 409)
    assert again.json() == first.json() | {"new": False}
    assert service.shop.get(first.headers.get("location", again.headers["location"])).json()["body"] == event


def test_publish_without_publish_scope_is_forbidden(service: Service) -> None:
    ana, anonymous = service.caller("ana"), httpx.Client(base_url=service.address, trust_env=False)
    event = {"content": b"{}", "headers": {"Content-Type": "application/json"}}
    assert ana.post("/v1/publications", **event).status_code == 403
    assert anonymous.post("/v1/publications", **event).status_code == 401
    assert service.root.post("/v1/publications", **event).status_code == 201
    assert ana.get("/v1/publications").status_code == 403
    assert service.shop.get("/v1/publications/none").status_code == 404


def test_publications_list_is_paginated_newest_first(service: Service) -> None:
    for number in range(5):
        post(service, json.dumps({"n": number}), "application/json", id=f"page-{number}")
    post(service, json.dumps({"n": "x" * 100_000}), "application/json", id="page-large")
    first = service.root.get("/v1/publications", params={"limit": 3}).json()
    assert [one["id"] for one in first["publications"]] == ["page-large", "page-4", "page-3"]
    assert first["publications"][0]["body"] is None and first["publications"][0]["size"] > 100_000
    second = service.root.get("/v1/publications", params={"limit": 3, "before": first["next"]}).json()
    assert [one["id"] for one in second["publications"]] == ["page-2", "page-1", "page-0"]
    everything = service.root.get("/v1/publications", params={"limit": 1_000}).json()
    assert everything["next"] is None and everything["publications"][-1]["position"] == 1
    assert service.root.get("/v1/publications", params={"limit": 0}).status_code == 400


def test_publish_event_violating_schema_is_rejected_with_rule(tmp_path: Path) -> None:
    with Tidings(tmp_path) as tidings:
        furniture = ROOT / "examples" / "furniture.yaml"
        tidings.extend_schema(furniture.read_text())
        with served_api(tidings) as service:
            answer = post(service, '{"event_type": ["furniture"], "price": 100}', "application/json")
            assert (answer.status_code, answer.json()["error"]) == (422, "ConsistencyProblem")
            assert answer.json()["rule"] == "R2"


def test_publish_many_invalid_lines_only_first_have_hints(
    tmp_path: Path, guesses: Guesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small bodies are validated in a group commit first, where no hints are computed, and then again alone."""
    monkeypatch.setattr(suggest, "MOST", 10)
    with Tidings(tmp_path) as tidings:
        tidings.extend_schema(
            "attributes: {price: numeric, prize: numeric}\n"
            "event_types: {chair: {attributes: {price: optional, prize: optional}}}"
        )
        with served_api(tidings) as service:
            assert post(service, '{"event_type": "chair", "price": 5}', "application/json").status_code == 201
            for count in (1, 20, 400):
                lines = '{"event_type": "chair", "prise": 5}\n' * count
                guesses.compared = 0
                payload = post(service, lines, "application/jsonl").json()["outcomes"]
                hints = [one["problem"].get("hint") for one in payload]
                assert hints == (["did you mean 'prize'?"] * 5 + [None] * count)[:count]
                assert guesses.compared == min(10, 2 * count)


def test_publish_after_schema_change_uses_new_schema(tmp_path: Path) -> None:
    """Also if another process extended the schema, and whether or not the service had read the old one."""
    chair, word = '{"event_type": "chair", "price": 5}', '{"event_type": "chair", "price": "cheap"}'
    with Tidings(tmp_path) as tidings, Tidings(tmp_path) as other, served_api(tidings) as service:
        for body in (chair, word):
            assert post(service, body, "application/json").status_code == 201
        other.extend_schema(
            "attributes: {price: numeric}\nevent_types: {chair: {attributes: {price: optional}}}"
        )
        [ours, theirs] = post(service, f"{chair}\n{word}", "application/jsonl").json()["outcomes"]
        assert ours["new"] and theirs["problem"]["error"] == "ConsistencyProblem"
        refused = post(service, word, "application/json")
        assert (refused.status_code, refused.json()["error"]) == (422, "ConsistencyProblem")
        assert post(service, chair, "application/json").status_code == 201
        table = '{"event_type": "table", "price": 5}'
        assert post(service, table, "application/json").status_code == 422
        other.extend_schema("event_types: {table: {attributes: {price: optional}}}")
        assert post(service, table, "application/json").status_code == 201


def test_publish_with_revoked_token_answers_401_for_any_body(service: Service) -> None:
    """Although the token was valid a moment ago, and whatever the body."""
    head = service.tidings.store.journal.head
    bodies = [
        (b'{"a": 1}', "application/json"),
        (b'{"a": "%s"}' % (b"x" * 10_000), "application/json"),
        (b'{"a": ', "application/json"),
        (b'{"a": 1}\n{"a": 2}', "application/jsonl"),
        (b"<a/>", "application/xml"),
        (b"hello", "text/plain"),
    ]
    for number, (body, kind) in enumerate(bodies):
        shop = service.caller(f"shop-{number}", "publish")
        event, sent = {"Content-Type": "application/json"}, {"Content-Type": kind}
        for _ in range(2):
            assert shop.post("/v1/publications", content=b"{}", headers=event).status_code == 201
        [token] = [one for one in service.tidings.store.tokens.list() if one.name == f"shop-{number}"]
        with Tidings(service.tidings.home) as other:
            other.store.tokens.revoke(token.id)
        before = head()
        for _ in range(2):
            answer = shop.post("/v1/publications", content=body, headers=sent)
            assert (answer.status_code, answer.json()["what"]) == (401, "invalid token")
            assert answer.headers["www-authenticate"] == "Bearer"
        assert head() == before


@pytest.mark.parametrize(("kind", "body"), [("application/json", b"{}"), ("application/jsonl", b"{}\n{}")])
def test_publish_after_concurrent_token_revocation_answers_401(
    service: Service, kind: str, body: bytes
) -> None:
    """While others go on publishing in the same transactions."""
    name, headers, is_revoked = f"busy with {kind}", {"Content-Type": kind}, Event()
    shop = service.caller(name, "publish")
    [token] = [one for one in service.tidings.store.tokens.list() if one.name == name]

    def publish(client: httpx.Client) -> list[tuple[bool, int]]:
        """For each request: whether the token was revoked before it was sent, and the status."""
        answers: list[tuple[bool, int]] = []
        while len(answers) < 30 and 401 not in [status for _, status in answers]:
            before = is_revoked.is_set()
            answer = client.post("/v1/publications", content=body, headers=headers)
            answers.append((before, answer.status_code))
            if client is shop and len(answers) == 10:
                service.tidings.store.tokens.revoke(token.id)
                is_revoked.set()
        return answers

    with ThreadPoolExecutor(6) as threads:
        own = [threads.submit(publish, shop) for _ in range(4)]
        others = [threads.submit(publish, service.shop) for _ in range(2)]
    for done in own:
        assert {status for before, status in done.result() if before} <= {401}
        assert done.result()[-1][1] == 401
    for done in others:
        assert [status for _, status in done.result()] == [201] * 30


def test_publish_lines_concurrently_get_consecutive_positions(service: Service) -> None:
    """Positions of one request are consecutive, also in transactions that it shares, and each outcome has its own."""
    lines = {"Content-Type": "application/jsonl"}

    def publish(sender: int) -> list[list[tuple[str, int]]]:
        batches = []
        for turn in range(10):
            ids = [f"together-{sender}-{turn}-{n}" for n in range(5)]
            body = "\n".join(json.dumps({"id": id, "sender": sender}) for id in ids)
            url = "/v1/publications?id_field=id"
            answer = service.shop.post(url, content=body.encode(), headers=lines)
            assert answer.status_code == 201 and answer.json()["published"] == 5
            positions = [(one["id"], one["position"]) for one in answer.json()["outcomes"]]
            assert [id for id, _ in positions] == ids
            batches.append(positions)
        return batches

    with ThreadPoolExecutor(4) as threads:
        answers = [answer for batches in threads.map(publish, range(4)) for answer in batches]
    for positions in answers:
        first = positions[0][1]
        assert [position for _, position in positions] == list(range(first, first + 5))
        for id, position in positions:
            publication = service.tidings.store.journal.find(id)
            assert publication is not None and publication.position == position


@pytest.mark.parametrize(
    ("where", "arguments"),
    [
        ("id", {"id": "x" * 501}),
        ("audience", {"audience": "x" * 501}),
        ("idempotency-key", {"Idempotency_Key": "x" * 503}),
    ],
)
def test_publish_parameter_too_long_is_rejected(
    service: Service, where: str, arguments: dict[str, str]
) -> None:
    answer = post(service, "{}", "application/json", **arguments)
    assert (answer.status_code, answer.json()["where"]) == (400, where)
    assert "characters" in answer.json()["accepted"]


def test_labelled_publication_is_visible_with_grant_only(service: Service) -> None:
    root, audiences = service.root, service.tidings.store.audiences
    json_event = "application/json"
    post(service, '{"deal": 1}', json_event, id="label-1", audience="board")
    context = {"ce_specversion": "1.0", "ce_source": "/shop", "ce_type": "deal", "ce_audience": "board"}
    post(service, '{"deal": 2}', json_event, ce_id="label-2", **context)
    post(service, "<deal>3</deal>", "application/xml", ce_id="label-3", **context)
    post(service, '{"id": "label-4", "deal": 4}', "application/jsonl", id_field="id", audience="board")
    post(service, RSS, "application/rss+xml", id="label-5", audience="board")
    ids = ["label-1", "label-2", "label-3", "label-4", "label-5-1", "label-5-2"]
    for id in ids:
        assert root.get(f"/v1/publications/{id}").json()["audience"] == "board"
        assert service.shop.get(f"/v1/publications/{id}").status_code == 404
    listed = service.shop.get("/v1/publications").json()["publications"]
    assert not {one["id"] for one in listed} & set(ids)
    two = post(service, "{}", json_event, ce_id="two", **context, audience="staff")
    assert two.status_code == 422
    ana, request = service.caller("ana"), {"text": "deal >= 1", "last": 10}
    assert ana.post("/v1/preview", json=request).json()["matches"] == []
    audiences.grant("ana", "board")
    matches = ana.post("/v1/preview", json=request).json()["matches"]
    assert [one["publication"]["id"] for one in matches] == ["label-4", "label-2", "label-1"]


def test_publish_id_field_sets_id_only_if_requested(service: Service) -> None:
    body = '{"id": "field-1", "price": 5}'
    plain = [post(service, body, "application/json").json() for _ in range(2)]
    assert [one["new"] for one in plain] == [True, True] and "field-1" not in {one["id"] for one in plain}
    named = [post(service, body, "application/json", id_field="id") for _ in range(2)]
    assert [(one.json()["id"], one.status_code) for one in named] == [("field-1", 201), ("field-1", 200)]
    assert post(service, '{"price": 5}', "application/json", id_field="id").status_code == 201
    for media_type, other in (("application/xml", "<a/>"), ("text/turtle", "<urn:a> <urn:b> <urn:c> .")):
        refused = post(service, other, media_type, id_field="id")
        assert (refused.status_code, refused.json()["where"]) == (422, "id_field")
    assert post(service, body, "application/json", id_field="id", id="other").status_code == 422
