"""What is wrong with settings, in words: which one, where it was said, and what was meant perhaps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, SecretStr, ValidationError

from tidings.core.suggest import closest, expected
from tidings.errors import InputError, Place
from tidings.operations.settings import NESTING_DELIMITER, VARIABLE_PREFIX, Limits, Settings

PlaceLookup = Callable[[tuple[str, ...]], Place | None]


def explain_validation_error(
    error: ValidationError, place: PlaceLookup, origins: Mapping[str, str]
) -> list[InputError]:
    """Each problem that the model found."""
    found = {tuple(map(str, each["loc"])): each for each in error.errors()}
    return [_explain_one(path, each, place(path), origins) for path, each in found.items()]


def _explain_one(
    path: tuple[str, ...], found: Mapping[str, Any], place: Place | None, origins: Mapping[str, str]
) -> InputError:
    name = ".".join(path)
    where = None if place else _origin(path, origins)
    if found["type"] == "extra_forbidden":
        return InputError(
            f"there is no setting '{name}'", place=place, where=where, hint=suggest_setting(path)
        )
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


def suggest_setting(path: tuple[str, ...]) -> str | None:
    """The setting whose name is most like this one, or whose last word is: it may stand in the wrong table. If there is
    none, those of its table. In a table that there is, last words are compared: the first ones make any two alike.
    """
    known = list_setting_names()
    tables = {name.rpartition(".")[0] for name in known} - {""}
    by_last = {name.rpartition(".")[2]: name for name in known}
    table = ".".join(path[:-1])
    beside = [
        name.rpartition(".")[2] for name in known if table in tables and name.rpartition(".")[0] == table
    ]
    if meant := closest(path[-1], beside):
        return f"did you mean '{table}.{meant}'?"
    if not beside and (meant := closest(".".join(path), [*known, *tables])):
        return f"did you mean '{meant}'?"
    if meant := closest(path[-1], by_last):
        return f"did you mean '{by_last[meant]}'?"
    return f"{table} has {', '.join(beside)}" if beside else None


def list_setting_names(model: type[BaseModel] = Settings, before: str = "") -> list[str]:
    """All settings, `table.key`."""
    found = []
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            found += list_setting_names(inner, f"{before}{name}.")
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


def find_unknown_variables(environment: Mapping[str, str], others: frozenset[str]) -> list[InputError]:
    """Variables that look like settings and are none."""
    known = {
        VARIABLE_PREFIX + name.upper().replace(".", NESTING_DELIMITER) for name in list_setting_names()
    } | others
    known |= {f"{VARIABLE_PREFIX}{name.upper()}_LIMITS" for name in Limits.model_fields}
    found = []
    for name in sorted(environment):
        nested = any(name.startswith(f"{each}{NESTING_DELIMITER}") for each in known)
        if name.startswith(VARIABLE_PREFIX) and name not in known and not nested:
            meant = closest(name, known)
            hint = f"did you mean {meant}?" if meant else None
            found.append(InputError("no setting has this variable", where=name, hint=hint))
    return found
