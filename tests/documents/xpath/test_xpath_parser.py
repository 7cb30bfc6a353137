"""The language of documents: the way back from trees to texts, and texts that want to break it."""

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
def test_a_tree_shown_reads_back(tree: Expression) -> None:
    assert parse(show(tree)) == tree


@given(expressions(), st.integers(0, 2**32))
def test_the_ways_to_write_a_tree_are_read_alike(tree: Expression, seed: int) -> None:
    assert parse(DECLARATIONS + Writer(seed).write(tree)) == tree


def test_a_tree() -> None:
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
def test_any_words_give_a_tree_or_a_place(words: list[str], space: str) -> None:
    check_words(parse, space.join(words))


@given(st.text(max_size=30))
def test_any_text_gives_a_tree_or_a_problem(text: str) -> None:
    check_text(parse, text)


def test_spans_underline_what_they_name() -> None:
    text = '  //stock [ 5 <  price/@p and contains( .//b , "x")]/ child::c/text()  or not(d)'
    tree = parse(text)
    path, other = [part.path if isinstance(part, PathTest) else part.part.path for part in tree.parts]
    assert [_at(text, step.span) for step in path.steps] == ["stock", "child::c", "text()"]
    assert _at(text, path.span) == text.partition("  or")[0].strip()
    assert _at(text, other.span) == "d"
    compared, inside = path.steps[0].predicates
    assert _at(text, compared.span) == "5 <  price/@p"
    assert _at(text, compared.path.span) == "price/@p"
    assert [_at(text, step.span) for step in compared.path.steps] == ["price", "@p"]
    assert _at(text, inside.span) == 'contains( .//b , "x")'
    assert _at(text, inside.path.span) == ".//b"


def _at(text: str, span: Span) -> str:
    return text[span.start : span.end]


@given(expressions(), st.integers(0, 2**32))
def test_the_text_of_a_predicate_is_the_predicate(tree: Expression, seed: int) -> None:
    """What a span of a comparison underlines says the same by itself, where it stands in a predicate."""
    text = DECLARATIONS + Writer(seed).write(tree)
    for found in _founds(parse(text)):
        again = parse(f"{DECLARATIONS}/around[{_at(text, found.span)}]").path.steps[0].predicates[0]
        assert again.operator == found.operator and again.literal == found.literal
        assert again.path.steps == found.path.steps


def _founds(tree: Expression) -> list[PathTest]:
    if isinstance(tree, Not):
        return _founds(tree.part)
    if not isinstance(tree, PathTest):
        return [found for part in tree.parts for found in _founds(part)]
    inner = [held for step in tree.path.steps for predicate in step.predicates for held in _founds(predicate)]
    return [tree, *inner]


def test_refusals_are_fields_too() -> None:
    with pytest.raises(SyntaxProblem) as refused:
        parse("/a/b[2]")
    assert refused.value.facts() == {
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


@pytest.mark.parametrize(("limit", "text", "more", "said"), LIMITED, ids=[each[0] for each in LIMITED])
def test_limits(limit: str, text: str, more: str, said: str) -> None:
    """Each limit is a setting. Steps of all paths count together, and what stands in brackets is a predicate."""
    assert parse(text, Limits(**{limit: 3}))
    with pytest.raises(SyntaxProblem, match=said):
        parse(text + more + "/x" * (limit == "steps"), Limits(**{limit: 3}))


def test_limits_by_default() -> None:
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
    r"^\| `(.*?)` \| (.*?) \|(?: (.*?) \|)?$", PAGE.partition("## What is refused")[2], re.MULTILINE
)


@pytest.mark.parametrize(("text", "said", "hint"), [row for row in ROWS if row[0] not in DEFAULTS], ids=str)
def test_the_docs_say_what_is_said(text: str, said: str, hint: str) -> None:
    with pytest.raises(SubscriptionError) as refused:
        compile_xpath(Context(text.replace("\\|", "|")))
    what = f"{said} not supported in subscriptions" if hint else said
    assert (refused.value.what, refused.value.hint if hint else "") == (what, hint)


@pytest.mark.parametrize("limit", DEFAULTS)
def test_the_docs_name_every_limit(limit: str) -> None:
    assert f"| `{limit}` | {DEFAULTS[limit]:,} |" in PAGE


def test_every_refusal_is_in_the_docs() -> None:
    pairs = read_pairs(PAIRS_FOLDER / "xpath.txt")
    said = {_general(problem) for pair in pairs if (problem := _problem(pair.given))}
    documented = {_general(problem) for text, _, _ in ROWS if (problem := _problem(text.replace("\\|", "|")))}
    assert said - documented == set()


def _problem(text: str) -> SubscriptionError | None:
    try:
        parse(text)
    except SubscriptionError as problem:
        return problem if isinstance(problem, NotSupported | CheckProblem) else None
    return None


def _general(problem: SubscriptionError) -> str:
    return re.sub(r"(function|axis|prefix) \S+", r"\1", problem.what)


def test_numbers_that_no_double_holds_are_refused() -> None:
    for written in ("9" * 400, f'"-{"9" * 400}"'):
        with pytest.raises(SyntaxProblem, match=r"the number is too large \(column 6\)"):
            parse(f"/a < {written}")


def test_half_characters_are_refused() -> None:
    with pytest.raises(SyntaxProblem, match=r"half a character \(column 7\); received U\+D800"):
        parse("/a = '\ud800'")


def test_empty_texts_are_refused() -> None:
    for text in ("", " \n\t"):
        with pytest.raises(SyntaxProblem, match=r"the text is empty \((line 1, )?column 1\)"):
            parse(text)


def test_a_literal_with_both_kinds_of_quotes_cannot_be_shown() -> None:
    with pytest.raises(ValueError, match="both kinds of quotes"):
        show(PathTest(XPath(True, (Step(Axis.CHILD, NodeKind.ELEMENT, "a"),)), ValueOperator.EQUAL, "'\""))
