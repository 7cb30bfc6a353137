"""Validation of arguments at the entry points of the library, and of values that databases can store."""

from __future__ import annotations

import inspect
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

import tidings
from tidings import (
    Client,
    EventSchema,
    Index,
    Object,
    Reject,
    Subscription,
    Tidings,
    TidingsError,
    compile_many,
    compile_text,
    decode,
    implicit,
    load_schema,
    notice,
    stored,
    subscriber,
)
from tidings.core.arguments import check_members
from tidings.errors import InputError


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        ({"a": ["x", {"b/c~": "\x00"}]}, "/a/1/b~1c~0"),
        ({"a": {"\ud800": 1}}, "/a"),
        (["\udfff"], "/0"),
        ("\x00", ""),
    ],
)
def test_check_members_bad_text_is_rejected_with_pointer(value: object, pointer: str) -> None:
    with pytest.raises(InputError) as problem:
        check_members(value)
    assert problem.value.pointer == pointer


def test_check_members_below_long_name_builds_no_pointers() -> None:
    """Building a pointer for each of 200,000 values below a name of megabytes would take minutes."""
    value = {"k" * 2_000_000: ["x", {"y": "z"}] * 50}
    tracemalloc.start()
    try:
        check_members(value)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000


class Base(DeclarativeBase):
    pass


@subscriber
class Student(Base):
    __tablename__ = "student"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]


