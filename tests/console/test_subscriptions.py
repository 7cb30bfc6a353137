"""Subscriptions in the console: plain forms, with errors below the text."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from tests.console.place import Place
from tests.support.processes.console_visitor import Visitor, console
from tidings.console.subscriptions import PAGE
from tidings.feeds.outbound.personal_feeds import OpenFeed, RemovedFeed, locate_feed
from tidings.language_hints import list_guides
from tidings.metadata.provider.provider import Provider
from tidings.service.authorization import Access, Scope
from tidings.service.tidings import Tidings

HREF = re.compile(r'href="([^"]+)"')


def test_subscription_forms_create_change_pause_and_delete(place: Place) -> None:
    """By plain forms, without scripts."""
    checked = place.bo.post("/console/subscriptions", language="predicates", text="price < 5", act="check")
    assert checked.status_code == 200 and "1 predicate, reached through price" in checked.text
    created = place.bo.post(
        "/console/subscriptions", language="predicates", text="price < 5", within="10 minutes"
    )
    at = created.headers["location"].partition("?")[0]
    shown = place.bo.get(at).text
    assert "price &lt; 5" in shown and "10 minutes" in shown and ">active<" in shown
    assert place.bo.post(at, text="price < 6", within="").status_code == 303
    assert "price &lt; 6" in place.bo.get(f"{at}/edit").text
    for act, state in (("pause", ">paused<"), ("resume", ">active<")):
        assert place.bo.post(f"{at}/{act}").status_code == 303
        assert state in place.bo.get(at).text
    assert at in place.bo.get("/console/subscriptions", search="PRICE < 6").text
    assert "Nothing found" in place.bo.get("/console/subscriptions", search="price < 7").text
    assert "Deleted." in place.bo.get(place.bo.post(f"{at}/delete").headers["location"]).text
    assert place.bo.get(at).status_code == 404


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"text": "prise < 200"}, "<mark>prise</mark>"),
        ({"text": "price < 5 and"}, "expected a predicate"),
        ({"text": "price < 5", "within": "a while"}, "not a duration"),
        ({"text": "price < 5", "language": "sql"}, "unknown subscription language"),
    ],
)
def test_subscription_form_error_is_shown_below_text(
    place: Place, fields: dict[str, str], message: str
) -> None:
    for act in ("check", "save"):
        for path in ("subscriptions", f"subscriptions/{place.table}"):
            if "language" in fields and "/" in path:
                continue  # it keeps its language
            answer = place.ana.post(f"/console/{path}", **({"language": "predicates", "act": act} | fields))
            assert answer.status_code == 422 and message.lower() in answer.text.lower()
    assert place.tidings.store.subscriptions.find(place.table) is not None


ADDRESS = re.compile(r"http://127\.0\.0\.1:1(/(?:feeds|opml)/[A-Za-z0-9_-]{32})")


def test_subscription_page_shows_and_renews_feed_address(place: Place) -> None:
    """The same address as `tidings feeds` prints; the list of subscriptions has that of all feeds."""
    feeds = place.tidings.feeds_at("http://127.0.0.1:1")
    of = {"subscription": f"/console/subscriptions/{place.table}", "all": "/console/subscriptions"}
    renewing = {"subscription": f"{of['subscription']}/renew", "all": "/console/subscriptions/renew-list"}
    located = {"subscription": locate_feed(feeds, "ana", place.table), "all": locate_feed(feeds, "ana")}
    for name, at in of.items():
        [shown] = ADDRESS.findall(place.ana.get(at).text)
        assert (located[name].address or "").endswith(shown)
        answer = place.ana.post(renewing[name])
        [new] = ADDRESS.findall(place.ana.get(answer.headers["location"]).text)
        assert "The feed has a new address" in place.ana.get(answer.headers["location"]).text
        assert new != shown and isinstance(feeds.opml(new[-32:]) or feeds.open(new[-32:]), (bytes, OpenFeed))
        assert isinstance(feeds.opml(shown[-32:]) or feeds.open(shown[-32:]), RemovedFeed)
    assert not ADDRESS.search(place.root.get("/console/subscriptions").text), "no subscriber is chosen"
    assert ADDRESS.findall(place.root.get("/console/subscriptions", subscriber="ana").text) == [new]
    assert place.bo.post(renewing["subscription"]).status_code == 404


def test_rule_page_has_no_feed(place: Place) -> None:
    [rule, *_] = place.tidings.store.metadata.rules()
    shown = place.root.get(f"/console/subscriptions/{rule.name}")
    assert shown.status_code == 200 and not ADDRESS.search(shown.text)
    assert place.root.post(f"/console/subscriptions/{rule.name}/renew").status_code == 404


def test_subscriptions_page_is_paginated(place: Place) -> None:
    for number in range(PAGE + 1):
        place.tidings.subscribe("many", f"quantity = {number}", id=f"s-{number:03}")
    token = Access(place.tidings.store).make("many", [Scope.SUBSCRIBE], "many")
    visitor = Visitor(place.address, token.secret)
    first = visitor.get("/console/subscriptions").text
    assert "s-049" in first and "s-050" not in first and "after=s-049" in first
    assert "s-050" in visitor.get("/console/subscriptions", after="s-049").text
    all_subscribers = place.root.get("/console/subscriptions", search="quantity = 50").text
    assert "s-050" in all_subscribers and ">many<" in all_subscribers


EXAMPLE = re.compile(r'data-text="([^"]+)"')
RDFS = b"""
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> . @prefix e: <http://example.org/> .
e:Station a rdfs:Class . e:height a rdf:Property ; rdfs:domain e:Station ; rdfs:range xsd:integer .
"""
SCHEMA = """
domains:
  colour: {values: [red, blue]}
  degree: {kind: numeric, minimum: -20, maximum: 40}
  place: {concepts: {town: [house]}}
