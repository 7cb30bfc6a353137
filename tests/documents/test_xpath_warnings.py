"""Warnings about XPaths that compile: a text that is said to match no document matches none."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.documents.test_explanation import Engines
from tests.documents.test_explanation import engines as engines
from tests.support.strategies.xpaths import documents, expressions
from tidings.documents.explanation import matches
from tidings.documents.model import Axis, NodeKind
from tidings.documents.xml_decoder import decode
from tidings.documents.xpath.xpath_tree import And, Expression, Path, PathTest, Step, ValueOperator, show
from tidings.documents.xpath_warnings import NEVER
from tidings.errors import CheckProblem, TooLarge
from tidings.kinds import LANGUAGES
from tidings.matching.compiler.language import Context


def warned(text: str) -> list[str]:
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
def test_warnings_text_that_cannot_match_says_why(text: str, what: str) -> None:
    assert any(message.startswith(what) for message in warned(text))


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
def test_warnings_text_that_can_match_has_none(text: str) -> None:
    assert warned(text) == []


def test_warnings_path_in_brackets_that_begins_at_the_document_suggests_the_relative_one() -> None:
    assert warned("//b[//c]") == [
        "'//c' begins at the document, not at 'b' (column 5)\n  //b[//c]\n      ^^^   did you mean .//c?"
    ]
    assert warned("//b[not(/p > 5)]")[0].endswith("^^   did you mean p?")
    [outer, inner] = warned("//paper[//author[/name]]")
    assert "not at 'paper'" in outer and "not at 'author'" in inner


NAMES = st.sampled_from(["a", "b", "*"])
TESTS = st.sampled_from(
    [(ValueOperator.EQUAL, "v"), (ValueOperator.EQUAL, 5.0), (ValueOperator.LESS, 5.0), (None, None)]
)


@st.composite
def conjunctions(draw: st.DrawFn) -> Expression:
    """Texts that ask two things of one element or attribute, so that many of them are impossible."""
    found = []
    for _ in range(2):
        attribute = [Step(Axis.CHILD, NodeKind.ATTRIBUTE, draw(st.sampled_from(["x", "y"])))]
        steps = [Step(Axis.CHILD, NodeKind.ELEMENT, draw(NAMES)), *draw(st.sampled_from([[], attribute]))]
        found.append(PathTest(Path(True, tuple(steps)), *draw(TESTS)))
    return And(tuple(found))


def test_warnings_text_said_to_match_no_document_matches_none(engines: Engines) -> None:
    flagged: Counter[bool] = Counter()

    @settings(max_examples=10 * settings.default.max_examples)
    @given(documents(), conjunctions() | expressions())
    def check(body: str, tree: Expression) -> None:
        text = show(tree)
        try:
            never = any(message.startswith(NEVER) for message in warned(text))
        except (CheckProblem, TooLarge):
            return
        flagged[never] += 1
        if never:
            engines.read(body)
            assert not matches(tree, decode(body.encode()))
            assert "declare" in text or engines.say(text) == (False, False)

    check()
    assert flagged[True] > 5 and flagged[False] > 5