SUBSCRIPTION = Subscription("s1", "ana", "predicates", "price < 3")
CALLS: dict[str, list[Callable[[], object]]] = {
    "decode": [lambda: decode({"price": 5}), lambda: decode(None), lambda: decode(b"{}", {})],  # type: ignore[arg-type]
    "compile_many": [
        lambda: compile_many(["price < 3"]),  # type: ignore[list-item]
        lambda: compile_many("price < 3"),  # type: ignore[arg-type]
        lambda: compile_many(SUBSCRIPTION),  # type: ignore[arg-type]
        lambda: compile_many([SUBSCRIPTION], "schema.yaml"),  # type: ignore[arg-type]
        lambda: compile_many([SUBSCRIPTION], None, "many"),  # type: ignore[arg-type]
    ],
    "compile_text": [lambda: compile_text(5), lambda: compile_text("a = 1", {})],  # type: ignore[arg-type]
    "load_schema": [lambda: load_schema(5), lambda: load_schema({})],  # type: ignore[arg-type]
    "Index": [
        lambda: Index.create(5),  # type: ignore[arg-type]
        lambda: Index.open(None),  # type: ignore[arg-type]
        lambda: Index.is_in(5),  # type: ignore[arg-type]
        lambda: Index.create().add([SUBSCRIPTION]),  # type: ignore[arg-type]
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
    "unsubscribe": lambda home: home.unsubscribe(5),  # type: ignore[arg-type]
    "notifications": lambda home: home.notifications(5),  # type: ignore[arg-type]
    "follow": lambda home: home.follow(5),  # type: ignore[arg-type]
    "extend_schema": lambda home: home.extend_schema({}),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("call", [call for calls in CALLS.values() for call in calls])
def test_entry_points_wrong_type_is_tidings_error(call: Callable[[], object]) -> None:
    with pytest.raises(TidingsError):
        call()


@pytest.mark.parametrize("call", METHODS.values(), ids=METHODS)
def test_tidings_wrong_type_names_argument(call: Callable[[Tidings], object], tmp_path: Path) -> None:
    with Tidings(tmp_path) as home, pytest.raises(TidingsError, match="has the wrong type"):
        call(home)


CREATED_BY_LIBRARY = "created by the library: a program only reads them"
UNCHECKED = {
    "EventSchema.domain": "called for every event; a wrong value is an unknown name",
    "EventSchema.domain_of": "called for every event; a wrong value is an unknown name",
    "EventSchema.problem": "called only by the checks of a schema",
    "EventSchema.view": "called for every event, with types that were read from it",
    "Index.__init__(parts)": "called only by create and open",
    "Index.__init__(keep)": "called only by create and open",
    "Match": CREATED_BY_LIBRARY,
    "Notification": CREATED_BY_LIBRARY,
    "Object": "any value may be a key, and the family is looked up in the model",
    "Publication": CREATED_BY_LIBRARY,
    "Reason": CREATED_BY_LIBRARY,
    "Reject": CREATED_BY_LIBRARY,
    "notice(base)": "rejected by reading the model; see test_notice_and_elements_wrong_type_is_tidings_error",
    "notice(bulk)": "rejected with the accepted words, after the other arguments are checked",
    "notice(sessions)": "rejected after the model is read",
    "notice(report)": "a protocol; rejected after the model is read",
}
"""Callables and parameters whose types are not checked at the call, with the reason."""


class Wrong:
    """A value of a type that no parameter accepts, not even as a key."""

    __hash__ = None  # type: ignore[assignment]


def public_callables() -> Iterator[tuple[str, Callable[..., object]]]:
    """Yield public functions, public methods of public classes, and their constructors."""
    for name in tidings.__all__:
        public = getattr(tidings, name)
        if not isinstance(public, type):
            yield name, public
        elif not issubclass(public, Exception):
            is_value = is_dataclass(public)
            yield (name, public) if is_value else (f"{name}.__init__", partial(public.__init__, None))
            for method, member in inspect.getmembers(public, callable):
                if not method.startswith("_"):
                    is_bound = inspect.ismethod(member) or isinstance(vars(public).get(method), staticmethod)
                    yield f"{name}.{method}", member if is_bound else partial(member, None)


def list_parameters(function: Callable[..., object]) -> list[inspect.Parameter]:
    variable = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return [one for one in inspect.signature(function).parameters.values() if one.kind not in variable]


def call_with_wrong(function: Callable[..., object], wrong: inspect.Parameter) -> object:
    """Call `function` with an argument of a wrong type; a value type also receives its required fields."""
    if wrong.kind is inspect.Parameter.POSITIONAL_ONLY:
        return function(Wrong())
    needed = list_parameters(function) if isinstance(function, type) else []
    fields = {one.name: FIELDS.get(one.name, "x") for one in needed if one.default is one.empty}
    return function(**fields | {wrong.name: Wrong()})


FIELDS = {"subscriber": Object("Person", 1)}
PARAMETERS = [
    pytest.param(function, parameter, id=f"{name}({parameter.name})")
    for name, function in public_callables()
    for parameter in list_parameters(function)
    if name not in UNCHECKED and f"{name}({parameter.name})" not in UNCHECKED
]


@pytest.mark.parametrize(("function", "parameter"), PARAMETERS)
def test_public_parameter_wrong_type_is_tidings_error(
    function: Callable[..., object], parameter: inspect.Parameter
) -> None:
    with pytest.raises(TidingsError, match="has the wrong type"):
        call_with_wrong(function, parameter)


def test_unchecked_callables_are_public() -> None:
    known = dict(public_callables())
    known |= {f"{name}({one.name})": known[name] for name in [*known] for one in list_parameters(known[name])}
    assert set(UNCHECKED) <= set(known)


def test_public_callables_include_methods_and_constructors() -> None:
    names = {name for name, _ in public_callables()}
    assert {
        "Client.__init__",
        "AsyncClient.follow",
        "Index.create",
        "Tidings.load_taxonomy",
        "notice",
    } <= names


@pytest.mark.parametrize(
    "call",
    [
        lambda: notice(Session, Wrong(), report=list),
        lambda: notice(Wrong(), Base, report=list),  # type: ignore[arg-type]
        lambda: notice(Session, Base, report=Wrong()),  # type: ignore[arg-type]
        lambda: notice(Session, Base, report=list, bulk=Wrong()),  # type: ignore[arg-type]
        lambda: notice(Session, Base, report=list, watches=[Wrong()]),  # type: ignore[list-item]
        lambda: stored(label="name")(Wrong()),  # type: ignore[type-var]
        lambda: implicit(kinds=[Wrong()]),  # type: ignore[list-item]
        lambda: EventSchema({"colour": Wrong()}),  # type: ignore[dict-item]
        lambda: EventSchema({5: Wrong()}),  # type: ignore[dict-item]
        lambda: EventSchema.of([Wrong()]),  # type: ignore[list-item]
        lambda: Client("http://127.0.0.1:1", "tdg_x").destinations.add(5, "https://example.org"),  # type: ignore[arg-type]
        lambda: list(Client("http://127.0.0.1:1", "tdg_x").subscribe_many([Wrong()])),  # type: ignore[list-item]
    ],
)
def test_notice_and_elements_wrong_type_is_tidings_error(call: Callable[[], object]) -> None:
    with pytest.raises(TidingsError):
        call()


def test_publish_many_wrong_element_is_rejected_alone(tmp_path: Path) -> None:
    with Tidings(tmp_path) as home:
        first, second, third = home.publish_many([b'{"a": 1}', {"a": 1}, b'{"a": 2}'])  # type: ignore[list-item]
        assert isinstance(second, Reject) and "has the wrong type" in second.reason
        assert [getattr(one, "position", None) for one in (first, third)] == [1, 2]


def test_entry_points_unambiguous_forms_are_accepted(tmp_path: Path) -> None:
    assert decode('{"price": 5}') == decode(b'{"price": 5}')
    index = Index.create()
    index.add(compile_many([SUBSCRIPTION]))
    assert index.remove("s1") == 1
    with Tidings(tmp_path) as home:
        subscription = home.subscribe("ana", "price < 3")
        assert home.unsubscribe(subscription.id) == [subscription.id]


def test_entry_points_message_shows_correct_call() -> None:
    with pytest.raises(TidingsError) as problem:
        compile_many(["price < 3"])  # type: ignore[list-item]
    assert str(problem.value) == (
        "the argument 'subscriptions' has the wrong type; received str; accepted: Subscription; "
        "compile_many([Subscription('s1', 'ana', 'predicates', 'price < 3')])"
    )
