"""Where settings come from: defaults, a file, the environment, the command line, and which of them said what."""

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
from tidings.operations.settings import NESTING_DELIMITER, VARIABLE_PREFIX, Limits, Settings

# Where in a TOML text a setting stands. Python's reader of TOML tells values only, and not where they were.


_TABLE = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]")
_KEY = re.compile(r"\s*([A-Za-z0-9_.\"'-]+)\s*=")


def locate_setting(text: str, path: tuple[str, ...]) -> Place | None:
    """The key of a setting, as `key =` below its `[table]` or as `table.key =`; None where it is written otherwise."""
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
"""The variable of the environment that names another file."""

HIDDEN = "***"
OPAQUE_TABLES = (("spark", "conf"), ("traces", "headers"))
"""Tables that are one setting: what stands in them has names of others, with dots perhaps."""
LIMIT_NAMES = tuple(Settings.model_fields["limits"].annotation.model_fields)  # type: ignore[union-attr]

SettingPath = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """Settings, and where each comes from that is no default: `tidings.toml, line 3`, `TIDINGS_PORT`, `--port`."""

    settings: Settings
    origins: Mapping[str, str]
    file: Path | None = None

    def export(self) -> None:
        """Put limits from the file where the modules look that read them, also in the processes of the stream."""
        for name in LIMIT_NAMES:
            if value := getattr(self.settings.limits, name):
                os.environ.setdefault(f"{VARIABLE_PREFIX}{name.upper()}_LIMITS", value)


@dataclass(slots=True)
class SettingSources:
    """What the sources say, each outweighing those before it."""

    file: Path | None = None
    text: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)

    def add(self, said: Mapping[str, Any], origin: Any) -> None:
        for path, value in iterate_leaves(said):
            _put(self.values, path, value)
            self.origins[".".join(path)] = origin(path)

    def settings(self) -> Settings:
        """The settings, or the first refusal."""
        if found := self.refusals():
            raise found[0]
        return Settings.model_validate(self.values)

    def refusals(self) -> list[InputError]:
        """All that is wrong with them, each where it was said."""
        try:
            Settings.model_validate(self.values)
        except ValidationError as error:
            return explain_validation_error(error, self._place, self.origins)
        return []

    def _place(self, path: SettingPath) -> Place | None:
        """Where in the file, if the file said it: a table is where what is in it comes from."""
        name = ".".join(path)
        said = [origin for known, origin in self.origins.items() if f"{known}.".startswith(f"{name}.")]
        from_file = self.file is not None and any(each.startswith(str(self.file)) for each in said)
        return locate_setting(self.text, path) if from_file else None


def load_settings(given: Mapping[str, Any] | None = None, config: Path | None = None) -> LoadedSettings:
    """The settings; `given` are those of the command line, `config` is a file that has to be there."""
    found = read_sources(given, config)
    return LoadedSettings(found.settings(), found.origins, found.file)


def read_sources(given: Mapping[str, Any] | None = None, config: Path | None = None) -> SettingSources:
    """What is said, and where; nothing is checked but that it can be read."""
    given = given or {}
    environment = _environment()
    found = SettingSources()
    found.file = _file(config, given.get("home") or environment.get("home"))
    if found.file is not None:
        found.text, said = _read(found.file)
        found.add(said, lambda path: _in_file(found, path))
    found.add(environment, lambda path: VARIABLE_PREFIX + NESTING_DELIMITER.join(path).upper())
    found.add(_nested(given), lambda path: "--" + path[-1].replace("_", "-"))
    return found


def _in_file(found: SettingSources, path: SettingPath) -> str:
    place = locate_setting(found.text, path)
    return f"{found.file}, line {place.line}" if place else str(found.file)