attributes: {temperature: degree, paint: colour, site: place, note: string, wet: boolean, seen: instant}
event_types:
  weather: {attributes: {temperature: mandatory, paint: optional, site: optional, note: optional, wet: optional}}
"""


def examples_on(visitor: Visitor) -> dict[str, list[str]]:
    """Return the examples beside the form of a new subscription, by language."""
    sections = visitor.get("/console/subscriptions/new").text.split('<section data-language="')[1:]
    return {one.partition('"')[0]: [html.unescape(text) for text in EXAMPLE.findall(one)] for one in sections}


def test_subscription_form_examples_compile_with_any_schema(place: Place, tmp_path: Path) -> None:
    """Without a schema, with the schema that the examples were written for, and with another one."""
    with Tidings(tmp_path / "bare") as bare, Tidings(tmp_path / "other") as other:
        other.extend_schema(SCHEMA)
        Provider(other.store).load_schema(RDFS, "text/turtle")
        counted = []
        for tidings in (place.tidings, bare, other):
            token = Access(tidings.store).make("new", [Scope.SUBSCRIBE], "new").secret
            with console(tidings) as address:
                shown = examples_on(Visitor(address, token))
            assert list(shown) == [language.name for language in list_guides()]
            for language, texts in shown.items():
                for text in texts:
                    tidings.subscribing().check(language, text)
            counted.append({language: len(texts) for language, texts in shown.items()})
        assert counted == [
            {"predicates": 5, "xpath": 4, "gql": 3, "rules": 2},
            {"predicates": 4, "xpath": 4, "gql": 3, "rules": 0},
            {"predicates": 5, "xpath": 4, "gql": 3, "rules": 2},
        ]
        assert "furniture" not in str(shown) and "temperature <= 40" in shown["predicates"]


def test_subscription_pages_accept_any_characters_in_ids(place: Place) -> None:
    """Including those with a meaning in URLs: other programs choose ids."""
    id = "lots/of 100% #1?"
    place.tidings.subscribe("bo", "price < 4", id=id)
    [at] = [href for href in HREF.findall(place.bo.get("/console/subscriptions").text) if "lots" in href]
    assert "price &lt; 4" in place.bo.get(at).text and "price &lt; 4" in place.bo.get(f"{at}/edit").text
    changed = place.bo.post(at, text="price < 3").headers["location"]
    assert "Changed." in place.bo.get(changed).text
    paused = place.bo.post(f"{at}/pause").headers["location"]
    assert ">paused<" in place.bo.get(paused).text
    assert place.bo.post(f"{at}/delete").status_code == 303
    assert place.bo.get(at).status_code == 404


def test_subscription_warnings_are_shown_in_form_and_on_page(tmp_path: Path) -> None:
    empty = "price > 6 and price < 4"
    with Tidings(tmp_path / "bare") as tidings, console(tidings) as address:
        ana = Visitor(address, Access(tidings.store).make("ana", [Scope.SUBSCRIBE], "ana").secret)
        checked = ana.post("/console/subscriptions", language="predicates", text=empty, act="check")
        created = ana.post("/console/subscriptions", language="predicates", text=empty)
        for shown in (checked.text, ana.get(created.headers["location"]).text):
            assert "no single value of price satisfies both predicates" in shown
            assert "Join them with &#39;or&#39; if either is enough" in shown


def test_preview_counts_publications_violating_schema(tmp_path: Path) -> None:
    with Tidings(tmp_path / "home") as tidings, console(tidings) as address:
        tidings.publish('{"temperature": 5}')
        tidings.extend_schema(SCHEMA)
        ana = Visitor(address, Access(tidings.store).make("ana", [Scope.SUBSCRIBE], "ana").secret)
        text = "temperature < 10"
        shown = ana.post("/console/subscriptions", language="predicates", text=text, act="check").text
        assert "None of 1 publication would have matched." in shown and "1 publication skipped: " in shown
