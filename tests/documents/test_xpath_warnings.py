"""Warnings about valid XPaths: a text that is reported to match no document matches none."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.documents.test_reference_matcher import Engines
from tests.documents.test_reference_matcher import engines as engines
from tests.support.strategies.xpaths import documents, expressions
from tidings.documents.model import Axis, NodeKind
from tidings.documents.reference_matcher import matches
from tidings.documents.xml_decoder import decode
from tidings.documents.xpath.xpath_tree import And, Expression, Path, PathTest, Step, ValueOperator, show
from tidings.documents.xpath_warnings import NEVER
from tidings.errors import CheckProblem, TooLarge
from tidings.kinds import LANGUAGES
from tidings.matching.compiler.language import Context


def warning_messages(text: str) -> list[str]:
    return [each.message() for each in LANGUAGES["xpath"].warnings(Context(text, None))]


ONE_VALUE, AT_THE_TOP = f"{NEVER}: one value cannot satisfy both", f"{NEVER}: it has one element at the top"
IMPOSSIBLE = [
    (
        '/stock/price = "50" and /quote/price = "50"',
        AT_THE_TOP + ", which cannot be both 'stock' and 'quote'",
    ),
    ("/stock[/p]", AT_THE_TOP),
    ("/a and (/b or /c)", AT_THE_TOP),
    ('declare namespace p = "u"; /p:a and /a', AT_THE_TOP),
    ('//a[@id = "1" and @id = "2"]', ONE_VALUE + ' @id = "1" and @id = "2"'),
    ('/a/@x = "1" and /*/@x = "2"', ONE_VALUE),
    ('//a[. = "abc" and . > 5]', ONE_VALUE),
    ("//a[@x > 6 and @x < 4]", ONE_VALUE),
    ("//a[@x >= 4 and @x < 4]", ONE_VALUE),
    ("//a[@x = 5 and @x != 5]", ONE_VALUE),
    ('//a[@x = "oak"][contains(@x, "z")]', ONE_VALUE),
    ('//a[. = "5" and not(. < 6)]', ONE_VALUE),
    ("//a[@x and not(@x)]", f"{NEVER}: '@x' is required and excluded"),
    ("//a[b and not(*)]", f"{NEVER}: 'b' is required and excluded"),
    ("//a/b and not(//b)", f"{NEVER}: 'b' is required and excluded"),
    ("/@x", f"{NEVER}: '@x' is inside an element"),
    ('//a/text() = ""', f"{NEVER}: no text() is empty"),
]


@pytest.mark.parametrize(("text", "what"), IMPOSSIBLE)
def test_warnings_impossible_text_names_reason(text: str, what: str) -> None:
    assert any(message.startswith(what) for message in warning_messages(text))


POSSIBLE = [
    '//a[b = "1" and b = "2"]',
    '//a[@* = "1" and @* = "2"]',
    "/a or /b",
    "/a and /b or /c",
    "/a and /*",
    "//a[@x >= 4 and @x <= 4]",
    "//a[@x != 5 and not(@x = 6)]",
    "//a[.//b and not(b)]",
    "//a/b and not(/b)",
    "//a[@x and not(@x = 5)]",
    "/feed/entry[/feed/title]",
]


@pytest.mark.parametrize("text", POSSIBLE)
def test_warnings_possible_text_has_none(text: str) -> None:
    assert warning_messages(text) == []


def test_warnings_absolute_path_in_predicate_suggests_relative_path() -> None:
    assert warning_messages("//b[//c]") == [
        "'//c' begins at the document, not at 'b' (column 5)\n  //b[//c]\n      ^^^   did you mean .//c?"
    ]
    assert warning_messages("//b[not(/p > 5)]")[0].endswith("^^   did you mean p?")
    [outer, inner] = warning_messages("//paper[//author[/name]]")
    assert "not at 'paper'" in outer and "not at 'author'" in inner


NAMES = st.sampled_from(["a", "b", "*"])
TESTS = st.sampled_from(
    [(ValueOperator.EQUAL, "v"), (ValueOperator.EQUAL, 5.0), (ValueOperator.LESS, 5.0), (None, None)]
)


@st.composite
def conjunctions(draw: st.DrawFn) -> Expression:
    """Texts with two conditions on one element or attribute, so that many of them are impossible."""
    tests = []
    for _ in range(2):
        attribute = [Step(Axis.CHILD, NodeKind.ATTRIBUTE, draw(st.sampled_from(["x", "y"])))]
        steps = [Step(Axis.CHILD, NodeKind.ELEMENT, draw(NAMES)), *draw(st.sampled_from([[], attribute]))]
        tests.append(PathTest(Path(True, tuple(steps)), *draw(TESTS)))
    return And(tuple(tests))


def test_warnings_never_matching_text_matches_no_document(engines: Engines) -> None:
    flagged: Counter[bool] = Counter()

    @settings(max_examples=20 * settings.default.max_examples)
    @given(documents(), conjunctions() | expressions())
    def check(body: str, tree: Expression) -> None:
        text = show(tree)
        try:
            never = any(message.startswith(NEVER) for message in warning_messages(text))
        except (CheckProblem, TooLarge):
            return
        flagged[never] += 1
        if never:
            engines.read(body)
            assert not matches(tree, decode(body.encode()))
            assert "declare" in text or engines.evaluate(text) == (False, False)

    check()
    assert flagged[True] > 5 and flagged[False] > 5
