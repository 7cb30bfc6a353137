"""Checking and previewing of texts, on a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers.api_server import Service, served_api
from tests.support.servers.provider_server import SCHEMA
from tidings.api.limits import Limits
from tidings.metadata.provider.provider import Provider
from tidings.service.preview import PreviewBounds, preview_subscription
from tidings.service.tidings import Tidings

TAXONOMY = """
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix e: <http://e.org/> .
e:Cat rdfs:subClassOf e:Animal . e:Tom a e:Cat .
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    limits = Limits(preview=50)
    with Tidings(tmp_path_factory.mktemp("home")) as tidings, served_api(tidings, limits) as running:
        Provider(tidings.store).load_schema(SCHEMA.read_bytes(), "text/turtle")
        tidings.load_taxonomy("animals", TAXONOMY.encode(), "text/turtle")
        for number in range(10):
            tidings.publish(json.dumps({"price": number}), f"e-{number}")
        tidings.publish("<stock><price>60</price></stock>", "x-1", "application/xml")
        tidings.publish("<stock><price>40</price></stock>", "x-2", "text/xml")
        tidings.publish("<http://e.org/page> <http://e.org/about> <http://e.org/Tom> .", "g-1", "text/turtle")
        yield running


@pytest.mark.parametrize(
    ("language", "text", "predicates", "through"),
    [
        ("predicates", "price < 200 and period = 'XVI'", 2, "period"),
        ("xpath", "//stock[price > 50]", 1, "/price"),
        ("gql", "SELECT ?x WHERE (?x, rss:title, ?t) AND ?t contains 'cats'", 1, "rss:title"),
        ("rules", "search CycleProvider c register c where c.serverPort > 5", 1, "CycleProvider"),
    ],
)
def test_check_returns_properties_of_text(
    service: Service, language: str, text: str, predicates: int, through: str
) -> None:
    checked = service.caller("ana").post("/v1/check", json={"language": language, "text": text}).json()
    assert (checked["language"], checked["predicates"]) == (language, predicates)
    assert through in checked["reached_through"]
    subscriptions = service.tidings.store.subscription_view
    assert subscriptions.count("ana") == 0, "nothing is stored"


def test_check_invalid_text_returns_place(service: Service) -> None:
    answer = service.caller("ana").post("/v1/check", json={"text": "price < 200 and"})
    assert (answer.status_code, answer.json()["pointer"]) == (422, "/text")
    assert answer.json()["place"] == {"line": 1, "column": 16, "length": 1}
    many = " or ".join(f"(a{i} = 1 and b{i} = 2)" for i in range(300))
    assert service.caller("ana").post("/v1/check", json={"text": many}).json()["error"] == "TooLarge"
    assert service.shop.post("/v1/check", json={"text": "price < 5"}).status_code == 403


def preview(service: Service, language: str, text: str, last: int = 50) -> dict[str, object]:
    body = {"language": language, "text": text, "last": last}
    answer = service.caller("ana").post("/v1/preview", json=body)
    assert answer.status_code == 200, answer.text
    payload: dict[str, object] = answer.json()
    return payload


def matched_ids(previewed: dict[str, object]) -> list[str]:
    return [one["publication"]["id"] for one in previewed["matches"]]  # type: ignore[attr-defined]


def test_preview_returns_matching_recent_publications_with_reasons(service: Service) -> None:
    previewed = preview(service, "predicates", "price < 3")
    assert (matched_ids(previewed), previewed["looked_at"], previewed["complete"]) == (
        ["e-2", "e-1", "e-0"],
        13,
        True,
    )
    first = previewed["matches"][0]  # type: ignore[index]
    assert first["because"] == [{"predicate": "price < 3", "value": 2, "at": "/price"}]
    assert first["publication"]["body"] == {"price": 2} and first["bindings"] is None
    assert first["words"] == ["price 2 < 3"]
    assert matched_ids(preview(service, "predicates", "price < 3", last=12)) == ["e-2", "e-1"], (
        "of the last only"
    )
    assert matched_ids(preview(service, "xpath", "//stock[price > 50]")) == ["x-1"]
    graph = preview(
        service, "gql", "SELECT ?x WHERE (?x, <http://e.org/about>, ?t) AND ?t <= <http://e.org/Animal>"
    )
    assert matched_ids(graph) == ["g-1"]
    rows = graph["matches"][0]["bindings"]["results"]["bindings"]  # type: ignore[index]
    assert rows == [{"x": {"type": "uri", "value": "http://e.org/page"}}]
    assert graph["matches"][0]["words"][-1] == "?x = http://e.org/page"  # type: ignore[index]
    assert matched_ids(preview(service, "predicates", "not exists price and not exists x")) == []


def test_preview_respects_audiences_of_subscriber(service: Service) -> None:
    service.tidings.publish('{"secret": 1}', "s-1", audience="board")
    service.tidings.store.audiences.grant("bo", "board")
    body = {"text": "secret = 1"}
    for more, expected in (({}, ["s-1"]), ({"subscriber": "bo"}, ["s-1"]), ({"subscriber": "cy"}, [])):
        assert matched_ids(service.root.post("/v1/preview", json=body | more).json()) == expected, more
    assert (
        matched_ids(service.caller("ana").post("/v1/preview", json=body | {"subscriber": "ana"}).json()) == []
    )
    assert service.caller("ana").post("/v1/preview", json=body | {"subscriber": "bo"}).status_code == 403


