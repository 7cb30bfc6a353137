"""Twigs as branches (paths, tests, branching points), and templates that agree with the compiler."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.relational.corpus import can_compile
from tests.support.strategies.xpaths import expressions
from tidings.documents.model import Axis, NodeKind
from tidings.documents.twigs import DOCUMENT, TwigNode, ValueTest
from tidings.documents.xpath import xpath_parser
from tidings.documents.xpath.xpath_tree import ValueOperator
from tidings.errors import SubscriptionError
from tidings.relational.branches import (
    Alternative,
    Branch,
    Templates,
    alternative_of,
    alternatives_of,
    predicate_sets_of,
)

CHILD, BELOW = Axis


def node(parent, name, *tests, axis=CHILD, **more):
    kind = NodeKind.TEXT if not name else NodeKind.ATTRIBUTE if name[0] == "@" else NodeKind.ELEMENT
    return TwigNode(parent, axis, kind, name.removeprefix("@"), tests=tests, **more)


def equal(literal, negated=False):
    return ValueTest(ValueOperator.EQUAL, literal, negated)


def test_alternative_of_node_with_two_conditions_is_branching_point():
    twig = (node(DOCUMENT, "a", axis=BELOW), node(0, "b", equal("v")), node(0, "c"))
    expected = (Branch("//a/b", "=", "v", ((1, 1),)), Branch("//a/c", "exists", None, ((1, 1),)))
    assert alternative_of(twig) == Alternative(expected, exact=True)


def test_alternative_of_document_element_is_no_branching_point():
    twig = (node(DOCUMENT, "a"), node(0, "b", equal("v")), node(0, "c", equal("w")))
    assert [branch.points for branch in alternative_of(twig).branches] == [(), ()]


def test_alternative_of_two_tests_of_node_has_node_as_branching_point():
    above, below = ValueTest(ValueOperator.GREATER, 5.0), ValueTest(ValueOperator.LESS, 9.0)
    twig = (node(DOCUMENT, "a"), node(0, "b", above, below))
    expected = (Branch("/a/b", ">", 5.0, ((1, 2),)), Branch("/a/b", "<", 9.0, ((1, 2),)))
    assert alternative_of(twig).branches == expected


def test_alternative_of_negated_node_is_not_exact():
    twig = (node(DOCUMENT, "a", axis=BELOW), node(0, "b", negated=True), node(1, "c", equal("v")))
    assert alternative_of(twig) == Alternative((Branch("//a", "exists"),), exact=False)


def test_alternative_of_only_negated_node_has_no_branches():
    assert alternative_of((node(DOCUMENT, "a", negated=True),)) == Alternative((), exact=False)


def test_alternative_of_negated_test_has_own_operator():
    """`not(. < 5)` also holds for values that are no numbers, so it is not `. >= 5`; `not(. = 5)` is `. != 5`."""
    less = ValueTest(ValueOperator.LESS, 5.0, negated=True)
    assert alternative_of((node(DOCUMENT, "a", less),)).branches[0].operator == "not <"
    assert alternative_of((node(DOCUMENT, "a", equal(5.0, negated=True)),)).branches[0].operator == "!="
    unequal = ValueTest(ValueOperator.UNEQUAL, 5.0, negated=True)
    assert alternative_of((node(DOCUMENT, "a", unequal),)).branches[0].operator == "="


def test_alternative_of_test_of_first_node_is_not_exact():
    contains = ValueTest(ValueOperator.CONTAINS, "v")
    twig = (node(DOCUMENT, "a", axis=BELOW, firsts=(contains,)), node(0, "b", leads_on=True))
    assert alternative_of(twig) == Alternative((Branch("//a/b", "contains", "v"),), exact=False)


TEXTS = [
    (
        "/a[b > 5 and c = 'v' and d and contains(., 'w') and e = 1]",
        [{"/a/c = v", "/a/e = 1.0"}, {"/a/b > 5.0"}, {"/a contains w"}, {"/a/d exists"}],
    ),
    ("//a[b = 'v'][b = 'w']", [{"//a/b = v bp#1=1", "//a/b = w bp#1=1"}]),
    (
        "/a//b[c = 'v'][.//d[e = 1]/f > 2]",
        [{"/a//b/c = v bp#1=2", "/a//b//d/e = 1.0 bp#1=2&bp#2=3"}, {"/a//b//d/f > 2.0 bp#1=2&bp#2=3"}],
    ),
]


@pytest.mark.parametrize(("text", "expected"), TEXTS)
def test_alternatives_order_equalities_before_ranges_before_existence(text, expected):
    (alternative,) = alternatives_of(text)
    shown = [_show_branch(branch) for branch in alternative.branches]
    for together in expected:
        assert set(shown[: len(together)]) == together
        del shown[: len(together)]
    assert not shown


def test_alternative_of_repeated_condition_counts_once():
    twig = (node(DOCUMENT, "a", axis=BELOW), node(0, "b", equal("v")), node(0, "b", equal("v")))
    assert alternative_of(twig).branches == (Branch("//a/b", "=", "v", ((1, 1),)),)


def _show_branch(branch):
    literal = "" if branch.literal is None else f" {branch.literal}"
    return f"{branch.path} {branch.operator}{literal}" + (f" {branch.info}" if branch.info else "")


def test_alternatives_of_or_are_its_parts():
    assert [len(each.branches) for each in alternatives_of("/a/b = 1 or (/a/c = 2 and /a/d = 3)")] == [1, 2]


PAIRS_OF_TEXTS = [
    ("/a/b = 'v' and /a/c > 5", '/a/b = "w w" and /a/c > .25', 1),
    ("/a/b = 5 or /a/b = 5", "/a/b = 5 or /a/b = 6", 1),
    ("/a/b > - 5", "/a/b > - 6", 1),
    ("/a/b5 = 1", "/a/b6 = 1", 2),
    ("/a/b > -5", "/a/b > -6", 2),
    (
        "/a/b\u00b75",
        "/a/b\u00b76",
        1,
    ),  # the shape is the same but has no template, because the numbers are part of names
    ("/a/b < '5'", "/a/b < '6'", 1),
    ("declare namespace p = 'urn:x'; /p:a", "declare namespace p = 'urn:y'; /p:a", 1),
    ("/a/b = ''", "/a/b = 'v'", 1),
    ("/a/b != 987654321000.5", "/a/b != -987654321000.5", 2),
    ("contains(/a/b, 'v') and not(/a/c = 'w')", "contains(/a/b, 'x') and not(/a/c = 'y')", 1),
]


@pytest.mark.parametrize(("first", "second", "shapes"), PAIRS_OF_TEXTS)
def test_templates_texts_of_one_shape_share_template(first, second, shapes):
    templates = Templates()
    for text in (first, second, first):
        assert same_sets(templates.predicate_sets_of(text), predicate_sets_of(text))
    assert len(templates.known) == shapes


def same_sets(first, second):
    """Compare alternatives without regard to repetitions."""
    return {(tuple(p), exact) for p, exact in first} == {(tuple(p), exact) for p, exact in second}


@pytest.mark.parametrize(
    "text", ["/a[2]", "contains(/a, '')", "/a = " + "9" * 400, "/a < 'x'", "/a[", "/a and 5"]
)
def test_templates_invalid_text_is_rejected_as_by_compiler(text):
    templates = Templates()
    for _ in range(2):
        with pytest.raises(SubscriptionError) as compiler_problem:
            predicate_sets_of(text)
        with pytest.raises(SubscriptionError) as template_problem:
            templates.predicate_sets_of(text)
        assert template_problem.value.facts() == compiler_problem.value.facts()


def test_templates_too_long_text_is_rejected():
    templates = Templates()
    templates.predicate_sets_of("/a = 'v'")
    with pytest.raises(SubscriptionError, match="long"):
        templates.predicate_sets_of(f"/a = '{'v' * 20_000}'")


@given(expressions().map(xpath_parser.show).filter(can_compile))
def test_templates_generated_texts_agree_with_compiler(text):
    """Sorting by literals may change the order of predicates, which does not change the meaning."""
    templates = Templates()
    for _ in range(2):
        sets, expected = templates.predicate_sets_of(text), predicate_sets_of(text)
        assert {_unordered_predicates(each) for each in sets} == {
            _unordered_predicates(each) for each in expected
        }


def _unordered_predicates(alternative):
    """Return the predicates of an alternative without the numbers of its branching points."""
    shown = sorted(
        (p.path, p.op, str(p.value), str(p.number), p.info.count("&"), bool(p.info))
        for p in alternative.predicates
    )
    return tuple(dict.fromkeys(shown)), alternative.exact
