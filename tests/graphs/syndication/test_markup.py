"""HTML in feed items as plain text."""

from __future__ import annotations

import pytest

from tidings.graphs.syndication.markup import plain_text


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("a <b>b</b>&nbsp;&amp; c", "a b & c"),
        ("&#65;&#x42;&#0000000000067;", "ABC"),
        ("&#99999999;", "\ufffd"),
        pytest.param("x&#" + "9" * 5_000 + ";y", "x\ufffdy", id="many digits"),
        pytest.param("&#" + "0" * 5_000 + "65;", "A", id="many zeros"),
    ],
)
def test_plain_text_replaces_character_references(html: str, expected: str) -> None:
    assert plain_text(html) == expected
