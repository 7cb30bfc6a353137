"""Hints of error messages: the text that a hint leads to compiles, and matches a publication."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tidings.documents import xml_decoder
from tidings.documents.reference_matcher import Explainer
from tidings.documents.xpath import xpath_parser
from tidings.errors import SubscriptionError
from tidings.events import json_decoder
from tidings.events.predicate_compiler import parse_and_check
from tidings.events.reference_matcher import matches
from tidings.events.schema.event_schema import EventSchema
from tidings.events.schema.files import load_text
from tidings.graphs import reference_matcher
from tidings.graphs.patterns import pattern_parser
from tidings.graphs.rdf import rdf_decoder
from tidings.graphs.taxonomy import merged
from tidings.kinds import LANGUAGES
from tidings.matching.compiler.language import Context
from tidings.metadata.rules import rule_parser

SCHEMA = """
attributes: {price: numeric, quantity: numeric, sold: boolean, since: instant, title: string, symbol: string}
event_types:
  lot:
    attributes:
      {price: optional, quantity: optional, sold: optional, since: optional, title: optional, symbol: optional}
"""


@pytest.fixture(scope="module")
def schema() -> EventSchema:
    return load_text(SCHEMA)


def error_message(language: str, text: str, schema: EventSchema | None = None) -> str:
    with pytest.raises(SubscriptionError) as problem:
        LANGUAGES[language].compile(Context(text, schema))
    return problem.value.message()


def _event_matches(text: str, body: str) -> bool:
    return matches(parse_and_check(text), json_decoder.decode(body.encode()))


def _document_matches(text: str, body: str) -> bool:
    return bool(Explainer(xml_decoder.decode(body.encode())).explain(xpath_parser.parse(text)))


def _graph_matches(text: str, body: str) -> bool:
    return bool(
        reference_matcher.Explainer(rdf_decoder.decode(body.encode(), "text/turtle"), merged()).explain(
            pattern_parser.parse(text)
        )
    )


MATCHES: dict[str, Callable[[str, str], bool]] = {
    "predicates": _event_matches,
    "xpath": _document_matches,
    "gql": _graph_matches,
}
CLOCK = json.dumps({"title": "a clock", "tags": [1, 2], "price": 5, "since": "2005-01-01", "color": "red"})
STOCK = '<stock v="7"><name>oak</name><price>60</price><tags/></stock>'
PAGE = """
@prefix dc: <http://purl.org/dc/elements/1.1/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
<urn:page> dc:title "oak"@en ; dc:date "2005-01-01"^^xsd:date ; dc:type true ; dc:creator "ann" ; dc:source <urn:x> .
"""
ADVICE = [
    ("predicates", "title like '%clock%'", "title contains 'clock'", "title contains 'clock'", CLOCK),
    ("predicates", "title like 'a cl%'", "title starts with 'a cl'", "title starts with 'a cl'", CLOCK),
    ("predicates", "title like '%clock'", "title ends with 'clock'", "title ends with 'clock'", CLOCK),
    ("predicates", "title like 'a clock'", "title = 'a clock'", "title = 'a clock'", CLOCK),
    (
        "predicates",
        "title not like 'oak%'",
        "not title starts with 'oak'",
        "not title starts with 'oak'",
        CLOCK,
    ),
    ("predicates", "color = red", "'red'", "color = 'red'", CLOCK),
    ("predicates", "title = a clock", "'a clock'", "title = 'a clock'", CLOCK),
    ("predicates", 'color = "red"', "'red'", "color = 'red'", CLOCK),
    ("predicates", "price =< 6", "<=", "price <= 6", CLOCK),
    ("predicates", "price === 5", "=", "price = 5", CLOCK),
    ("predicates", "price = 5 & color = 'red'", "and", "price = 5 and color = 'red'", CLOCK),
    ("predicates", "reserve = null", "reserve is null", "reserve is null", CLOCK),
    ("predicates", "price <> null", "price is not null", "price is not null", CLOCK),
    ("predicates", "price not = 6", "not price = 6", "not price = 6", CLOCK),
    ("predicates", "price between 9 and 1", "between 1 and 9", "price between 1 and 9", CLOCK),
    ("predicates", "tags[0] = 1", "tags", "tags = 1", CLOCK),
    ("xpath", "//stock[price + 1 > 5]", "price > 50", "//stock[price > 50]", STOCK),
    ("xpath", "//stock[count(price) > 0]", "[price]", "//stock[price]", STOCK),
    ("xpath", "//stock[string(name) = 'oak']", "[name = 'oak']", "//stock[name = 'oak']", STOCK),
    ("xpath", "//stock[number(price) > 50]", "[price > 50]", "//stock[price > 50]", STOCK),
    ("xpath", "//price/..", "stock[price]", "//stock[price]", STOCK),
    ("xpath", "/stock/node()", "*", "/stock/*", STOCK),
    ("xpath", "/", "/*", "/*", STOCK),
    ("xpath", "/stock/name | /stock/nothing", "or", "/stock/name or /stock/nothing", STOCK),
    ("xpath", "1 < /stock/price < 100", "and", "1 < /stock/price and /stock/price < 100", STOCK),
    (
        "gql",
        "SELECT ?x { ?x dc:title ?t FILTER(LANG(?t) = 'en') }",
        "?t = 'oak'@en",
        "SELECT ?x { ?x dc:title ?t FILTER(?t = 'oak'@en) }",
        PAGE,
    ),
    (
        "gql",
        "SELECT ?x { ?x dc:date ?d FILTER(YEAR(?d) > 2003) }",
        '?d >= "2004-01-01"^^xsd:date',
        'SELECT ?x { ?x dc:date ?d FILTER(?d >= "2004-01-01"^^xsd:date) }',
        PAGE,
    ),
    (
        "gql",
        "SELECT ?x { ?x dc:type ?t FILTER(?t) }",
        "?t = true",
        "SELECT ?x { ?x dc:type ?t FILTER(?t = true) }",
        PAGE,
    ),
    (
        "gql",
        "SELECT ?x { ?x dc:date ?d FILTER(?d > 2004-05-31) }",
        '"2004-05-31"^^xsd:date',
        'SELECT ?x { ?x dc:date ?d FILTER(?d > "2004-05-31"^^xsd:date) }',
        PAGE,
    ),
    (
        "gql",
        "SELECT ?x { ?x dc:creator ?c VALUES ?c { 'ann' } }",
        "?c IN ('ann')",
        "SELECT ?x { ?x dc:creator ?c FILTER(?c IN ('ann')) }",
        PAGE,
    ),
    (
        "gql",
        "SELECT ?x { ?x dc:creator ?c FILTER(?c NOT IN ('bo')) }",
        "?c != 'bo'",
        "SELECT ?x { ?x dc:creator ?c FILTER(?c != 'bo') }",
        PAGE,
    ),
    (
        "gql",
        "SELECT ?x { ?x dc:source ?s FILTER(SAMETERM(?s, <urn:x>)) }",
        "?s = <urn:x>",
        "SELECT ?x { ?x dc:source ?s FILTER(?s = <urn:x>) }",
        PAGE,
    ),
    (
        "gql",
        "SELECT ?x { ?x dc:creator ?c FILTER(STRENDS(?c, 'n')) }",
        "CONTAINS(?c, 'n')",
        "SELECT ?x { ?x dc:creator ?c FILTER(CONTAINS(?c, 'n')) }",
        PAGE,
    ),
]
"""A language, an invalid text, the advice in its error, the corrected text, and a publication that it matches."""


@pytest.mark.parametrize(("language", "text", "advised", "corrected", "body"), ADVICE)
def test_advice_corrected_text_compiles_and_matches(
    language: str, text: str, advised: str, corrected: str, body: str
) -> None:
    error_message(language, text)
    assert advised in corrected
    assert LANGUAGES[language].compile(Context(corrected)).clauses
    assert MATCHES[language](corrected, body), f"{corrected} matches nothing"


@pytest.mark.parametrize(
    ("text", "advised"),
    [(text, advised) for language, text, advised, *_ in ADVICE if language == "predicates"],
)
def test_advice_of_predicates_contains_text_to_write(text: str, advised: str) -> None:
    assert advised in error_message("predicates", text)


@pytest.mark.parametrize(
    "text", ["price > quantity", "price = quantity", 'price > "quantity"', "title = symbol"]
)
def test_advice_comparing_two_attributes_suggests_no_quotes(text: str, schema: EventSchema) -> None:
    message = error_message("predicates", text, schema)
    assert "comparing two attributes is not supported" in message
    assert "'quantity'" not in message and "'symbol'" not in message


@pytest.mark.parametrize("text", ["price > reserve", 'price > "reserve"', "sold = yes", "since > whenever"])
def test_advice_for_domain_without_strings_suggests_no_quotes(text: str, schema: EventSchema) -> None:
    word = text.split()[-1].strip('"')
    message = error_message("predicates", text, schema)
    assert f"'{word}'" not in message and ", but " in message


def test_advice_for_unknown_word_suggests_quotes(schema: EventSchema) -> None:
    assert "write strings in single quotes: 'YHOO'" in error_message("predicates", "symbol = YHOO", schema)


@pytest.mark.parametrize(
    "text", ["date > now()", "date > now", "title matches '.*clock'", "title like 'a%b'", "title ~ '^clock'"]
)
def test_advice_for_unsupported_function_suggests_no_text_search(text: str) -> None:
    message = error_message("predicates", text)
    assert "'now'" not in message and "write title" not in message and "is written" not in message


@pytest.mark.parametrize(
    "text",
    [
        "search C c register c where c.a = 80 or c.a = 443",
        "search C c register c where c.memory >= 64 and c.memory <= 128",
        "search C c register c where c.host contains 'x'",
        "search C c register c where c.a != 5",
        "search C c register c where 1 < c.a and c.a < 5",
        "search C c register c where c.tags? = 'x'",
    ],
)
def test_advice_of_rules_parses(text: str) -> None:
    assert rule_parser.parse_rule(text).where is not None
