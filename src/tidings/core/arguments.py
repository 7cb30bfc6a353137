"""Types of arguments at the library's entry points: what is wrong is an `InputError` that says what to pass."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, wraps
from types import FunctionType, NoneType, UnionType
from typing import Annotated, Any, ParamSpec, TypeVar, Union, get_args, get_origin

from tidings.errors import InputError

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C", bound=type)

Kinds = type | tuple[type, ...]


def accepts(hint: str | None = None, /, **kinds: Kinds) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Refuse arguments that are of other types than their annotations, or `kinds`, name; `hint` shows a call.

    Annotations are read at the first call. Those that `isinstance` cannot decide, such as protocols, are not checked.
    """

    def decorated(function: Callable[P, T]) -> Callable[P, T]:
        names = list(inspect.signature(function).parameters)
        known = cache(lambda: _kinds_by_name(function) | kinds)

        @wraps(function)
        def checked(*args: P.args, **named: P.kwargs) -> T:
            expected = known()
            for name, given in [*zip(names, args, strict=False), *named.items()]:
                if name in expected and not isinstance(given, expected[name]):
                    raise wrong_type(name, given, expected[name], hint)
            return function(*args, **named)

        return checked

    return decorated


def checks_arguments(cls: C) -> C:
    """Let all public methods of a class, and its `__init__`, refuse arguments of wrong types as `accepts` does."""
    for name, member in list(vars(cls).items()):
        inner = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        is_public = name == "__init__" or not name.startswith("_")
        if not is_public or not isinstance(inner, FunctionType) or hasattr(inner, "__wrapped__"):
            continue
        checked: Any = accepts()(inner)
        setattr(cls, name, type(member)(checked) if inner is not member else checked)
    return cls


def wrong_type(name: str, given: Any, kinds: Kinds, hint: str | None = None) -> InputError:
    """The error for an argument of another type."""
    known = kinds if isinstance(kinds, tuple) else (kinds,)
    accepted = ", ".join("None" if kind is NoneType else kind.__name__ for kind in known)
    return InputError(
        f"the argument '{name}' has the wrong type",
        received=type(given).__name__,
        accepted=accepted,
        hint=hint,
    )


def each_is(name: str, given: Iterable[T], kind: Kinds, hint: str | None = None) -> Iterator[T]:
    """Yield the elements of an argument, and refuse those of another type."""
    for element in given:
        if not isinstance(element, kind):
            raise wrong_type(name, element, kind, hint)
        yield element


def check_fields(value: object, **kinds: Kinds) -> None:
    """Refuse a value whose fields are of other types."""
    for name, kind in kinds.items():
        if not isinstance(given := getattr(value, name), kind):
            raise wrong_type(name, given, kind)


def _kinds_by_name(function: Callable[..., Any]) -> dict[str, Kinds]:
    names = vars(sys.modules[function.__module__])
    found = {
        name: _kinds_of(_evaluated(annotation, names))
        for name, annotation in inspect.get_annotations(function).items()
        if name != "return"
    }
    return {name: kinds for name, kinds in found.items() if kinds}


def _evaluated(annotation: Any, names: Mapping[str, Any]) -> Any:
    """The type that an annotation names; Any if its name is imported for type checkers alone."""
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, dict(names))
    except NameError:
        return Any


def _kinds_of(annotation: Any) -> tuple[type, ...]:
    """The types that values of an annotation have; none if that cannot be decided by `isinstance`."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _kinds_of(get_args(annotation)[0])
    if origin in (Union, UnionType):
        parts = [_kinds_of(each) for each in get_args(annotation)]
        return tuple(dict.fromkeys(kind for part in parts for kind in part)) if all(parts) else ()
    if annotation is None:
        return (NoneType,)
    if annotation is float:
        return (float, int)
    kind = annotation if origin is None else origin
    is_decidable = isinstance(kind, type) and kind is not Any and not getattr(kind, "_is_protocol", False)
    return (kind,) if is_decidable else ()
