"""Samples of XPath: a guide with examples for people, and a rehearsal for compiled code."""

from __future__ import annotations

from tidings.kinds import Example, LanguageGuide, Rehearsal

_NAME = r"(?:\"[^\"]+\"|[^\W\d][\w.:-]*)"
_LIST = r"\[\s*(?:-?\d+|\*)?\s*\]"
"""`tags[0]` is a list of another language."""

XPATH = LanguageGuide(
    "xpath",
    "XPath",
    "documents: XML",
    examples=(
        Example('//stock[symbol = "YHOO" and price > 50]', "an element anywhere, by its content"),
        Example("/quotes/stock/@exchange", "a path from the root to an attribute"),
        Example('//stock[contains(name, "Motor") or not(dividend)]', "part of a text, or a missing element"),
        Example('//ref[sector = "tech"]', "a field that a reference table adds"),
    ),
    noun="an XPath",
    begins=rf"[\s(]*(?:not\s*\([\s(]*)*(?:/|\.|@|declare\s+namespace\b|{_NAME}\s*(?:[/=<>!]|(?!{_LIST})\[))",
)

_LOT = '<lot id="{0}"><title>cuckoo clock</title><material>oak</material><price>{0}.5</price></lot>'

REHEARSAL = Rehearsal(
    "xpath",
    (
        '//lot[title = "cuckoo clock" and price > 100]',
        '/lot/price < 90 or contains(/lot/title, "ship") or starts-with(/lot/@id, "1")',
        'not(/lot/sold) and //material != "pine"',
    ),
    "application/xml",
    [_LOT.format(number).encode() for number in range(60, 180)],
)
