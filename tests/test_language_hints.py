"""Hints for texts that are written in another language than the named one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tidings.documents.xpath import xpath_parser
from tidings.errors import SubscriptionError
from tidings.events import predicate_parser as predicates
from tidings.graphs.patterns import pattern_parser
from tidings.language_hints import hint_to_language, hint_to_name
from tidings.metadata.rules import rule_parser

PARSERS: dict[str, Callable[[str], object]] = {
    "predicates": predicates.parse,
    "xpath": xpath_parser.parse,
    "gql": pattern_parser.parse,
    "rules": rule_parser.parse_rule,
}
TEXTS = {
    "predicates": [
        "price < 200",
        "not (price between 10 and 20)",
        "exists reserve and price < 5",
        "category is a 'dining room'",
        "\"odd name\" != 'x'",
    ],
    "xpath": [
        "//stock[price > 50]",
        "/a",
        "stock/price > 5",
        "a[@id]",
        "not(/a)",
        "(//a or //b)",
        './/a = "x"',
        'declare namespace p = "urn:p"; //p:a',
    ],
    "gql": [
        "SELECT ?x WHERE (?x, dc:title, ?t)",
        "select * where (?x, dc:title, ?t)",
        "SELECT *{ ?x dc:title ?t }",
        "SELECT DISTINCT $x WHERE { $x dc:title ?t }",
        "PREFIX ex: <urn:> SELECT ?x WHERE (?x, ex:p, ?t)",
        "# who?\n base <urn:x:> SELECT ?x WHERE (?x, <urn:p>, ?t)",
    ],
    "rules": [
        "search CycleProvider c register c",
        "SEARCH s:Host h, Disk d register h where h.disk = d",
        "search large c register c where c.memory > 64",
    ],
}
ALSO_VALID = {
    "xpath": [*TEXTS["predicates"][:1], *TEXTS["predicates"][4:]],
    "predicates": [],
    "gql": [],
    "rules": [],
}
"""Texts that a second language accepts, or nearly accepts: `price < 200` is an XPath, too."""


TAGS = "write tags without a position: the predicate holds if some value in the list satisfies it"


@pytest.mark.parametrize("named", PARSERS)
@pytest.mark.parametrize(
    ("meant", "text"), [(language, text) for language, texts in TEXTS.items() for text in texts]
)
def test_hint_to_language_names_language_of_text(named: str, meant: str, text: str) -> None:
    PARSERS[meant](text)
    if named == meant or text in ALSO_VALID[named]:
        assert hint_to_language(text, named) is None
        return
    with pytest.raises(SubscriptionError) as problem:
        PARSERS[named](text)
    assert f"the language is {meant}: --language {meant}" in str(problem.value)
    assert problem.value.facts()["hint"] == problem.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "?",
        "SELECT * FROM stocks WHERE price > 5",
        "SELECT name FROM stocks",
        "price",
        "exists",
        "#",
        '"',
    ],
)
@pytest.mark.parametrize("named", PARSERS)
def test_hint_to_language_other_texts_have_no_hint(named: str, text: str) -> None:
    assert hint_to_language(text, named) is None


@pytest.mark.parametrize(
    ("language", "text", "hint"),
    [
        ("predicates", "price === 5", None),
        ("predicates", 'material = "oak"', "write 'oak'; comparing two attributes is not supported"),
        ("predicates", "tags[0] = 1", TAGS),
        ("predicates", "price between 5", None),
        ("xpath", "price == 5", None),
        ("xpath", "//a[b == 1]", None),
        ("gql", "SELEKT ?x WHERE (?x, dc:title, ?t)", "did you mean SELECT?"),
        ("gql", "SELECT ?x WHERE (?x, dc:title, oak)", "write a string in quotes: 'oak'"),
    ],
)
def test_parse_error_in_named_language_keeps_own_hint(language: str, text: str, hint: str | None) -> None:
    with pytest.raises(SubscriptionError) as problem:
        PARSERS[language](text)
    assert problem.value.hint == hint


@pytest.mark.parametrize(
    ("named", "hint"),
    [
        ("sparql", "graph patterns of SPARQL are accepted: name the language gql"),
        ("SPARQL", "graph patterns of SPARQL are accepted: name the language gql"),
        ("GQL", "did you mean 'gql'?"),
        ("predicate", "did you mean 'predicates'?"),
        ("sql", None),
        ("prose", None),
        ("", None),
    ],
)
def test_hint_to_name_unknown_language_suggests_similar_name(named: str, hint: str | None) -> None:
    assert hint_to_name(named, PARSERS) == hint
