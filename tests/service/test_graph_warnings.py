"""Warnings about graph subscriptions, from the loaded taxonomies and recent publications."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tidings.errors import InputError
from tidings.service.preview import PreviewBounds, preview_subscription
from tidings.service.tidings import Tidings

PREFIXES = """@prefix ex: <http://example.org/> . @prefix dc: <http://purl.org/dc/elements/1.1/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
"""
RDF_XML = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:ex="http://example.org/">
<rdf:Description rdf:about="http://example.org/page"><ex:year>2005</ex:year></rdf:Description></rdf:RDF>"""
FEED = b"""<rss version="2.0"><channel><title>News</title><link>http://example.org/</link><description/>
<item><guid>http://example.org/1</guid><title>One</title><category>clocks</category>
<pubDate>Mon, 06 May 2024 10:00:00 GMT</pubDate></item></channel></rss>"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Tidings]:
    with Tidings(tmp_path) as tidings:
        yield tidings


def warnings_of(home: Tidings, where: str) -> list[str]:
    text = f"PREFIX ex: <http://example.org/> SELECT ?x WHERE {where}"
    subscribed = home.subscribe("ana", text, "gql")
    assert subscribed.warnings == home.subscribing().check("gql", text).warnings
    return [f"{one.what}; {one.hint}" if one.hint else one.what for one in subscribed.warnings]


LOAD = "load one: tidings taxonomy load FILE"
ACADEMIA = "no loaded taxonomy has the class <http://example.org/Academia>: "


def test_warnings_unknown_class_states_what_can_match(home: Tidings) -> None:
    never = f"{ACADEMIA}this can never match until one with it is loaded; {LOAD}"
    typed = "until one with it is loaded, this matches only nodes whose type the publication itself states"
    for operator in ("<", ">"):
        assert warnings_of(home, f"(?x, dc:subject, ?s) AND ?s {operator} ex:Academia") == [never]
    for operator in ("=", "<=", ">="):
        assert warnings_of(home, f"(?x, dc:subject, ?s) AND ?s {operator} ex:Academia") == [
            f"{ACADEMIA}{typed}; {LOAD}"
        ]
    assert warnings_of(home, "(?x, dc:subject, ?s) AND ?s != ex:Academia") == []
    assert warnings_of(home, "(?x, dc:subject, ?s) AND ?s is ex:Academia") == []


def test_warnings_class_of_loaded_taxonomy_has_none(home: Tidings) -> None:
    home.load_taxonomy("a", f"{PREFIXES} ex:Lab rdfs:subClassOf ex:Academia .".encode(), "text/turtle")
    assert warnings_of(home, "(?x, dc:subject, ?s) AND ?s <= ex:Academia") == []
    home.remove_taxonomy("a")
    assert len(warnings_of(home, "(?x, dc:subject, ?s) AND ?s <= ex:Academia")) == 1


def test_warnings_number_compared_with_plain_literals_advises_text(
    home: Tidings,
) -> None:
    home.publish(RDF_XML, media_type="application/rdf+xml")
    [warning] = warnings_of(home, "(?x, ex:year, ?y) AND ?y > 2003")
    assert warning == (
        "<http://example.org/year> has text in recent publications, and numbers do not compare with text; "
        'compare text with text, character by character: ?y > "2003"'
    )
    assert warnings_of(home, '(?x, ex:year, ?y) AND ?y > "2003"') == []
    assert warnings_of(home, "(?x, ex:other, ?y) AND ?y > 2003") == []


def test_warnings_advice_for_plain_literals_matches_them(home: Tidings) -> None:
    """The hint is a constraint that this publication satisfies."""
    home.publish(RDF_XML, media_type="application/rdf+xml")
    text = "PREFIX ex: <http://example.org/> SELECT ?x WHERE (?x, ex:year, ?y) AND "
    [warning] = home.subscribing().check("gql", text + "?y > 2003").warnings
    advised = (warning.hint or "").rpartition(": ")[2]
    assert len(home.subscribing().check("gql", text + advised).warnings) == 0
    assert _match_count(home, text + "?y > 2003") == 0 and _match_count(home, text + advised) == 1


def _match_count(home: Tidings, text: str) -> int:
    previewed = preview_subscription(
        home.store, home.preview_tables, home.subscribing(), None, "gql", text, PreviewBounds(9, 10**6, 60)
    )
    assert previewed.warnings == home.subscribing().check("gql", text).warnings
    return len(previewed.matches)


def test_warnings_number_or_class_of_feed_item_properties_names_their_type(home: Tidings) -> None:
    assert len([*home.publish_parts(FEED, "application/rss+xml")]) == 1
    home.load_taxonomy("a", f"{PREFIXES} ex:Lab rdfs:subClassOf ex:Academia .".encode(), "text/turtle")
    assert warnings_of(home, "(?x, dc:date, ?d) AND ?d >= 2004") == [
        "dc:date has dates in recent publications, and numbers do not compare with dates; "
        "write a date: ?d >= 2004-01-01"
    ]
    assert warnings_of(home, "(?x, dc:subject, ?s) AND ?s <= ex:Academia") == [
        "dc:subject has text in recent publications, and only nodes belong to a class"
    ]
    assert warnings_of(home, "(?x, dc:date, ?d) AND ?d >= 2004-01-01") == []
    assert warnings_of(home, '(?x, dc:subject, ?s) AND ?s = "clocks"') == []


def test_warnings_ignore_publications_with_audience(home: Tidings) -> None:
    home.publish(RDF_XML, media_type="application/rdf+xml", audience="board")
    assert warnings_of(home, "(?x, ex:year, ?y) AND ?y > 2003") == []


SKOS = f"{PREFIXES} ex:oak a skos:Concept ; skos:broader ex:wood . ex:wood a skos:Concept ."


def test_load_taxonomy_of_skos_warns_of_ignored_hierarchies(home: Tidings) -> None:
    loaded = home.load_taxonomy("woods", SKOS.encode(), "text/turtle")
    [warning] = loaded.warnings
    assert warning.what == "1 statement with skos:broader or skos:narrower ignored"
    assert "not supported yet" in (warning.hint or "") and "rdfs:subClassOf" in (warning.hint or "")


def test_load_taxonomy_without_classes_is_rejected_with_found_properties(home: Tidings) -> None:
    body = f"{PREFIXES} ex:oak skos:broader ex:wood ; dc:title 'Oak' , 'Eiche' ."
    with pytest.raises(InputError, match="the file has no classes and no properties") as refused:
        home.load_taxonomy("woods", body.encode(), "text/turtle")
    assert refused.value.received == "3 edges: dc:title (2), skos:broader (1)"
    assert "SKOS" in (refused.value.hint or "")
    assert home.taxonomies() == []
    with pytest.raises(InputError, match="received no edges"):
        home.load_taxonomy("empty", PREFIXES.encode(), "text/turtle")
