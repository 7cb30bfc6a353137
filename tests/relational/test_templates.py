"""Templates: a shape that is understood once means for each text what the compiler says."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.relational.corpus import is_taken
from tests.support.strategies.xpaths import expressions
from tidings.documents.xpath import xpath_parser
from tidings.errors import SubscriptionError
from tidings.relational.templates import Templates, asked_by

ALIKE = [
    ("/a/b = 'v' and /a/c > 5", '/a/b = "w w" and /a/c > .25', 1),
    ("/a/b = 5 or /a/b = 5", "/a/b = 5 or /a/b = 6", 1),
    ("/a/b > - 5", "/a/b > - 6", 1),
    ("/a/b5 = 1", "/a/b6 = 1", 2),
    ("/a/b > -5", "/a/b > -6", 2),
    (
        "/a/b\u00b75",
        "/a/b\u00b76",
        1,
    ),  # the shape is the same, and has no template: the numbers are part of names
    ("/a/b < '5'", "/a/b < '6'", 1),
    ("declare namespace p = 'urn:x'; /p:a", "declare namespace p = 'urn:y'; /p:a", 1),
    ("/a/b = ''", "/a/b = 'v'", 1),
    ("/a/b != 987654321000.5", "/a/b != -987654321000.5", 2),
    ("contains(/a/b, 'v') and not(/a/c = 'w')", "contains(/a/b, 'x') and not(/a/c = 'y')", 1),
]


@pytest.mark.parametrize(("first", "second", "shapes"), ALIKE)
def test_texts_of_one_shape(first, second, shapes):
    templates = Templates()
    for text in (first, second, first):
        assert same(templates.asked_by(text), asked_by(text))
    assert len(templates.known) == shapes


def same(one, other):
    """Alternatives that are the same twice may be there twice."""
    return {(tuple(p), exact) for p, exact in one} == {(tuple(p), exact) for p, exact in other}


@pytest.mark.parametrize(
    "text", ["/a[2]", "contains(/a, '')", "/a = " + "9" * 400, "/a < 'x'", "/a[", "/a and 5"]
)
def test_what_the_compiler_refuses_is_refused(text):
    templates = Templates()
    for _ in range(2):
        with pytest.raises(SubscriptionError) as said:
            asked_by(text)
        with pytest.raises(SubscriptionError) as here:
            templates.asked_by(text)
        assert here.value.facts() == said.value.facts()


def test_texts_that_are_too_long():
    templates = Templates()
    templates.asked_by("/a = 'v'")
    with pytest.raises(SubscriptionError, match="long"):
        templates.asked_by(f"/a = '{'v' * 20_000}'")


@given(expressions().map(xpath_parser.show).filter(is_taken))
def test_templates_mean_what_the_compiler_means(text):
    """Sorting by literals may put predicates in another order, which means the same."""
    templates = Templates()
    for _ in range(2):
        found, expected = templates.asked_by(text), asked_by(text)
        assert {_unordered(each) for each in found} == {_unordered(each) for each in expected}


def _unordered(asked):
    """What an alternative asks, whatever the order in which its branching points are numbered."""
    shown = sorted(
        (p.path, p.op, str(p.value), str(p.number), p.info.count("&"), bool(p.info)) for p in asked.predicates
    )
    return tuple(dict.fromkeys(shown)), asked.exact
