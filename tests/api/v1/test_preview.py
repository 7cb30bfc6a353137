"""Texts that are checked and previewed as somebody types, on a real server."""

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
    with Tidings(tmp_path_factory.mktemp("home")) as tidings, served_api(tidings, limits) as made:
        Provider(tidings.store).load_schema(SCHEMA.read_bytes(), "text/turtle")
        tidings.load_taxonomy("animals", TAXONOMY.encode(), "text/turtle")
        for number in range(10):
            tidings.publish(json.dumps({"price": number}), f"e-{number}")
        tidings.publish("<stock><price>60</price></stock>", "x-1", "application/xml")
        tidings.publish("<stock><price>40</price></stock>", "x-2", "text/xml")
        tidings.publish("<http://e.org/page> <http://e.org/about> <http://e.org/Tom> .", "g-1", "text/turtle")
        yield made


@pytest.mark.parametrize(
    ("language", "text", "predicates", "through"),
    [
        ("predicates", "price < 200 and period = 'XVI'", 2, "period"),
        ("xpath", "//stock[price > 50]", 1, "/price"),
        ("gql", "SELECT ?x WHERE (?x, rss:title, ?t) AND ?t contains 'cats'", 1, "rss:title"),
        ("rules", "search CycleProvider c register c where c.serverPort > 5", 1, "CycleProvider"),
    ],
)
def test_check_returns_properties_of_a_text(
    service: Service, language: str, text: str, predicates: int, through: str
) -> None:
    told = service.caller("ana").post("/v1/check", json={"language": language, "text": text}).json()
    assert (told["language"], told["predicates"]) == (language, predicates)
    assert through in told["reached_through"]
    kept = service.tidings.store.subscription_view
    assert kept.count("ana") == 0, "nothing is kept"


def test_check_of_an_invalid_text_returns_the_place(service: Service) -> None:
    answer = service.caller("ana").post("/v1/check", json={"text": "price < 200 and"})
    assert (answer.status_code, answer.json()["pointer"]) == (422, "/text")
    assert answer.json()["place"] == {"line": 1, "column": 16, "length": 1}
    many = " or ".join(f"(a{i} = 1 and b{i} = 2)" for i in range(300))
    assert service.caller("ana").post("/v1/check", json={"text": many}).json()["error"] == "TooLarge"
    assert service.shop.post("/v1/check", json={"text": "price < 5"}).status_code == 403


def asked(service: Service, language: str, text: str, last: int = 50) -> dict[str, object]:
    body = {"language": language, "text": text, "last": last}
    answer = service.caller("ana").post("/v1/preview", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, object] = answer.json()
    return found


def ids(told: dict[str, object]) -> list[str]:
    return [one["publication"]["id"] for one in told["matches"]]  # type: ignore[attr-defined]


def test_which_of_the_last_publications_would_have_matched(service: Service) -> None:
    told = asked(service, "predicates", "price < 3")
    assert (ids(told), told["looked_at"], told["complete"]) == (["e-2", "e-1", "e-0"], 13, True)
    first = told["matches"][0]  # type: ignore[index]
    assert first["because"] == [{"predicate": "price < 3", "value": 2, "at": "/price"}]
    assert first["publication"]["body"] == {"price": 2} and first["bindings"] is None
    assert first["words"] == ["price 2 < 3"]
    assert ids(asked(service, "predicates", "price < 3", last=12)) == ["e-2", "e-1"], "of the last only"
    assert ids(asked(service, "xpath", "//stock[price > 50]")) == ["x-1"]
    graph = asked(
        service, "gql", "SELECT ?x WHERE (?x, <http://e.org/about>, ?t) AND ?t <= <http://e.org/Animal>"
    )
    assert ids(graph) == ["g-1"]
    rows = graph["matches"][0]["bindings"]["results"]["bindings"]  # type: ignore[index]
    assert rows == [{"x": {"type": "uri", "value": "http://e.org/page"}}]
    assert graph["matches"][0]["words"][-1] == "?x = http://e.org/page"  # type: ignore[index]
    assert ids(asked(service, "predicates", "not exists price and not exists x")) == []


def test_preview_as_a_subscriber_sees_what_they_may_see(service: Service) -> None:
    service.tidings.publish('{"secret": 1}', "s-1", audience="board")
    service.tidings.store.audiences.grant("bo", "board")
    body = {"text": "secret = 1"}
    for more, found in (({}, ["s-1"]), ({"subscriber": "bo"}, ["s-1"]), ({"subscriber": "cy"}, [])):
        assert ids(service.root.post("/v1/preview", json=body | more).json()) == found, more
    assert ids(service.caller("ana").post("/v1/preview", json=body | {"subscriber": "ana"}).json()) == []
    assert service.caller("ana").post("/v1/preview", json=body | {"subscriber": "bo"}).status_code == 403


