"""The composer gives the same plans as `compile_xpath` for any text, and composes the texts it should."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.strategies.xpaths import DECLARATIONS, Writer, branching, expressions
from tidings.documents.twigs import Twig, read_twig
from tidings.documents.xpath.xpath_parser import DEFAULT
from tidings.documents.xpath.xpath_tree import Expression, show
from tidings.documents.xpath_compiler import compile_xpath
from tidings.documents.xpath_composer import Composer
from tidings.documents.xpath_language import COMPOSED_FROM, XPathLanguage, cut
from tidings.errors import SubscriptionError
from tidings.matching.compiler.blocks import unpack_irregular
from tidings.matching.compiler.language import DEFAULT_LIMIT, Context
from tidings.matching.compiler.plan import Test, TwigWriter

Alternative = tuple[frozenset[Test], Twig, bool]
Outcome = str | list[Alternative]


def compile_together(texts: Sequence[str]) -> list[Outcome]:
    """Compile texts in bulk: a problem, or the tests, the twig and the exactness of each alternative."""
    enough = [f"/more{n}" for n in range(COMPOSED_FROM)]
    writer = TwigWriter()
    done = XPathLanguage().compile_rows([*texts, *enough], None, DEFAULT_LIMIT, writer)
    twigs = writer.finish()
    found: list[list[Alternative]] = [[] for _ in (*texts, *enough)]
    irregular = zip(done.irregular.rows, unpack_irregular(done.irregular), done.irregular.twigs, strict=True)
    for row, clause, twig in irregular:
        found[row].append((frozenset(clause), read_twig(twigs, twig), bool(twigs.exact[twig])))
        assert len(set(clause)) == len(clause)
    return [done.problems[row].message() if row in done.problems else found[row] for row in range(len(texts))]


def compile_alone(text: str) -> Outcome:
    """Compile one text alone."""
    try:
        plan = compile_xpath(Context(text, None, DEFAULT_LIMIT))
    except SubscriptionError as problem:
        return problem.message()
    return [
        (frozenset(clause), twig, exact)
        for clause, twig, exact in zip(plan.clauses, plan.twigs, plan.exact, strict=True)
    ]


def is_composed(text: str) -> bool:
    twigs = TwigWriter()
    parts = cut(text)
    return Composer(twigs).add(0, parts[::2], parts[1::2])


@given(st.lists(branching(), min_size=1, max_size=5))
def test_composer_branching_texts_equal_single_compilation(trees: list[Expression]) -> None:
    texts = [show(tree) for tree in trees]
    assert all(map(is_composed, texts))
    assert compile_together(texts) == [compile_alone(text) for text in texts]


def test_compile_rows_few_texts_equal_many_texts() -> None:
    texts = ["/a[b = 5 and c]", "/a]", "/a or /b"]
    done = XPathLanguage().compile_rows(texts, None, DEFAULT_LIMIT, TwigWriter())
    assert list(done.problems) == [1] and len(texts) < COMPOSED_FROM
    clauses = list(
        zip(done.irregular.rows.tolist(), map(frozenset, unpack_irregular(done.irregular)), strict=True)
    )
    many = compile_together(texts)
    assert clauses == [(row, tests) for row in (0, 2) for tests, _, _ in many[row]]


@given(st.lists(expressions(), min_size=1, max_size=4), st.integers(0, 2**32))
def test_compile_rows_any_texts_equal_single_compilation(trees: list[Expression], seed: int) -> None:
    texts = [DECLARATIONS + Writer(seed).write(tree) for tree in trees] + [show(tree) for tree in trees]
    assert compile_together(texts) == [compile_alone(text) for text in texts]


WORDS = (
    *(
        "/",
        "//",
        ".",
        "./",
        ".//",
        "@",
        "[",
        "[",
        "]",
        "]",
        "=",
        "!=",
        "<",
        ">=",
        "(",
        ")",
        ",",
        "::",
        ":",
        "|",
        "-",
    ),
    *(
        "a",
        "b",
        "*",
        "@x",
        "text()",
        "text",
        "and",
        " and ",
        " AND ",
        " or ",
        "not(",
        "contains(",
        " ",
        "\n",
        "\xa0",
    ),
    *(
        '"v"',
        "'w'",
        '"5"',
        '""',
        "5",
        "-5",
        ".5",
        "5.",
        "1e5",
        "·",
        "ü",
        '"',
        "declare namespace ",
        ";",
        "/a[b = 5",
    ),
)


@given(st.lists(st.sampled_from(WORDS), max_size=12).map("".join))
@example("/a[b = 5 and")
@example("/a·5 = 5")
@example("/a[b = 5and c = 6]")
@example("/a/b = 5-6")
@example("/a[b < '']")
def test_compile_rows_any_words_equal_single_compilation(text: str) -> None:
    assert compile_together([text]) == [compile_alone(text)]


@pytest.mark.parametrize(
    "text",
    [
        "/a",
        "a/b",
        "//a[b]",
        "/a[b][c = 5]/d",
        "/a[. > 1 and .//b != 'x' and ./c = 5]",
        '/a[b[@x = "v" AND text() = "w"]/c <= "5"] = -.5',
        "/and[and and and = 5]",
        "/ü[日本 = '日本']",
        "/a/b != 5",
    ],
)
def test_composer_supported_text_is_composed(text: str) -> None:
    assert is_composed(text)
    assert compile_together([text]) == [compile_alone(text)]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "/",
            "/a[b",
            "/a]",
            "/a = 5]",
            "/a[b = 5]]",
            "/a[]",
            "/a and /b",
            "/a[b or c]",
            "/a[not(b)]",
            "/a[/b]",
        ),
        *(
            "/a[5 = b]",
            "/a[b = c]",
            "/a/@x[. = 5]",
            "/a/@x/b",
            "/a/text()/b",
            "/a[.]",
            ".",
            "./a",
            "/a[b < 'x']",
        ),
        *(
            "/a[xml:lang = 'x']",
            "/a/child::b",
            "/a[b = 5 6]",
            "/a[b 5]",
            "/a = 5 = 5",
            "/a[b = 5\xa0]",
            "/a.[b]c",
        ),
        *(f"/a[b = {'9' * 400}]", "contains(/a, 'x')", '"v"', "/a[b = - 5]", "/a[b =]"),
    ],
)
def test_composer_other_text_is_left_to_parser(text: str) -> None:
    assert not is_composed(text)
    assert compile_together([text]) == [compile_alone(text)]


def test_composer_text_beyond_limit_is_left_to_parser() -> None:
    deep, wide = DEFAULT.nesting + 1, DEFAULT.predicates + 1
    texts = [
        "/a" + "/a" * DEFAULT.steps,
        "/a" + "[a" * deep + "]" * deep,
        "/a[" + " and ".join(["a"] * wide) + "]",
        "/a[" + " and ".join(f". != {i}" for i in range(16)) + "]",
    ]
    assert not any(map(is_composed, texts))
    assert all(isinstance(each, str) for each in compile_together(texts))
    assert compile_together(texts) == [compile_alone(text) for text in texts]