def _file(config: Path | None, home: Any) -> Path | None:
    """The file that is named, which has to be there, or the one in the home folder, if there is one."""
    named = config or (Path(os.environ[CONFIG_VARIABLE]) if os.environ.get(CONFIG_VARIABLE) else None)
    if named is not None:
        return named
    usual = Path(home or Settings.model_fields["home"].default) / SETTINGS_FILE
    return usual if usual.is_file() else None


def _read(file: Path) -> tuple[str, dict[str, Any]]:
    try:
        text = file.read_text()
        return text, tomllib.loads(text)
    except OSError as error:
        raise InputError(f"the settings cannot be read: {error.strerror}", where=str(file)) from error
    except UnicodeDecodeError as error:
        raise InputError("the settings are not UTF-8", where=str(file)) from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"this is no TOML: {error}", where=str(file)) from error


def _environment() -> dict[str, Any]:
    try:
        return dict(EnvSettingsSource(Settings)())
    except SettingsError as error:
        raise InputError(f"the environment cannot be read: {error}", where=f"{VARIABLE_PREFIX}...") from error


def iterate_leaves(said: Mapping[str, Any], path: SettingPath = ()) -> Iterator[tuple[SettingPath, Any]]:
    """Each value with its path."""
    for name, value in said.items():
        below = (*path, str(name))
        if isinstance(value, Mapping) and below not in OPAQUE_TABLES:
            yield from iterate_leaves(value, below)
        else:
            yield below, value


def _put(values: dict[str, Any], path: SettingPath, value: Any) -> None:
    for name in path[:-1]:
        inner = values.setdefault(name, {})
        if not isinstance(inner, dict):
            return  # a table was expected: the check says so
        values = inner
    values[path[-1]] = value


def _nested(given: Mapping[str, Any]) -> dict[str, Any]:
    """`{"spark.master": "local"}` as tables."""
    nested: dict[str, Any] = {}
    for name, value in given.items():
        _put(nested, tuple(name.split(".")), value)
    return nested


def format_setting(settings: Settings, name: str) -> str:
    """A setting by its name, `table.key`, as it may be shown; nothing if it is not set."""
    value: Any = settings
    for part in name.split("."):
        value = getattr(value, part)
    if isinstance(value, dict):
        return ", ".join(f"{key}={_format_keyed_value(key, each)}" for key, each in value.items())
    return "" if value is None else format_value(value)


_SECRET_KEY = re.compile(r"(?i)secret|password|token|credential|access[.]?key")
"""Keys of Spark's settings whose values Spark hides as well (`spark.redaction.regex`)."""


def _format_keyed_value(key: str, value: object) -> str:
    return HIDDEN if _SECRET_KEY.search(key) else format_value(value)


def format_value(value: object) -> str:
    """A setting as it may be shown: of an address everything but its password, of another secret nothing."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return ", ".join(map(format_value, value))
    if not isinstance(value, SecretStr):
        return mask_password(str(value))
    address = value.get_secret_value()
    return mask_password(address) if "://" in address else HIDDEN


def mask_password(address: str) -> str:
    """`postgresql://tidings:***@host/name`."""
    scheme, found, rest = address.partition("://")
    login, at, place = rest.rpartition("@")
    has_one = found and at and ":" in login
    return f"{scheme}://{login.partition(':')[0]}:{HIDDEN}@{place}" if has_one else address


# Validation errors: which setting, where it was set, and a suggestion.

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
    what = f"{name} is invalid"
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
    """List the names of all settings, `table.key`."""
    names = []
    for name, declared in model.model_fields.items():
        inner = declared.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            names += list_setting_names(inner, f"{before}{name}.")
        else:
            names.append(f"{before}{name}")
    return names


def is_secret(path: tuple[str, ...]) -> bool:
    """Whether what a setting says may be shown to nobody."""
    model: Any = Settings
    for name in path[:-1]:
        model = model.model_fields[name].annotation
    declared = model.model_fields.get(path[-1]) if hasattr(model, "model_fields") else None
    return declared is not None and SecretStr.__name__ in str(declared.annotation)


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