def test_preview_refuses_invalid_requests(service: Service) -> None:
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


def test_a_preview_ends_in_time_and_says_so(tmp_path: Path) -> None:
    with Tidings(tmp_path) as tidings:
        for number in range(200):
            tidings.publish(json.dumps({"price": number, "more": "x" * 100}))
        ticks = iter(range(10_000))
        tools = tidings.store, tidings.preview_tables, tidings.subscribing(), None
        arguments = *tools, "predicates", "price >= 0"
        found = preview_subscription(
            *arguments, PreviewBounds(200, 10**6, 100), clock=lambda: float(next(ticks))
        )
        assert (found.looked_at, found.complete) == (100, False)
        found = preview_subscription(*arguments, PreviewBounds(200, 1_000, 100), clock=lambda: 0.0)
        assert (found.looked_at < 20, found.complete) == (True, False)
        found = preview_subscription(*arguments, PreviewBounds(150, 10**6, 100), clock=lambda: 0.0)
        assert (found.looked_at, len(found.matches), found.complete, found.notes) == (150, 150, True, [])


def test_a_preview_joins_reference_tables(service: Service, tmp_path: Path) -> None:
    """As they are now, whatever they were; a table that is gone is named, and graphs are joined with none."""
    file, tidings = tmp_path / "sectors.csv", service.tidings
    file.write_text("symbol,sector\nYHOO,media\n")
    tidings.publish('{"symbol": "YHOO"}', "e-yhoo")
    tidings.publish(b"<stock><symbol>YHOO</symbol></stock>", "x-yhoo", "application/xml")
    tidings.add_reference("events", str(file), "symbol", "symbol")
    tidings.add_reference("documents", str(file), "symbol", "//symbol")
    for language, text, found in (
        ("predicates", "ref.sector = 'media'", "e-yhoo"),
        ("xpath", "//ref/sector = 'media'", "x-yhoo"),
    ):
        told = asked(service, language, text)
        assert (ids(told), told["notes"]) == ([found], [])
        assert "media" in told["matches"][0]["words"][0]  # type: ignore[index]
        assert ids(asked(service, language, text.replace("media", "tech"))) == []
    file.write_text("symbol,sector\nYHOO,tech\nYHOO,ads\n")
    assert ids(asked(service, "xpath", "//ref/sector = 'tech' and //ref/sector = 'ads'")) == ["x-yhoo"]
    file.unlink()
    told = asked(service, "xpath", "//stock[not(ref)]/symbol = 'YHOO'")
    assert ids(told) == ["x-yhoo"] and "not joined with the reference table documents:" in told["notes"][0]  # type: ignore[index]
    assert asked(service, "gql", "SELECT ?x WHERE (?x, <http://e.org/about>, ?t)")["notes"] == []
    assert tidings.remove_reference("documents") and asked(service, "xpath", "//a")["notes"] == []


def test_warnings_are_answered_with_their_place(service: Service) -> None:
    text = "price > 6 and price < 4"
    place = {"line": 1, "column": 1, "length": len(text)}
    for path in ("/v1/check", "/v1/preview"):
        told = service.caller("ana").post(path, json={"text": text}).json()
        assert [(one["place"], one["hint"]) for one in told["warnings"]] == [
            (place, "join them with 'or' if either is enough")
        ]
        assert service.caller("ana").post(path, json={"text": "price < 4"}).json()["warnings"] == []


SCHEMA_OF_LOTS = """
attributes: {price: numeric, kind: string}
event_types: {lot: {attributes: {price: mandatory, kind: optional}}}
"""


def test_preview_publications_that_do_not_fit_the_schema_are_counted_with_reasons(tmp_path: Path) -> None:
    with Tidings(tmp_path) as tidings, served_api(tidings) as made:
        for price in (10, 20):
            tidings.publish(json.dumps({"price": price}))
        tidings.publish(json.dumps({"event_type": "lot", "price": "cheap"}))
        tidings.extend_schema(SCHEMA_OF_LOTS)
        tidings.publish(json.dumps({"event_type": "lot", "price": 30}))
        told = asked(made, "predicates", "price < 50")
        assert (told["looked_at"], told["skipped"], len(ids(told))) == (4, 3, 1)
        notes = told["notes"]
        assert isinstance(notes, list) and len(notes) == 2
        assert notes[0].startswith("2 publications skipped: ") and "rule R1" in notes[0]
        assert notes[1].startswith("1 publication skipped: ") and "rule R2" in notes[1]
        assert asked(made, "xpath", "//price")["skipped"] == 0
