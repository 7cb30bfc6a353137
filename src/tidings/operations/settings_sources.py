"""Sources of settings: defaults, a file, the environment, the command line; and the origin of each setting."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr, ValidationError
from pydantic_settings import EnvSettingsSource
from pydantic_settings.exceptions import SettingsError

from tidings.core.suggest import closest, expected
from tidings.errors import InputError, Place
from tidings.operations.settings import (
    NESTING_DELIMITER,
    RENAMED_SETTINGS,
    VARIABLE_PREFIX,
    Limits,
    Settings,
)

# Positions of settings in a TOML text: tomllib returns values without their positions.


_TABLE = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]")
_KEY = re.compile(r"\s*([A-Za-z0-9_.\"'-]+)\s*=")


def locate_setting(text: str, path: tuple[str, ...]) -> Place | None:
    """Locate the key of a setting, `key =` below its `[table]` or `table.key =`; None if it is written otherwise."""
    table: tuple[str, ...] = ()
    start = 0
    for line in text.splitlines(keepends=True):
        if header := _TABLE.match(line):
            table = _split_key(header[1])
            if table == path:
                return Place.at(text, start + header.start(1), start + header.end(1))
        elif (key := _KEY.match(line)) and (*table, *_split_key(key[1])) == path[
            : len(table) + key[1].count(".") + 1
        ]:
            return Place.at(text, start + key.start(1), start + key.end(1))
        start += len(line)
    return None


def _split_key(dotted: str) -> tuple[str, ...]:
    return tuple(name.strip().strip("\"'") for name in dotted.split("."))


SETTINGS_FILE = "tidings.toml"
CONFIG_VARIABLE = "TIDINGS_CONFIG"
"""Environment variable with the path of another settings file."""

HIDDEN = "***"
OPAQUE_TABLES = (("spark", "conf"), ("traces", "headers"))
"""Tables that are one setting: their keys are names of other programs, which may contain dots."""
LIMIT_NAMES = tuple(Settings.model_fields["limits"].annotation.model_fields)  # type: ignore[union-attr]

SettingPath = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """Settings, and the origin of each that is not a default: `tidings.toml, line 3`, `TIDINGS_PORT`, `--port`."""

    settings: Settings
    origins: Mapping[str, str]
    file: Path | None = None

    def export(self) -> None:
        """Export limits to environment variables, where their modules read them, also in processes of the stream."""
        for name in LIMIT_NAMES:
            if value := getattr(self.settings.limits, name):
                os.environ.setdefault(f"{VARIABLE_PREFIX}{name.upper()}_LIMITS", value)


@dataclass(slots=True)
class SettingSources:
    """Values of all sources; later sources take precedence."""

    file: Path | None = None
    text: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)

    def add(self, values: Mapping[str, Any], origin: Any) -> None:
        for path, value in iterate_leaves(values):
            _put(self.values, path, value)
            self.origins[".".join(path)] = origin(path)

    def settings(self) -> Settings:
        """Return the settings, or raise the first error."""
        if errors := self.refusals():
            raise errors[0]
        return Settings.model_validate(self.values)

    def refusals(self) -> list[InputError]:
        """List all errors, each with its origin."""
        try:
            Settings.model_validate(self.values)
        except ValidationError as error:
            return explain_validation_error(error, self._place, self.origins)
        return []

    def _place(self, path: SettingPath) -> Place | None:
        """Return the place in the file, if the setting, or one in the table, comes from there."""
        name = ".".join(path)
        origins = [origin for known, origin in self.origins.items() if f"{known}.".startswith(f"{name}.")]
        is_from_file = self.file is not None and any(origin.startswith(str(self.file)) for origin in origins)
        return locate_setting(self.text, path) if is_from_file else None


def load_settings(typed: Mapping[str, Any] | None = None, config: Path | None = None) -> LoadedSettings:
    """Load the settings; `given` are those of the command line, `config` is a file that has to exist."""
    sources = read_sources(typed, config)
    return LoadedSettings(sources.settings(), sources.origins, sources.file)


def read_sources(typed: Mapping[str, Any] | None = None, config: Path | None = None) -> SettingSources:
    """Read all sources, without validating the values."""
    typed = typed or {}
    environment = _read_environment()
    sources = SettingSources()
    sources.file = _find_file(config, typed.get("home") or environment.get("home"))
    if sources.file is not None:
        sources.text, values = _read_file(sources.file)
        sources.add(values, lambda path: _describe_line(sources, path))
    sources.add(environment, lambda path: variable_name(".".join(path)))
    sources.add(_nest(typed), lambda path: "--" + path[-1].replace("_", "-"))
    return sources


def _describe_line(sources: SettingSources, path: SettingPath) -> str:
    place = locate_setting(sources.text, path)
    return f"{sources.file}, line {place.line}" if place else str(sources.file)


def _find_file(config: Path | None, home: Any) -> Path | None:
    """Return the named file, which has to exist, or the one in the home folder, if there is one."""
    named = config or (Path(os.environ[CONFIG_VARIABLE]) if os.environ.get(CONFIG_VARIABLE) else None)
    if named is not None:
        return named
    usual = Path(home or Settings.model_fields["home"].default) / SETTINGS_FILE
    return usual if usual.is_file() else None


def _read_file(file: Path) -> tuple[str, dict[str, Any]]:
    try:
        text = file.read_text()
        return text, tomllib.loads(text)
    except OSError as error:
        raise InputError(f"the settings cannot be read: {error.strerror}", where=str(file)) from error
    except UnicodeDecodeError as error:
        raise InputError("the settings are not UTF-8", where=str(file)) from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"invalid TOML: {error}", where=str(file)) from error


def _read_environment() -> dict[str, Any]:
    try:
        values = dict(EnvSettingsSource(Settings)())
    except SettingsError as error:
        raise InputError(f"the environment cannot be read: {error}", where=f"{VARIABLE_PREFIX}...") from error
    return _read_renamed_variables() | values


def _read_renamed_variables() -> dict[str, str]:
    """Read variables of renamed settings outside of tables, which pydantic ignores; validation reports them."""
    variables = {name: variable_name(name) for name in RENAMED_SETTINGS if "." not in name}
    return {name: os.environ[variable] for name, variable in variables.items() if os.environ.get(variable)}


def variable_name(setting: str) -> str:
    """Return the environment variable of a setting: `TIDINGS_SPARK__MASTER` for `spark.master`."""
    return VARIABLE_PREFIX + setting.upper().replace(".", NESTING_DELIMITER)


def iterate_leaves(values: Mapping[str, Any], path: SettingPath = ()) -> Iterator[tuple[SettingPath, Any]]:
    """Yield each value with its path."""
    for name, value in values.items():
        below = (*path, str(name))
        if isinstance(value, Mapping) and below not in OPAQUE_TABLES:
            yield from iterate_leaves(value, below)
        else:
            yield below, value


def _put(values: dict[str, Any], path: SettingPath, value: Any) -> None:
    for name in path[:-1]:
        inner = values.setdefault(name, {})
        if not isinstance(inner, dict):
            return  # a table was expected: validation reports it
        values = inner
    values[path[-1]] = value


def _nest(typed: Mapping[str, Any]) -> dict[str, Any]:
    """Turn `{"spark.master": "local"}` into nested tables."""
    nested: dict[str, Any] = {}
    for name, value in typed.items():
        _put(nested, tuple(name.split(".")), value)
    return nested


def format_setting(settings: Settings, name: str) -> str:
    """Format a setting, named `table.key`, without secrets; empty if it is not set."""
    value: Any = settings
    for part in name.split("."):
        value = getattr(value, part)
    if isinstance(value, dict):
        return ", ".join(f"{key}={_format_keyed_value(key, each)}" for key, each in value.items())
    return "" if value is None else format_value(value)


_SECRET_KEY = re.compile(r"(?i)secret|password|token|credential|access[.]?key")
"""Keys of Spark settings whose values Spark redacts as well (`spark.redaction.regex`)."""


def _format_keyed_value(key: str, value: object) -> str:
    return HIDDEN if _SECRET_KEY.search(key) else format_value(value)


def format_value(value: object) -> str:
    """Format a value without secrets: an address without its password, any other secret hidden."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return ", ".join(map(format_value, value))
    if not isinstance(value, SecretStr):
        return mask_password(str(value))
    address = value.get_secret_value()
    return mask_password(address) if "://" in address else HIDDEN


