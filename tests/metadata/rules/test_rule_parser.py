"""The rule language: round trips from trees to texts, limits, and hostile texts."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.pairs import read_pairs
from tests.support.paths import PAIRS_FOLDER, ROOT
from tests.support.stores.cycle_providers import SCHEMA
from tests.support.strategies.any_text import check_text, check_words
from tests.support.strategies.rules import rules
from tidings.core.limits import limits_from
from tidings.core.source_text import Span
from tidings.errors import CheckProblem, NotSupported, SubscriptionError, SyntaxProblem, TooLarge
from tidings.metadata.rules.rule_errors import SUPPORTED
from tidings.metadata.rules.rule_parser import Limits, parse_query, parse_rule
from tidings.metadata.rules.syntax import (
    And,
    Comparison,
    Constant,
    Operator,
    Query,
    Rule,
    Step,
    Variable,
    format_rule,
)
from tidings.metadata.rules.syntax import Path as RulePath
from tidings.metadata.rules.validation import check_query, check_rule


@given(rules(SCHEMA))
def test_format_rule_round_trip_restores_tree(tree: Rule) -> None:
    assert parse_rule(format_rule(tree)) == tree


NAMES = st.sampled_from(["A", "Order", "a b", "x.y", "größe", "search", "p:a", "-"])


@given(NAMES, NAMES, st.text(st.characters(exclude_categories=["Cs"])), st.booleans())
def test_format_rule_round_trip_restores_any_names_and_strings(
    extension: str, property: str, value: str, several: bool
) -> None:
    left = RulePath("c", (Step(property, several), Step(extension)))
    tree = Rule((Variable(extension, "c"),), "c", Comparison(left, Operator.UNEQUAL, Constant(value)))
    assert parse_rule(format_rule(tree)) == tree


@given(rules(SCHEMA), st.integers(1, 100), st.booleans())
def test_format_rule_round_trip_restores_query(rule: Rule, limit: int, falls: bool) -> None:
    path = RulePath(rule.register, (Step("serverPort"),))
    tree = Query(rule.searched, rule.register, rule.where, (path,), ((path, falls),), limit)
    assert parse_query(format_rule(tree)) == tree


def test_parse_rule_gives_tree() -> None:
    assert parse_rule("search A a, B b register b where 5 < a.x?.y and b = <u>") == Rule(
        (Variable("A", "a"), Variable("B", "b")),
        "b",
        And(
            (
                Comparison(RulePath("a", (Step("x", any=True), Step("y"))), Operator.GREATER, Constant(5)),
                Comparison(RulePath("b"), Operator.EQUAL, Constant("u", is_resource=True)),
            )
        ),
    )


def test_parse_rule_spans_cover_their_text() -> None:
    text = ' search  A a , "B c"  b register a\n where ( 5 <  a.x?. y and a = <u>) '
    tree = parse_rule(text)
    assert [_at(text, each.span) for each in tree.searched] == ["A a", '"B c"  b']
    first, second = tree.where.parts
    assert (_at(text, first.span), _at(text, second.span)) == ("5 <  a.x?. y", "a = <u>")
    assert _at(text, first.left.span) == "a.x?. y"
    assert [_at(text, step.span) for step in first.left.steps] == ["x?", "y"]
    assert _at(text, first.right.span) == "5"


def _at(text: str, span: Span) -> str:
    return text[span.start : span.end]


WORDS = [
    *("search", "SEARCH", "A", "a", "b", ",", "register", "where", "and", "or", "not", "contains", "(", ")"),
    *("a.x", ".", "?", "=", "!=", "<", ">=", "==", "&&", "'x'", '"y"', "5", "-", "2004-05-31", "2004-13-01"),
    *("<u>", "true", "select", "order", "by", "desc", "limit", "1e400", "'", '"', "é", "²", "\\", "\n", "+"),
]
BEGINS = ["", "search A a register a where ", "search A a "]


@given(st.sampled_from(BEGINS), st.lists(st.sampled_from(WORDS), max_size=12), st.sampled_from(["", " "]))
def test_parse_any_words_gives_tree_or_position(begins: str, words: list[str], space: str) -> None:
    check_words(parse_rule, begins + space.join(words))
    check_words(parse_query, begins + space.join(words))


@given(st.sampled_from(BEGINS), st.text(max_size=30))
def test_parse_any_text_gives_tree_or_error(begins: str, text: str) -> None:
    check_text(parse_rule, begins + text)
    check_text(parse_query, begins + text)


def test_parse_rule_error_has_fields() -> None:
    with pytest.raises(SyntaxProblem) as error:
        parse_rule("search A a register a where not a.x = 1")
    assert error.value.facts() == {
        "error": "NotSupported",
        "what": "'not' is not supported in rules",
        "place": {"line": 1, "column": 29, "length": 3},
        "accepted": SUPPORTED,
        "hint": "write the opposite operator: != instead of not =, <= instead of not >",
    }


DEFAULTS = asdict(Limits())
BEGIN = "search A a register a where "
LIMITED = [
    ("variables", "search A a, A b register a", "search A a, A b, A c register a", "too many variables"),
    ("steps", BEGIN + "a.x.y = 1", BEGIN + "a.x.y = a.z", "too many steps"),
    ("predicates", BEGIN + "a = 1 and a = 2", BEGIN + "a = 1 and (a = 2 or a = 3)", "too many predicates"),
    ("nesting", BEGIN + "((a = 1))", BEGIN + "(((a = 1)))", "nested too deeply"),
]


@pytest.mark.parametrize("number", ["0", "2147483648", "9" * 5_000])
def test_parse_query_invalid_limit_is_rejected(number: str) -> None:
    with pytest.raises(SyntaxProblem):
        parse_query(f"search C c limit {number}")


@pytest.mark.parametrize(("limit", "text", "more", "message"), LIMITED, ids=[each[0] for each in LIMITED])
def test_parse_rule_exceeding_limit_is_rejected(limit: str, text: str, more: str, message: str) -> None:
    assert parse_rule(text, Limits(**{limit: 2}))
    with pytest.raises(SyntaxProblem, match=rf"{message} \(column \d+\); accepted: at most 2 "):
        parse_rule(more, Limits(**{limit: 2}))


def test_limits_from_environment_replace_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDINGS_RULES_LIMITS", "steps=128 alternatives=1000")
    assert limits_from("TIDINGS_RULES_LIMITS", Limits) == Limits(steps=128, alternatives=1000)


def test_parse_rule_too_long_is_rejected() -> None:
    with pytest.raises(SyntaxProblem, match="too long; received 26 characters; accepted: at most 20"):
        parse_rule("search A a register a     ", Limits(length=20))


def test_check_rule_too_many_alternatives_is_rejected() -> None:
    either = "(c.serverPort = 1 or c.serverPort = 2)"
    text = "search CycleProvider c register c where " + " and ".join([either] * 4)
    assert check_rule(parse_rule(text), SCHEMA, {}, text, alternatives=16)
    with pytest.raises(TooLarge, match="received 16 rules without 'or'; accepted: at most 15"):
        check_rule(parse_rule(text), SCHEMA, {}, text, alternatives=15)


PAGE = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
ROWS = re.findall(
    r"^\| `(.*?)` \| (.*?) \| ?(.*?) ?\|$", PAGE.partition("## Rejected rules")[2], re.MULTILINE
)
REJECTED = [row for row in ROWS if row[0] not in DEFAULTS]


def _complete_rule(text: str) -> str:
    """Complete a row of the docs to a rule: without `search` it is a condition."""
    text = text.replace("\\|", "|")
    return text if text.startswith("search") else f"search CycleProvider c register c where {text}"


def _problem(text: str) -> SubscriptionError | None:
    try:
        if " select " in text or " order by " in text:
            check_query(parse_query(text), SCHEMA, {"Passau": "CycleProvider"}, text)
        else:
            check_rule(parse_rule(text), SCHEMA, {"Passau": "CycleProvider"}, text)
    except SubscriptionError as problem:
        return problem
    return None


@pytest.mark.parametrize(("text", "message", "hint"), REJECTED, ids=str)
def test_docs_show_actual_messages(text: str, message: str, hint: str) -> None:
    problem = _problem(_complete_rule(text))
    assert problem is not None
    assert (problem.what, problem.hint or "") == (message.replace("\\|", "|"), hint)


@pytest.mark.parametrize("limit", DEFAULTS)
def test_docs_name_every_limit(limit: str) -> None:
    assert f"| `{limit}` | {DEFAULTS[limit]:,} |" in PAGE


def test_docs_list_every_rejection() -> None:
    files = (PAIRS_FOLDER / "rules.txt", Path(__file__).with_name("checking.txt"))
    texts = [pair.given.removeprefix("query: ") for file in files for pair in read_pairs(file)]
    messages = {_generalize(problem) for text in texts if (problem := _rejection(text))}
    documented = {
        _generalize(problem) for text, _, _ in REJECTED if (problem := _problem(_complete_rule(text)))
    }
    assert messages - documented == set()


def _rejection(text: str) -> SubscriptionError | None:
    problem = _problem(text)
    return problem if isinstance(problem, NotSupported | CheckProblem) else None


def _generalize(problem: SubscriptionError) -> str:
    """Return the message without its names and kinds of values."""
    general = re.sub(r"'[^']*'|\w+\(\)|[A-Z]\w+", "_", problem.what)
    return re.sub(
        r"a (number|string|boolean|date|resource)\b|(string|number|boolean|resource)s", "_", general
    )


def test_parse_rule_number_beyond_double_is_rejected() -> None:
    with pytest.raises(SyntaxProblem, match=r"the number is too large \(column 33\)"):
        parse_rule(f"search A a register a where a < {'9' * 400}")


def test_parse_rule_lone_surrogate_is_rejected() -> None:
    with pytest.raises(SyntaxProblem, match=r"half a character \(column 34\); received U\+D800"):
        parse_rule("search A a register a where a = '\ud800'")
