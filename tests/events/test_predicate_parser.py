"""The parser of predicates: round trips of trees, adversarial texts, limits, documented operators."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lark.exceptions import UnexpectedInput
from lark.lexer import BasicLexer

from tests.support.paths import ROOT
from tests.support.strategies.any_text import check_text, check_words
from tests.support.strategies.events import texts, trees, untidy
from tidings.core.source_text import Span
from tidings.errors import SyntaxProblem
from tidings.events.operators import BY_SPELLING, OPERATORS
from tidings.events.parse_failure import accepted_by
from tidings.events.predicate_parser import MAX_DEPTH, MAX_LENGTH, _parser, parse
from tidings.events.predicate_tree import Comparison, Tree, show_tree


@given(trees())
def test_parse_of_show_tree_is_same_tree(tree: Tree) -> None:
    assert parse(show_tree(tree)) == tree


@given(texts(), st.integers(0, 11))
def test_parse_ignores_spaces_and_case(text: str, seed: int) -> None:
    assert parse(untidy(text, seed)) == parse(text)


WORDS = [
    *("a", "and", "or", "not", "in", "(", ")", ",", "=", "!=", "<", "between", "exists", "is a", "contains"),
    *("'x'", "5", "2004-05-31", "true", "'", '"', "==", "&&", "é", "\\", ".", "-", "\n"),
]


@given(st.lists(st.sampled_from(WORDS), max_size=12), st.sampled_from(["", " "]))
def test_parse_any_words_is_tree_or_error_with_place(words: list[str], space: str) -> None:
    check_words(parse, space.join(words))


@given(st.lists(st.sampled_from(WORDS), max_size=12))
def test_accepted_by_agrees_with_lark(words: list[str]) -> None:
    """`accepts` of lark is the specification, but it takes longer than parsing the text."""
    parsing = _parser().parse_interactive(" ".join(words))
    try:
        for _ in parsing.iter_parse():
            assert accepted_by(parsing) == parsing.accepts()
    except UnexpectedInput:
        pass
    assert accepted_by(parsing) == parsing.accepts()


@pytest.mark.parametrize("slip", ["b === 5", "b = oak", "b = 'oak", "(b = 1", "b"])
def test_parse_long_text_with_error_at_end_reads_each_token_once(
    slip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, next_token = [0], BasicLexer.next_token

    def count(*args: object) -> object:
        read[0] += 1
        return next_token(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(BasicLexer, "next_token", count)
    text = " and ".join(f"a{number} < {number}" for number in range(500))
    parse(text)
    valid, read[0] = read[0], 0
    with pytest.raises(SyntaxProblem):
        parse(f"{text} and {slip}")
    assert read[0] <= valid + 8, "tokens of the error, and the end"


@given(st.text(max_size=30))
def test_parse_any_text_is_tree_or_error(text: str) -> None:
    check_text(parse, text)


def test_parse_spans_cover_parts_of_text() -> None:
    text = "  price   between 10  and 20"
    tree = parse(text)
    assert isinstance(tree, Comparison)
    assert _text_at(text, tree.spans.path) == "price"
    assert _text_at(text, tree.spans.operator) == "between"
    assert [_text_at(text, span) for span in tree.spans.literals] == ["10", "20"]
    assert _text_at(text, tree.spans.whole) == "price   between 10  and 20"


def _text_at(text: str, span: Span) -> str:
    return text[span.start : span.end]


def test_parse_long_text_is_rejected() -> None:
    long = " or ".join(["a = 1"] * 1200)
    assert parse(long[: MAX_LENGTH - 100].rpartition(" or ")[0])
    with pytest.raises(
        SyntaxProblem, match=r"too long; received 10,796 characters; accepted: at most 10,000"
    ):
        parse(long)


@pytest.mark.parametrize("opening", ["not ", "not (", "a = 1 and (b = 2 or ("])
def test_parse_deep_nesting_is_rejected(opening: str) -> None:
    def nested(times: int) -> str:
        return opening * times + "c = 3" + ")" * (opening.count("(") * times)

    levels = 1 if opening.startswith("not") else 2
    assert parse(nested((MAX_DEPTH - 1) // levels))
    times = MAX_LENGTH // (2 * len(opening))
    with pytest.raises(SyntaxProblem, match="nested too deeply"):
        parse(nested(times))


def test_parse_parentheses_do_not_count_as_depth() -> None:
    assert parse("(" * 4000 + "a = 1" + ")" * 4000) == parse("a = 1")
    with pytest.raises(SyntaxProblem, match="never closed"):
        parse("(" * 9000 + "a = 1")


def test_parse_lone_surrogate_is_rejected() -> None:
    with pytest.raises(SyntaxProblem, match=r"half a character \(column 6\); received U\+D800"):
        parse("a = '\ud800'")


def test_operators_have_unique_spellings() -> None:
    assert len(BY_SPELLING) == len(OPERATORS)
    assert {"=", "!=", "<", "<=", ">", ">=", "in", "is a"} < set(BY_SPELLING)
    assert all(operator.meaning.endswith(".") for operator in OPERATORS)


def test_operators_are_documented() -> None:
    page = (ROOT / "docs" / "predicates.md").read_text(encoding="utf-8")
    for operator in OPERATORS:
        assert f"| `{operator.spelling}` | {operator.meaning} |" in page


def test_parse_xpath_text_has_hint_to_language() -> None:
    with pytest.raises(SyntaxProblem, match="--language xpath"):
        parse("//stock[price > 5]")