def mask_password(address: str) -> str:
    """Hide the password of an address: `postgresql://tidings:***@host/name`."""
    scheme, separator, remainder = address.partition("://")
    login, sign, place = remainder.rpartition("@")
    has_password = separator and sign and ":" in login
    return f"{scheme}://{login.partition(':')[0]}:{HIDDEN}@{place}" if has_password else address


# Validation errors: which setting, where it was set, and a suggestion.

PlaceLookup = Callable[[tuple[str, ...]], Place | None]


def explain_validation_error(
    error: ValidationError, place: PlaceLookup, origins: Mapping[str, str]
) -> list[InputError]:
    """Turn each error of the model into one with its place or origin."""
    details = {tuple(map(str, detail["loc"])): detail for detail in error.errors()}
    return [_explain_one(path, detail, place(path), origins) for path, detail in details.items()]


def _explain_one(
    path: tuple[str, ...], detail: Mapping[str, Any], place: Place | None, origins: Mapping[str, str]
) -> InputError:
    name = ".".join(path)
    where = None if place else _find_origin(path, origins)
    if detail["type"] == "extra_forbidden" and name in RENAMED_SETTINGS:
        return _explain_renamed(name, place, where)
    if detail["type"] == "extra_forbidden":
        return InputError(
            f"there is no setting '{name}'", place=place, where=where, hint=suggest_setting(path)
        )
    received = None if is_secret(path) else repr(detail["input"])
    if detail["type"] == "value_error":  # our own message, which has the received value
        return InputError(f"{name}: {expected(detail)}", place=place, where=where)
    message = f"{name} is invalid"
    return InputError(message, place=place, where=where, received=received, accepted=expected(detail))


