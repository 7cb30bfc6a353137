"""Arguments of wrong types at the library's entry points are TidingsErrors that say what to pass."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import tidings
from tidings import (
    Index,
    Subscription,
    Tidings,
    TidingsError,
    compile_many,
    compile_text,
    decode,
    load_schema,
)

ONE = Subscription("s1", "ana", "predicates", "price < 3")
CALLS: dict[str, list[Callable[[], object]]] = {
    "decode": [lambda: decode({"price": 5}), lambda: decode(None), lambda: decode(b"{}", {})],  # type: ignore[arg-type]
    "compile_many": [
        lambda: compile_many(["price < 3"]),  # type: ignore[list-item]
        lambda: compile_many("price < 3"),  # type: ignore[arg-type]
        lambda: compile_many(ONE),  # type: ignore[arg-type]
        lambda: compile_many([ONE], "schema.yaml"),  # type: ignore[arg-type]
        lambda: compile_many([ONE], None, "many"),  # type: ignore[arg-type]
    ],
    "compile_text": [lambda: compile_text(5), lambda: compile_text("a = 1", {})],  # type: ignore[arg-type]
    "load_schema": [lambda: load_schema(5), lambda: load_schema({})],  # type: ignore[arg-type]
    "Index": [
        lambda: Index.create(5),  # type: ignore[arg-type]
        lambda: Index.open(None),  # type: ignore[arg-type]
        lambda: Index.is_in(5),  # type: ignore[arg-type]
        lambda: Index.create().add([ONE]),  # type: ignore[arg-type]
        lambda: Index.create().remove([5]),  # type: ignore[list-item]
        lambda: Index.create().change([], None),  # type: ignore[arg-type]
        lambda: Index.create().match([{"price": 5}]),  # type: ignore[dict-item]
        lambda: Index.create().match({"price": [5]}),  # type: ignore[arg-type]
        lambda: Index.create().match([b"{}"]),  # type: ignore[list-item]
        lambda: Index.create().match(None),  # type: ignore[arg-type]
    ],
}
METHODS: dict[str, Callable[[Tidings], object]] = {
    "subscribe": lambda home: home.subscribe("ana", 5),  # type: ignore[arg-type]
    "subscribe within": lambda home: home.subscribe("ana", "a = 1", within=5),  # type: ignore[arg-type]
    "publish": lambda home: home.publish({"price": 5}),  # type: ignore[arg-type]
    "publish id": lambda home: home.publish(b"{}", 5),  # type: ignore[arg-type]
    "publish_named": lambda home: home.publish_named([b"{}"]),  # type: ignore[arg-type]
    "unsubscribe": lambda home: home.unsubscribe(5),  # type: ignore[arg-type]
    "notifications": lambda home: home.notifications(5),  # type: ignore[arg-type]
    "follow": lambda home: home.follow(5),  # type: ignore[arg-type]
    "extend_schema": lambda home: home.extend_schema({}),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("call", [call for calls in CALLS.values() for call in calls])
def test_entry_points_wrong_type_is_a_tidings_error(call: Callable[[], object]) -> None:
    with pytest.raises(TidingsError):
        call()


@pytest.mark.parametrize("call", METHODS.values(), ids=METHODS)
def test_tidings_wrong_type_names_the_argument(call: Callable[[Tidings], object], tmp_path: Path) -> None:
    with Tidings(tmp_path) as home, pytest.raises(TidingsError, match="has the wrong type"):
        call(home)


def test_entry_points_names_are_public() -> None:
    assert set(CALLS) <= set(tidings.__all__)


def test_entry_points_what_is_clear_is_accepted(tmp_path: Path) -> None:
    assert decode('{"price": 5}') == decode(b'{"price": 5}')
    index = Index.create()
    index.add(compile_many([ONE]))
    assert index.remove("s1") == 1
    with Tidings(tmp_path) as home:
        made = home.subscribe("ana", "price < 3")
        assert home.unsubscribe(made.id) == [made.id]


def test_entry_points_message_says_what_to_pass() -> None:
    with pytest.raises(TidingsError) as problem:
        compile_many(["price < 3"])  # type: ignore[list-item]
    assert str(problem.value) == (
        "the argument 'subscriptions' has the wrong type; received str; accepted: Subscription; "
        "compile_many([Subscription('s1', 'ana', 'predicates', 'price < 3')])"
    )
