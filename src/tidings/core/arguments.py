"""Validation of arguments and values at entry points, with an `InputError` that states the accepted values."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, wraps
from types import FunctionType, NoneType, UnionType
from typing import Annotated, Any, ParamSpec, TypeVar, Union, get_args, get_origin

from tidings.errors import InputError

# Values that every supported database can hold. PostgreSQL rejects NUL in text and integers beyond 64 bits; SQLite
# stores NUL and stops reading at it, and its driver fails on such integers. Neither accepts a lone surrogate. Such a
# value in a request, a cursor or an option is the caller's mistake, so it is checked before a database sees it.

LARGEST_INTEGER = 2**63 - 1
"""Largest number that a column holds."""

_DIGITS = len(str(LARGEST_INTEGER))
_RANGE = f"0 to {LARGEST_INTEGER}"

TEXT_PATTERN = r"^[^\x00]*$"
"""Storable texts, for JSON Schema; UTF-8 has no lone surrogates."""


def is_storable(text: str) -> bool:
    """Return whether a database can store the text: no NUL, no lone surrogate."""
    return "\x00" not in text and (text.isascii() or _is_encodable(text))


def check_text(title: str, text: str, pointer: str | None = None) -> str:
    """Return the text, or raise if no database can store it; `pointer` is the JSON pointer to it."""
    if not is_storable(text):
        problem = InputError(
            f"{title} has a character that no database keeps as text",
            received=ascii(text[:80]),
            accepted="Unicode without NUL and surrogates",
        )
        problem.pointer = pointer
        raise problem
    return text


def check_members(value: Any, within: Sequence[str | int] = ()) -> None:
    """Raise if a body has, at any depth, a text that no database can store.

    `within` is the path to the value. It becomes a JSON pointer only in an error: a pointer for each of many values
    below a long name would take quadratic time.
    """
    if isinstance(value, str):
        _check_member("this text", value, within)
    elif isinstance(value, list):
        for index, element in enumerate(value):
            check_members(element, (*within, index))
    elif isinstance(value, dict):
        for name, member in value.items():
            _check_member("this name", name, within)
            check_members(member, (*within, name))


def _check_member(title: str, text: str, within: Sequence[str | int]) -> None:
    if not is_storable(text):
        check_text(title, text, "".join(f"/{escaped(str(each))}" for each in within))


def escaped(name: str) -> str:
    """Escape a name for a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


def check_number(where: str, number: int) -> int:
    """Return a cursor, offset or count, or raise if no column holds it; `where` names the parameter."""
    if not 0 <= number <= LARGEST_INTEGER:
        shown = str(number) if abs(number) < 10**40 else "a number of more than 40 digits"
        raise InputError("a number out of range", where=where, received=shown, accepted=_RANGE)
    return number


def parse_number(where: str, text: str) -> int:
    """Parse a cursor, offset or count, or raise if no column holds it."""
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS):
        raise InputError("not a number", where=where, received=ascii(text)[:80], accepted=_RANGE)
    return check_number(where, int(text))


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C", bound=type)

Kinds = type | tuple[type, ...]


def accepts(hint: str | None = None, /, **kinds: Kinds) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Reject arguments whose types differ from their annotations, or from `kinds`; `hint` shows a call.

    Annotations are read at the first call. Those that `isinstance` cannot decide, such as protocols, are not checked.
    """

    def decorated(function: Callable[P, T]) -> Callable[P, T]:
        names = list(inspect.signature(function).parameters)
        expected_kinds = cache(lambda: _kinds_by_name(function) | kinds)

        @wraps(function)
        def checked(*args: P.args, **named: P.kwargs) -> T:
            expected = expected_kinds()
            for name, value in [*zip(names, args, strict=False), *named.items()]:
                if name in expected and not isinstance(value, expected[name]):
                    raise wrong_type(name, value, expected[name], hint)
            return function(*args, **named)

        return checked

    return decorated


def checks_arguments(cls: C) -> C:
    """Apply `accepts` to all public methods of a class and to its `__init__`."""
    for name, member in list(vars(cls).items()):
        inner = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        is_public = name == "__init__" or not name.startswith("_")
        if not is_public or not isinstance(inner, FunctionType) or hasattr(inner, "__wrapped__"):
            continue
        checked: Any = accepts()(inner)
        setattr(cls, name, type(member)(checked) if inner is not member else checked)
    return cls


def wrong_type(name: str, value: Any, kinds: Kinds, hint: str | None = None) -> InputError:
    """Build the error for an argument of the wrong type."""
    accepted_kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    accepted = ", ".join("None" if kind is NoneType else kind.__name__ for kind in accepted_kinds)
    return InputError(
        f"the argument '{name}' has the wrong type",
        received=type(value).__name__,
        accepted=accepted,
        hint=hint,
    )


def each_is(name: str, values: Iterable[T], kind: Kinds, hint: str | None = None) -> Iterator[T]:
    """Yield the elements of an argument, and raise at one of the wrong type."""
    for element in values:
        if not isinstance(element, kind):
            raise wrong_type(name, element, kind, hint)
        yield element


def check_fields(value: object, **kinds: Kinds) -> None:
    """Raise if a field of a value has the wrong type."""
    for name, kind in kinds.items():
        if not isinstance(field := getattr(value, name), kind):
            raise wrong_type(name, field, kind)


def _kinds_by_name(function: Callable[..., Any]) -> dict[str, Kinds]:
    names = vars(sys.modules[function.__module__])
    kinds_by_name = {
        name: _kinds_of(_evaluate(annotation, names))
        for name, annotation in inspect.get_annotations(function).items()
        if name != "return"
    }
    return {name: kinds for name, kinds in kinds_by_name.items() if kinds}


def _evaluate(annotation: Any, names: Mapping[str, Any]) -> Any:
    """Evaluate an annotation; Any if its name is imported for type checkers only."""
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, dict(names))
    except NameError:
        return Any


def _kinds_of(annotation: Any) -> tuple[type, ...]:
    """Return the types for `isinstance`; none if it cannot decide."""
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