def _explain_renamed(name: str, place: Place | None, where: str | None) -> InputError:
    new = RENAMED_SETTINGS[name]
    hint = f"use {variable_name(new)}" if where == variable_name(name) else f"use '{new}'"
    return InputError(f"the setting '{name}' was renamed", place=place, where=where, hint=hint)


def _find_origin(path: tuple[str, ...], origins: Mapping[str, str]) -> str | None:
    """Find the origin of a setting, or of the list or table that contains it."""
    for length in range(len(path), 0, -1):
        if origin := origins.get(".".join(path[:length])):
            return origin
    return None


def suggest_setting(path: tuple[str, ...]) -> str | None:
    """Suggest the setting with the most similar name or last word, or else list the settings of the table.

    A setting may be in the wrong table. Within a table only last words are compared: the table makes any two similar.
    """
    names = list_setting_names()
    tables = {name.rpartition(".")[0] for name in names} - {""}
    by_last = {name.rpartition(".")[2]: name for name in names}
    table = ".".join(path[:-1])
    beside = [
        name.rpartition(".")[2] for name in names if table in tables and name.rpartition(".")[0] == table
    ]
    if suggestion := closest(path[-1], beside):
        return f"did you mean '{table}.{suggestion}'?"
    if not beside and (suggestion := closest(".".join(path), [*names, *tables])):
        return f"did you mean '{suggestion}'?"
    if suggestion := closest(path[-1], by_last):
        return f"did you mean '{by_last[suggestion]}'?"
    return f"{table} has {', '.join(beside)}" if beside else None


def list_setting_names(model: type[BaseModel] = Settings, prefix: str = "") -> list[str]:
    """List the names of all settings, `table.key`."""
    names = []
    for name, declared in model.model_fields.items():
        inner = declared.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            names += list_setting_names(inner, f"{prefix}{name}.")
        else:
            names.append(f"{prefix}{name}")
    return names


def is_secret(path: tuple[str, ...]) -> bool:
    """Return whether the value of a setting is a secret."""
    model: Any = Settings
    for name in path[:-1]:
        model = model.model_fields[name].annotation
    declared = model.model_fields.get(path[-1]) if hasattr(model, "model_fields") else None
    return declared is not None and SecretStr.__name__ in str(declared.annotation)


def find_unknown_variables(environment: Mapping[str, str], others: frozenset[str]) -> list[InputError]:
    """List the environment variables with the prefix that are not settings, nor earlier names of settings."""
    names = {variable_name(name) for name in list_setting_names()} | others
    names |= {f"{VARIABLE_PREFIX}{name.upper()}_LIMITS" for name in Limits.model_fields}
    skipped = names | {variable_name(name) for name in RENAMED_SETTINGS}
    errors = []
    for name in sorted(environment):
        is_nested = any(name.startswith(f"{variable}{NESTING_DELIMITER}") for variable in names)
        if name.startswith(VARIABLE_PREFIX) and name not in skipped and not is_nested:
            suggestion = closest(name, names)
            hint = f"did you mean {suggestion}?" if suggestion else None
            errors.append(InputError("no setting has this variable", where=name, hint=hint))
    return errors