def test_preview_invalid_request_is_rejected(service: Service) -> None:
    ana = service.caller("ana")
    for body, pointer in (
        ({"text": "price <"}, "/text"),
        ({"text": "price < 5", "last": 51}, "/last"),
        ({"text": "price < 5", "last": 0}, "/last"),
        ({"text": "price < 5", "last": True}, "/last"),
        ({"text": "price < 5", "last": "5"}, "/last"),
        ({"text": "search A a register a", "language": "rules"}, "/language"),
    ):
        answer = ana.post("/v1/preview", json=body)
        assert (answer.status_code, answer.json()["pointer"]) == (422, pointer), body
    assert "50" in ana.post("/v1/preview", json={"text": "price < 5", "last": 51}).json()["accepted"]


def test_preview_is_bounded_by_time_and_bytes(tmp_path: Path) -> None:
    with Tidings(tmp_path) as tidings:
        for number in range(200):
            tidings.publish(json.dumps({"price": number, "more": "x" * 100}))
        ticks = iter(range(10_000))
        tools = tidings.store, tidings.preview_tables, tidings.subscribing(), None
        arguments = *tools, "predicates", "price >= 0"
        result = preview_subscription(
            *arguments, PreviewBounds(200, 10**6, 100), clock=lambda: float(next(ticks))
        )
        assert (result.looked_at, result.complete) == (100, False)
        result = preview_subscription(*arguments, PreviewBounds(200, 1_000, 100), clock=lambda: 0.0)
        assert (result.looked_at < 20, result.complete) == (True, False)
        result = preview_subscription(*arguments, PreviewBounds(150, 10**6, 100), clock=lambda: 0.0)
        assert (result.looked_at, len(result.matches), result.complete, result.notes) == (150, 150, True, [])


def test_preview_joins_current_reference_tables(service: Service, tmp_path: Path) -> None:
    """With their current rows; a missing file is reported, and graphs have no reference tables."""
    file, tidings = tmp_path / "sectors.csv", service.tidings
    file.write_text("symbol,sector\nYHOO,media\n")
    tidings.publish('{"symbol": "YHOO"}', "e-yhoo")
    tidings.publish(b"<stock><symbol>YHOO</symbol></stock>", "x-yhoo", "application/xml")
    tidings.add_reference("events", str(file), "symbol", "symbol")
    tidings.add_reference("documents", str(file), "symbol", "//symbol")
    for language, text, expected in (
        ("predicates", "ref.sector = 'media'", "e-yhoo"),
        ("xpath", "//ref/sector = 'media'", "x-yhoo"),
    ):
        previewed = preview(service, language, text)
        assert (matched_ids(previewed), previewed["notes"]) == ([expected], [])
        assert "media" in previewed["matches"][0]["words"][0]  # type: ignore[index]
        assert matched_ids(preview(service, language, text.replace("media", "tech"))) == []
    file.write_text("symbol,sector\nYHOO,tech\nYHOO,ads\n")
    assert matched_ids(preview(service, "xpath", "//ref/sector = 'tech' and //ref/sector = 'ads'")) == [
        "x-yhoo"
    ]
    file.unlink()
    previewed = preview(service, "xpath", "//stock[not(ref)]/symbol = 'YHOO'")
    assert (
        matched_ids(previewed) == ["x-yhoo"]
        and "not joined with the reference table documents:" in previewed["notes"][0]
    )  # type: ignore[index]
    assert preview(service, "gql", "SELECT ?x WHERE (?x, <http://e.org/about>, ?t)")["notes"] == []
    assert tidings.remove_reference("documents") and preview(service, "xpath", "//a")["notes"] == []


def test_check_and_preview_return_warnings_with_place(service: Service) -> None:
    text = "price > 6 and price < 4"
    place = {"line": 1, "column": 1, "length": len(text)}
    for path in ("/v1/check", "/v1/preview"):
        previewed = service.caller("ana").post(path, json={"text": text}).json()
        assert [(one["place"], one["hint"]) for one in previewed["warnings"]] == [
            (place, "join them with 'or' if either is enough")
        ]
        assert service.caller("ana").post(path, json={"text": "price < 4"}).json()["warnings"] == []


SCHEMA_OF_LOTS = """
attributes: {price: numeric, kind: string}
event_types: {lot: {attributes: {price: mandatory, kind: optional}}}
"""


def test_preview_counts_publications_violating_schema(tmp_path: Path) -> None:
    with Tidings(tmp_path) as tidings, served_api(tidings) as running:
        for price in (10, 20):
            tidings.publish(json.dumps({"price": price}))
        tidings.publish(json.dumps({"event_type": "lot", "price": "cheap"}))
        tidings.extend_schema(SCHEMA_OF_LOTS)
        tidings.publish(json.dumps({"event_type": "lot", "price": 30}))
        previewed = preview(running, "predicates", "price < 50")
        assert (previewed["looked_at"], previewed["skipped"], len(matched_ids(previewed))) == (4, 3, 1)
        notes = previewed["notes"]
        assert isinstance(notes, list) and len(notes) == 2
        assert notes[0].startswith("2 publications skipped: ") and "rule R1" in notes[0]
        assert notes[1].startswith("1 publication skipped: ") and "rule R2" in notes[1]
        assert preview(running, "xpath", "//price")["skipped"] == 0
