"""Names, and the words of hints and messages."""

from __future__ import annotations

import pytest

from tidings.schema import EventSchema, EventType
from tidings.schema.event_schema import MOST_VIEWS
from tidings.schema.names import MOST_COMPARED, did_you_mean, is_name, listed, safe, some


@pytest.mark.parametrize("name", ["a", "seller.city", "dining room", "é", "日本", "'", "😀", "no"])
def test_names(name: str) -> None:
    assert is_name(name)


@pytest.mark.parametrize("name", ["", "a\nb", "\0", "\x1b[31m", "\ud800", "\u2028", None, 7])
def test_no_names(name: object) -> None:
    assert not is_name(name)


def test_words() -> None:
    assert (
        listed(["a"]) == "a"
        and listed(["a", "b"]) == "a and b"
        and listed(["a", "b", "c"], "or") == "a, b or c"
    )
    assert some(["a", "b"], 2) == "a, b" and some([*"abcd"], 2) == "a, b and 2 more"
    assert safe("plain é") == "plain é" and safe("\x1b[31m") == "\\x1b[31m" and len(safe("x" * 1000)) == 80


def test_did_you_mean() -> None:
    assert did_you_mean("prise", ["price", "period"]) == "did you mean 'price'?"
    assert did_you_mean("colour", ["price", "period"]) is None
    assert did_you_mean("prise", ["price"] * (MOST_COMPARED + 1)) is None


def test_a_schema_forgets_views_that_publishers_make_up() -> None:
    names = [f"t{number}" for number in range(MOST_VIEWS)]
    schema = EventSchema.of(event_types=[EventType(name) for name in names])
    for number in range(2 * MOST_VIEWS):
        types = (names[number % MOST_VIEWS], names[0], names[number // 2])
        assert schema.view(types).types == tuple(dict.fromkeys(types))
    assert len(schema._views) <= MOST_VIEWS
