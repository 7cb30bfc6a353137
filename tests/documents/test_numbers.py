"""Numbers of XPath 1.0, compared with lxml's number()."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree

from tidings.documents.model import xpath_number

CONTEXT_NODE = etree.fromstring("<nowhere/>")
LXML_NUMBER = etree.XPath("number($text)")
WITH_EXPONENT = re.compile(r"[ \t\r\n]*-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]*[ \t\r\n]*")


def lxml_number(text: str) -> float:
    return LXML_NUMBER(CONTEXT_NODE, text=text)


NUMBERS = {
    "5": 5.0,
    " \t\r\n5 \t\r\n": 5.0,
    "-5": -5.0,
    ".5": 0.5,
    "-.5": -0.5,
    "5.": 5.0,
    "007.50": 7.5,
    "-0": 0.0,
    "9" * 400: math.inf,
    "-" + "9" * 400: -math.inf,
    "0." + "0" * 400 + "1": 0.0,
}
NO_NUMBERS = [
    *("", " ", "-", ".", "-.", "--5", "- 5", "+5", "5-", "5 5", "5.5.5", "5,0", "1_000", "0x10", "5f", "$5"),
    *("NaN", "inf", "INF", "Infinity", "-Infinity", "٣", "５", "\u00a05", "\u20035", "\ufeff5", "−5"),
]


@pytest.mark.parametrize(("text", "number"), NUMBERS.items(), ids=lambda each: repr(each)[:20])
def test_xpath_number_valid_text_is_number(text: str, number: float) -> None:
    assert xpath_number(text) == lxml_number(text) == number


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_xpath_number_other_text_is_nan(text: str) -> None:
    assert math.isnan(xpath_number(text)) and math.isnan(lxml_number(text))


@pytest.mark.parametrize("text", ["1e3", "1E3", "5e", "5e+", "1.5e-2", " -.5e1 "])
def test_xpath_number_exponent_is_nan(text: str) -> None:
    """libxml2 accepts exponents; XPath 1.0 has none (section 3.7, Number), and its number() is NaN (section 4.4)."""
    assert math.isnan(xpath_number(text))
    assert math.isfinite(lxml_number(text)) and WITH_EXPONENT.fullmatch(text)


@given(st.text("05.-+eE_ \t\n\r٣x", max_size=7))
def test_xpath_number_any_text_agrees_with_lxml(text: str) -> None:
    ours, theirs = xpath_number(text), lxml_number(text)
    if WITH_EXPONENT.fullmatch(text):
        assert math.isnan(ours) and not math.isnan(theirs)
    else:
        assert ours == theirs or (math.isnan(ours) and math.isnan(theirs))


@given(st.from_regex(r"\A-?[0-9]{1,25}(\.[0-9]{0,25})?\Z"))
@example("4.56")
@example("123456789012345678901234567890.5")
def test_xpath_number_many_digits_is_nearest_double(text: str) -> None:
    """XPath requires the nearest double. libxml2 adds digit by digit and is a few units in the last place off:
    for it, 4.56 is 4.5600000000000005. No other double may be nearer to the decimal number than ours.
    """
    ours, written = xpath_number(text), Fraction(text.rstrip("."))
    error = abs(Fraction(ours) - written)
    for other in (math.nextafter(ours, math.inf), math.nextafter(ours, -math.inf)):
        assert error <= abs(Fraction(other) - written)
    assert math.isclose(ours, lxml_number(text), rel_tol=1e-14)
