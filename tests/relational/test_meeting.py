"""Branches and the branch check without any tables: together they find what the definition finds."""

from __future__ import annotations

import operator
from math import isnan

from hypothesis import example, given
from hypothesis import strategies as st

from tests.relational.corpus import is_taken
from tests.support.strategies.xpaths import documents, expressions
from tidings.documents.explanation import matches
from tidings.documents.model import steps_of
from tidings.documents.xml_decoder import decode
from tidings.documents.xpath import xpath_parser
from tidings.relational.branch_check import BranchNode, bp_position, brpred
from tidings.relational.linear_match import LinearPath
from tidings.relational.reader import WantedPaths, rows_of
from tidings.relational.templates import alternatives_of

ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def passes(row, op, literal):
    """What is asked of a node's value."""
    if op.startswith("not "):
        return not passes(row, op.removeprefix("not "), literal)
    if op == "exists":
        return True
    if op in ORDERS:
        return row.number is not None and ORDERS[op](row.number, literal)
    if op in ("=", "!="):
        value = row.value if isinstance(literal, str) else row.number
        return (value == literal) is (op == "=")
    return literal in row.value if op == "contains" else row.value.startswith(literal)


def holds(alternative, rows):
    """Whether nodes satisfy all branches and meet."""
    found, known = [], {}
    for number, branch in enumerate(alternative.branches):
        path = LinearPath.of(branch.path)
        nodes = [
            row
            for row in rows
            if path.fits(steps_of(row.tagpath)) and passes(row, branch.operator, branch.literal)
        ]
        if not nodes:
            return False
        for row in nodes:
            known[hash(row.tagpath), number] = bp_position(branch.path, branch.info, row.tagpath)
        found.append([BranchNode(hash(row.tagpath), row.idpath) for row in nodes])
    return brpred(range(len(found)), found, known)


texts = expressions().map(xpath_parser.show).filter(is_taken)


@given(documents(), st.lists(texts, min_size=5, max_size=10))
@example("<a><b><c/><b><x y='v3'/></b></b></a>", ["/a//b[c]/x/@y = 'v3'", "/a//b[c]//x/@y = 'v3'"])
def test_alternatives_find_what_the_definition_finds(document, asked):
    node = decode(document.encode())
    rows = list(rows_of("d", node, WantedPaths(["//*", "//@*", "//text()"])))
    assert all(row.number is None or not isnan(row.number) for row in rows)
    for text in asked:
        alternatives = alternatives_of(text)
        expected = matches(xpath_parser.parse(text), node)
        found = [holds(each, rows) for each in alternatives]
        certain = [held for held, each in zip(found, alternatives, strict=True) if each.exact]
        # Whatever is exact is right; whatever is not may be too much, never too little.
        assert any(certain) <= expected <= any(found), text
        if len(certain) == len(found):
            assert any(found) is expected, text
