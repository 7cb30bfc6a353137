"""Text pairs of every language: a text, and its canonical form or error message."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.pairs import Pair, outcome, read_pairs
from tests.support.paths import PAIRS_FOLDER
from tidings.documents.xpath import xpath_parser
from tidings.errors import SubscriptionError
from tidings.events import predicate_parser as predicates
from tidings.events.predicate_tree import show_tree
from tidings.graphs.patterns import pattern_parser
from tidings.metadata.rules import rule_parser

CANONICAL: dict[str, Callable[[str], str]] = {
    "predicates": lambda text: show_tree(predicates.parse(text)),
    "xpath": lambda text: xpath_parser.show(xpath_parser.parse(text)),
    "gql": lambda text: pattern_parser.show(pattern_parser.parse(text)),
    "rules": lambda text: rule_parser.format_rule(rule_parser.parse_rule(text)),
    "queries": lambda text: rule_parser.format_rule(rule_parser.parse_query(text)),
}
PAIRS = [
    pytest.param(language, pair, id=f"{language}: {pair}")
    for language in CANONICAL
    for pair in read_pairs(PAIRS_FOLDER / f"{language}.txt")
]


def parse_outcome(language: str, text: str) -> str:
    try:
        return outcome(CANONICAL[language](text))
    except SubscriptionError as problem:
        return outcome(problem)


@pytest.mark.parametrize(("language", "pair"), PAIRS)
def test_parse_gives_canonical_form_or_error(language: str, pair: Pair) -> None:
    assert parse_outcome(language, pair.given) == pair.expected


@pytest.mark.parametrize(("language", "pair"), [one for one in PAIRS if "\n" not in one.values[1].expected])
def test_parse_of_canonical_form_is_idempotent(language: str, pair: Pair) -> None:
    assert parse_outcome(language, pair.expected) == pair.expected
