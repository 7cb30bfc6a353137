"""Names, and the words of hints and messages."""

from __future__ import annotations

import pytest

from tidings.core.suggest import MOST_COMPARED, did_you_mean, is_name, join_words, printable, shorten_list
from tidings.events.schema.event_schema import MOST_VIEWS, EventSchema, EventType


@pytest.mark.parametrize("name", ["a", "seller.city", "dining room", "é", "日本", "'", "😀", "no"])
def test_names(name: str) -> None:
    assert is_name(name)


@pytest.mark.parametrize("name", ["", "a\nb", "\0", "\x1b[31m", "\ud800", "\u2028", None, 7])
def test_no_names(name: object) -> None:
    assert not is_name(name)


def test_words() -> None:
    assert (
        join_words(["a"]) == "a"
        and join_words(["a", "b"]) == "a and b"
        and join_words(["a", "b", "c"], "or") == "a, b or c"
    )
    assert shorten_list(["a", "b"], 2) == "a, b" and shorten_list([*"abcd"], 2) == "a, b and 2 more"
    assert (
        printable("plain é") == "plain é"
        and printable("\x1b[31m") == "\\x1b[31m"
        and len(printable("x" * 1000)) == 80
    )


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
