"""The parser of XPaths: round trips of trees, adversarial texts, limits, documented errors."""

from __future__ import annotations

import re
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.pairs import read_pairs
from tests.support.paths import PAIRS_FOLDER, ROOT
from tests.support.strategies.any_text import check_text, check_words
from tests.support.strategies.xpaths import DECLARATIONS, Writer, expressions
from tidings.core.source_text import Span
from tidings.documents.model import Axis, NodeKind
from tidings.documents.xpath.xpath_errors import SUPPORTED
from tidings.documents.xpath.xpath_parser import parse
from tidings.documents.xpath.xpath_paths import Limits
from tidings.documents.xpath.xpath_tree import Expression, Not, PathTest, Step, ValueOperator, show
from tidings.documents.xpath.xpath_tree import Path as XPath
from tidings.documents.xpath_compiler import compile_xpath
from tidings.errors import CheckProblem, NotSupported, SubscriptionError, SyntaxProblem
from tidings.matching.compiler.language import Context


@given(expressions())
def test_parse_of_show_is_same_tree(tree: Expression) -> None:
    assert parse(show(tree)) == tree


@given(expressions(), st.integers(0, 2**32))
def test_parse_equivalent_spellings_give_same_tree(tree: Expression, seed: int) -> None:
    assert parse(DECLARATIONS + Writer(seed).write(tree)) == tree


def test_parse_gives_tree() -> None:
    assert parse('/stock[not(@closed)]//price >= "50"') == PathTest(
        XPath(
            True,
            (
                Step(
                    Axis.CHILD,
                    NodeKind.ELEMENT,
                    "stock",
                    (Not(PathTest(XPath(False, (Step(Axis.CHILD, NodeKind.ATTRIBUTE, "closed"),)))),),
                ),
                Step(Axis.DESCENDANT, NodeKind.ELEMENT, "price"),
            ),
        ),
        ValueOperator.AT_LEAST,
        50.0,
    )


WORDS = [
    *("a", "b", "p:a", "*", "@", "/", "//", ".", "..", "[", "]", "(", ")", "text()", "::", "child", "self"),
    *("=", "!=", "<", ">=", "and", "or", "AND", "not", "not(", "contains(", "starts-with(", "count(", ","),
    *(
        "'x'",
        '"y"',
        "5",
        "-",
        ".5",
        "+",
        "|",
        "$",
        "'",
        '"',
        "&&",
        "é",
        "\\",
        "\n",
        ";",
        "declare",
        "namespace",
    ),
]


@given(st.lists(st.sampled_from(WORDS), max_size=14), st.sampled_from(["", " "]))
def test_parse_any_words_is_tree_or_error_with_place(words: list[str], space: str) -> None:
    check_words(parse, space.join(words))


@given(st.text(max_size=30))
def test_parse_any_text_is_tree_or_error(text: str) -> None:
    check_text(parse, text)


def test_parse_spans_cover_parts_of_text() -> None:
    text = '  //stock [ 5 <  price/@p and contains( .//b , "x")]/ child::c/text()  or not(d)'
    tree = parse(text)
    path, other = [part.path if isinstance(part, PathTest) else part.part.path for part in tree.parts]
    assert [_text_at(text, step.span) for step in path.steps] == ["stock", "child::c", "text()"]
    assert _text_at(text, path.span) == text.partition("  or")[0].strip()
    assert _text_at(text, other.span) == "d"
    comparison, inside = path.steps[0].predicates
    assert _text_at(text, comparison.span) == "5 <  price/@p"
    assert _text_at(text, comparison.path.span) == "price/@p"
    assert [_text_at(text, step.span) for step in comparison.path.steps] == ["price", "@p"]
    assert _text_at(text, inside.span) == 'contains( .//b , "x")'
    assert _text_at(text, inside.path.span) == ".//b"


def _text_at(text: str, span: Span) -> str:
    return text[span.start : span.end]


@given(expressions(), st.integers(0, 2**32))
def test_parse_text_of_predicate_span_is_same_predicate(tree: Expression, seed: int) -> None:
    """The text that the span of a comparison covers means the same inside another predicate."""
    text = DECLARATIONS + Writer(seed).write(tree)
    for test in _path_tests(parse(text)):
        parsed = parse(f"{DECLARATIONS}/around[{_text_at(text, test.span)}]").path.steps[0].predicates[0]
        assert parsed.operator == test.operator and parsed.literal == test.literal
        assert parsed.path.steps == test.path.steps


def _path_tests(tree: Expression) -> list[PathTest]:
    if isinstance(tree, Not):
        return _path_tests(tree.part)
    if not isinstance(tree, PathTest):
        return [test for part in tree.parts for test in _path_tests(part)]
    inner = [
        test for step in tree.path.steps for predicate in step.predicates for test in _path_tests(predicate)
    ]
    return [tree, *inner]


