"""Types of arguments at the library's entry points: what is wrong is an `InputError` that says what to pass."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from tidings.errors import InputError

P = ParamSpec("P")
T = TypeVar("T")


def accepts(
    hint: str | None = None, /, **kinds: type | tuple[type, ...]
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Refuse arguments that are of none of the types named for them; `hint` is how the function is called."""

    def decorated(function: Callable[P, T]) -> Callable[P, T]:
        names = list(inspect.signature(function).parameters)

        @wraps(function)
        def checked(*args: P.args, **named: P.kwargs) -> T:
            for name, given in [*zip(names, args, strict=False), *named.items()]:
                if name in kinds and not isinstance(given, kinds[name]):
                    raise wrong_type(name, given, kinds[name], hint)
            return function(*args, **named)

        return checked

    return decorated


def wrong_type(name: str, given: Any, kinds: type | tuple[type, ...], hint: str | None = None) -> InputError:
    """The error for an argument of another type."""
    known = kinds if isinstance(kinds, tuple) else (kinds,)
    accepted = ", ".join("None" if kind is type(None) else kind.__name__ for kind in known)
    return InputError(
        f"the argument '{name}' has the wrong type",
        received=type(given).__name__,
        accepted=accepted,
        hint=hint,
    )
