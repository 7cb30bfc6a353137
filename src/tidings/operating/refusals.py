"""What is wrong with settings, in words: which one, where it was said, and what was meant perhaps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, SecretStr, ValidationError

from tidings.errors import InputError, Place
from tidings.expected import expected
from tidings.guessing import near
from tidings.operating.settings import NESTED, PREFIX, Limits, Settings

Places = Callable[[tuple[str, ...]], Place | None]


def refusals(error: ValidationError, place: Places, origins: Mapping[str, str]) -> list[InputError]:
    """Each problem that the model found."""
    found = {tuple(map(str, each["loc"])): each for each in error.errors()}
    return [_refusal(path, each, place(path), origins) for path, each in found.items()]


def _refusal(
    path: tuple[str, ...], found: Mapping[str, Any], place: Place | None, origins: Mapping[str, str]
) -> InputError:
    name = ".".join(path)
    where = None if place else _origin(path, origins)
    if found["type"] == "extra_forbidden":
        return InputError(f"there is no setting '{name}'", place=place, where=where, hint=meant(path))
    received = None if is_secret(path) else repr(found["input"])
    if found["type"] == "value_error":  # in words of ours, with what was received
        return InputError(f"{name}: {expected(found)}", place=place, where=where)
    what = f"{name} cannot be this"
    return InputError(what, place=place, where=where, received=received, accepted=expected(found))


def _origin(path: tuple[str, ...], origins: Mapping[str, str]) -> str | None:
    """Where it was said; of a value inside a list or a table, where that was."""
    for length in range(len(path), 0, -1):
        if found := origins.get(".".join(path[:length])):
            return found
    return None


def meant(path: tuple[str, ...]) -> str | None:
    """The setting whose name is most like this one, or whose last word is: it may stand in the wrong table. If there is
    none, those of its table. In a table that there is, last words are compared: the first ones make any two alike.
    """
    known = names()
    tables = {name.rpartition(".")[0] for name in known} - {""}
    by_last = {name.rpartition(".")[2]: name for name in known}
    table = ".".join(path[:-1])
    beside = [
        name.rpartition(".")[2] for name in known if table in tables and name.rpartition(".")[0] == table
    ]
    if meant := near(path[-1], beside):
        return f"did you mean '{table}.{meant}'?"
    if not beside and (meant := near(".".join(path), [*known, *tables])):
        return f"did you mean '{meant}'?"
    if meant := near(path[-1], by_last):
        return f"did you mean '{by_last[meant]}'?"
    return f"{table} has {', '.join(beside)}" if beside else None


def names(model: type[BaseModel] = Settings, before: str = "") -> list[str]:
    """All settings, `table.key`."""
    found = []
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            found += names(inner, f"{before}{name}.")
        else:
            found.append(f"{before}{name}")
    return found


def is_secret(path: tuple[str, ...]) -> bool:
    """Whether what a setting says may be shown to nobody."""
    model: Any = Settings
    for name in path[:-1]:
        model = model.model_fields[name].annotation
    field = model.model_fields.get(path[-1]) if hasattr(model, "model_fields") else None
    return field is not None and SecretStr.__name__ in str(field.annotation)


def unknown_variables(environment: Mapping[str, str], others: frozenset[str]) -> list[InputError]:
    """Variables that look like settings and are none."""
    known = {PREFIX + name.upper().replace(".", NESTED) for name in names()} | others
    known |= {f"{PREFIX}{name.upper()}_LIMITS" for name in Limits.model_fields}
    found = []
    for name in sorted(environment):
        nested = any(name.startswith(f"{each}{NESTED}") for each in known)
        if name.startswith(PREFIX) and name not in known and not nested:
            meant = near(name, known)
            hint = f"did you mean {meant}?" if meant else None
            found.append(InputError("no setting has this variable", where=name, hint=hint))
    return found