def test_parse_error_facts_are_complete() -> None:
    with pytest.raises(SyntaxProblem) as problem:
        parse("/a/b[2]")
    assert problem.value.facts() == {
        "error": "NotSupported",
        "what": "positions are not supported in subscriptions",
        "place": {"line": 1, "column": 6, "length": 1},
        "accepted": SUPPORTED,
        "hint": "describe the element instead: [name = 'value']",
    }


DEFAULTS = asdict(Limits())
LIMITED = [
    ("steps", "/a/b", "/c", r"too many steps \(column 1\); accepted: at most 3 in a subscription"),
    ("predicates", "/a[b][c]", "[d][e = 1]", r"too many predicates \(column 13\); accepted: at most 3 in a"),
    (
        "nesting",
        "/a[b[c[d]]]",
        "[e[(f[g])]]",
        r"nested too deeply \(column 17\); accepted: at most 3 levels of",
    ),
    ("length", "/a", "/bcde", r"too long; received 7 characters; accepted: at most 3"),
]


@pytest.mark.parametrize(("limit", "text", "more", "message"), LIMITED, ids=[each[0] for each in LIMITED])
def test_parse_beyond_configured_limit_is_rejected(limit: str, text: str, more: str, message: str) -> None:
    """Each limit is configurable. Steps of all paths count together; each pair of brackets is a predicate."""
    assert parse(text, Limits(**{limit: 3}))
    with pytest.raises(SyntaxProblem, match=message):
        parse(text + more + "/x" * (limit == "steps"), Limits(**{limit: 3}))


def test_parse_default_limits() -> None:
    assert parse("/a" * 64) and parse("/a[" + " and ".join([". = 1"] * 62 + ["(.)", "b[c]"]) + "]")
    with pytest.raises(SyntaxProblem, match="too many steps"):
        parse("/a" * 65)
    with pytest.raises(SyntaxProblem, match="too many predicates"):
        parse("/a[" + " and ".join([". = 1"] * 65) + "]")
    assert parse("(" * 32 + "/a" + ")" * 32) == parse("/a")
    for opening, closing in (("(", ")"), ("/a[", "]"), ("not(", ")")):
        with pytest.raises(SyntaxProblem, match="nested too deeply"):
            parse(opening * 1900 + "/a" + closing * 1900)
    with pytest.raises(
        SyntaxProblem, match=r"too long; received 10,002 characters; accepted: at most 10,000"
    ):
        parse("/a" * 5001)


PAGE = (ROOT / "docs" / "xpath.md").read_text(encoding="utf-8")
ROWS = re.findall(
    r"^\| `(.*?)` \| (.*?) \|(?: (.*?) \|)?$", PAGE.partition("## Rejected subscriptions")[2], re.MULTILINE
)


@pytest.mark.parametrize(
    ("text", "message", "hint"), [row for row in ROWS if row[0] not in DEFAULTS], ids=str
)
def test_docs_rejected_texts_have_documented_message(text: str, message: str, hint: str) -> None:
    with pytest.raises(SubscriptionError) as problem:
        compile_xpath(Context(text.replace("\\|", "|")))
    what = f"{message} not supported in subscriptions" if hint else message
    assert (problem.value.what, problem.value.hint if hint else "") == (what, hint)


@pytest.mark.parametrize("limit", DEFAULTS)
def test_limits_are_documented_with_defaults(limit: str) -> None:
    assert f"| `{limit}` | {DEFAULTS[limit]:,} |" in PAGE


def test_docs_contain_every_error_of_pairs() -> None:
    pairs = read_pairs(PAIRS_FOLDER / "xpath.txt")
    raised = {_without_names(problem) for pair in pairs if (problem := _find_problem(pair.given))}
    documented = {
        _without_names(problem) for text, _, _ in ROWS if (problem := _find_problem(text.replace("\\|", "|")))
    }
    assert raised - documented == set()


def _find_problem(text: str) -> SubscriptionError | None:
    try:
        parse(text)
    except SubscriptionError as problem:
        return problem if isinstance(problem, NotSupported | CheckProblem) else None
    return None


def _without_names(problem: SubscriptionError) -> str:
    return re.sub(r"(function|axis|prefix) \S+", r"\1", problem.what)


def test_parse_too_large_number_is_rejected() -> None:
    for written in ("9" * 400, f'"-{"9" * 400}"'):
        with pytest.raises(SyntaxProblem, match=r"the number is too large \(column 6\)"):
            parse(f"/a < {written}")


def test_parse_lone_surrogate_is_rejected() -> None:
    with pytest.raises(SyntaxProblem, match=r"half a character \(column 7\); received U\+D800"):
        parse("/a = '\ud800'")


def test_parse_empty_text_is_rejected() -> None:
    for text in ("", " \n\t"):
        with pytest.raises(SyntaxProblem, match=r"the text is empty \((line 1, )?column 1\)"):
            parse(text)


def test_show_literal_with_both_kinds_of_quotes_is_rejected() -> None:
    with pytest.raises(ValueError, match="both kinds of quotes"):
        show(PathTest(XPath(True, (Step(Axis.CHILD, NodeKind.ELEMENT, "a"),)), ValueOperator.EQUAL, "'\""))
