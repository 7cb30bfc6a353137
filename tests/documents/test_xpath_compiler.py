"""Compilation of XPaths to plans: alternatives, implied tests, bulk compilation."""

from __future__ import annotations

import pytest

from tidings.documents.model import show_node
from tidings.documents.twigs import DOCUMENT, Twig, read_twig
from tidings.documents.xpath_compiler import compile_xpath
from tidings.errors import TooLarge
from tidings.matching.compiler.blocks import unpack
from tidings.matching.compiler.compilation import compile_columns
from tidings.matching.compiler.language import Context


def plan_tests(text: str) -> list[str]:
    """Show the tests of each alternative, and whether they are exact."""
    plan = compile_xpath(Context(text))
    lines = []
    for clause, exact in zip(plan.clauses, plan.exact, strict=True):
        tests = sorted(
            f"{'not ' * test.shape.negated}{test.shape.column.path} {test.shape.relation.name}"
            + ("" if test.operand is None else f" {test.operand}")
            for test in clause
        )
        lines.append("; ".join(tests) + (" (all)" if exact else ""))
    return lines


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('/stock/symbol = "A" AND /stock/price > 5', ["/stock/price GT 5.0; /stock/symbol EQ A (all)"]),
        ('/stock[symbol = "A" and price > 5]', ["/stock/price GT 5.0; /stock/symbol EQ A (all)"]),
        ('//stock[symbol = "A" and price > 5]', ["//stock/price GT 5.0; //stock/symbol EQ A"]),
        ('//stock[symbol = "A"]', ["//stock/symbol EQ A (all)"]),
        ("/a/b[. > 1 and . < 5]", ["/a/b GT 1.0; /a/b LT 5.0"]),
        ("/a[b or c]", ["/a/b EXISTS (all)", "/a/c EXISTS (all)"]),
        ("not(/a/b = 1)", ["//node() EXISTS; not /a/b EQ 1.0 (all)"]),
        ("/a[not(b)]", ["/a EXISTS; not /a/b EXISTS (all)"]),
        ("//a[not(b)]", ["//a EXISTS"]),
        ("not(/a/b[c and d])", ["//node() EXISTS"]),
        ("/a/b != 5", ["/a/b EXISTS"]),
        ('/a/b != "x"', ["/a/b NE x (all)"]),
        ('contains(/a/b, "x")', ["/a/b EQ x"]),
        ('/a/b[contains(., "x")]', ["/a/b EQ x (all)"]),
        ("//a[/b]", ["//a EXISTS; /b EXISTS (all)"]),
        ('/a//b[.//c/d/text()="1" and @y="2"]', ["/a//b//c/d/text() EQ 1; /a//b/@y EQ 2"]),
    ],
)
def test_compile_xpath_twig_implies_tests(text: str, expected: list[str]) -> None:
    assert sorted(plan_tests(text)) == sorted(expected)


def test_compile_xpath_twig_of_paper() -> None:
    [twig] = compile_xpath(
        Context('/a//b[.//c/d/text()="v1" and p//q/text()="v2"]/x[@y="v3"]//z/text()="v4"')
    ).twigs
    lines = [f"{node.parent} {node.axis.name} {show_node(node.kind, node.name)}" for node in twig]
    assert lines[:2] == ["-1 CHILD a", "0 DESCENDANT b"]
    assert sorted(lines[2:]) == sorted(
        [
            *("1 DESCENDANT c", "2 CHILD d", "3 CHILD text()"),
            *("1 CHILD p", "5 DESCENDANT q", "6 CHILD text()"),
            *("1 CHILD x", "8 CHILD @y", "8 DESCENDANT z", "10 CHILD text()"),
        ]
    )


def test_compile_xpath_too_many_alternatives_is_rejected_with_count() -> None:
    text = " and ".join(f"(/a/b{i} or /a/c{i})" for i in range(9))
    with pytest.raises(TooLarge, match="512 clauses or more"):
        compile_xpath(Context(text))
    assert len(compile_xpath(Context(text, limit=512)).twigs) == 512


def test_compile_xpath_too_many_comparisons_of_one_node_is_rejected() -> None:
    def comparisons(times: int) -> str:
        return f"//a[{' and '.join(f'. != {n}' for n in range(times))}]"

    assert compile_xpath(Context(comparisons(15))).clauses
    with pytest.raises(TooLarge, match="too many comparisons of one node; accepted: at most 15"):
        compile_xpath(Context(comparisons(16)))


def test_compile_xpath_alternatives_inside_contains_are_rejected() -> None:
    with pytest.raises(Exception, match="alternatives inside the path of contains"):
        compile_xpath(Context('contains(/a/b[c or d], "x")'))


TEXTS = [
    *(f'//stock[symbol = "S{n % 5}" and not(price < {n}.5)]/@id = "{n}"' for n in range(60)),
    *(f"/a[b > -{n} or contains(c, 'x{n}')]" for n in range(40)),
    *(f"/a-{n} < - {n} and 5.{n} >= /b" for n in range(40)),
    *(f"/a < - {n} and 5.{n} >= /b" for n in range(40)),
    *(f'/t[contains(b, "{"x" * (n % 3)}")]' for n in range(40)),
    *(f'/q = "{"long" * 2500}{n}"' for n in range(40)),
    *(f'/w < "{n}"' for n in range(40)),
    *("/a/b" for _ in range(40)),
]


def test_compile_columns_many_xpaths_equal_single_compilation() -> None:
    """Texts that differ only in their literals are compiled together; some of them are rejected."""
    ids = [str(n) for n in range(len(TEXTS))]
    result = compile_columns(ids, ["ana"] * len(TEXTS), ["xpath"] * len(TEXTS), TEXTS)
    alone = {
        id: compile_columns([id], ["ana"], ["xpath"], [text]) for id, text in zip(ids, TEXTS, strict=True)
    }
    reasons = {reject.id: reject.reason for reject in result.rejects}
    assert reasons == {id: single.rejects[0].reason for id, single in alone.items() if single.rejects}
    assert len(reasons) == 14 + 40, "an empty contains() in every third text, and texts that are too long"
    accepted, plans = result.subscriptions["id"].to_pylist(), unpack(result)
    assert len(result.blocks) == 4 and len(result.irregular.rows) > 0
    for id, plan in zip(accepted, plans, strict=True):
        assert set(map(frozenset, plan.clauses)) == set(map(frozenset, unpack(alone[id])[0].clauses))
    for block in result.blocks:
        for row, twig in zip(block.rows, block.twigs, strict=True):
            twigs = alone[accepted[row]].twigs
            expected = [unordered_twig(read_twig(twigs, number)) for number in range(len(twigs))]
            assert unordered_twig(read_twig(result.twigs, twig)) in expected


def unordered_twig(twig: Twig, parent: int = DOCUMENT) -> frozenset[object]:
    """Return a twig without the order of its branches."""
    return frozenset(
        (node._replace(parent=DOCUMENT), unordered_twig(twig, place))
        for place, node in enumerate(twig)
        if node.parent == parent
    )
