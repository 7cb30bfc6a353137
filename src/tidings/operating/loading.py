"""Where settings come from: defaults, a file, the environment, the command line, and which of them said what."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import SecretStr, ValidationError
from pydantic_settings import EnvSettingsSource
from pydantic_settings.exceptions import SettingsError

from tidings.errors import InputError, Place
from tidings.operating.places import place_of
from tidings.operating.refusals import refusals
from tidings.operating.settings import NESTED, PREFIX, Settings

FILE = "tidings.toml"
CONFIG = "TIDINGS_CONFIG"
"""The variable of the environment that names another file."""

HIDDEN = "***"
WHOLE = (("spark", "conf"), ("traces", "headers"))
"""Tables that are one setting: what stands in them has names of others, with dots perhaps."""
LIMITS = tuple(Settings.model_fields["limits"].annotation.model_fields)  # type: ignore[union-attr]

Path_ = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings, and where each comes from that is no default: `tidings.toml, line 3`, `TIDINGS_PORT`, `--port`."""

    settings: Settings
    origins: Mapping[str, str]
    file: Path | None = None

    def export(self) -> None:
        """Put limits from the file where the modules look that read them, also in the processes of the stream."""
        for name in LIMITS:
            if value := getattr(self.settings.limits, name):
                os.environ.setdefault(f"{PREFIX}{name.upper()}_LIMITS", value)


@dataclass(slots=True)
class Sources:
    """What the sources say, each outweighing those before it."""

    file: Path | None = None
    text: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)

    def add(self, said: Mapping[str, Any], origin: Any) -> None:
        for path, value in leaves(said):
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
            return refusals(error, self._place, self.origins)
        return []

    def _place(self, path: Path_) -> Place | None:
        """Where in the file, if the file said it: a table is where what is in it comes from."""
        name = ".".join(path)
        said = [origin for known, origin in self.origins.items() if f"{known}.".startswith(f"{name}.")]
        from_file = self.file is not None and any(each.startswith(str(self.file)) for each in said)
        return place_of(self.text, path) if from_file else None


def load(given: Mapping[str, Any] | None = None, config: Path | None = None) -> Loaded:
    """The settings; `given` are those of the command line, `config` is a file that has to be there."""
    found = sources(given, config)
    return Loaded(found.settings(), found.origins, found.file)


def sources(given: Mapping[str, Any] | None = None, config: Path | None = None) -> Sources:
    """What is said, and where; nothing is checked but that it can be read."""
    given = given or {}
    environment = _environment()
    found = Sources()
    found.file = _file(config, given.get("home") or environment.get("home"))
    if found.file is not None:
        found.text, said = _read(found.file)
        found.add(said, lambda path: _in_file(found, path))
    found.add(environment, lambda path: PREFIX + NESTED.join(path).upper())
    found.add(_nested(given), lambda path: "--" + path[-1].replace("_", "-"))
    return found


def _in_file(found: Sources, path: Path_) -> str:
    place = place_of(found.text, path)
    return f"{found.file}, line {place.line}" if place else str(found.file)


def _file(config: Path | None, home: Any) -> Path | None:
    """The file that is named, which has to be there, or the one in the home folder, if there is one."""
    named = config or (Path(os.environ[CONFIG]) if os.environ.get(CONFIG) else None)
    if named is not None:
        return named
    usual = Path(home or Settings.model_fields["home"].default) / FILE
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
        raise InputError(f"the environment cannot be read: {error}", where=f"{PREFIX}...") from error


def leaves(said: Mapping[str, Any], path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Each value with its path."""
    for name, value in said.items():
        below = (*path, str(name))
        if isinstance(value, Mapping) and below not in WHOLE:
            yield from leaves(value, below)
        else:
            yield below, value


def _put(values: dict[str, Any], path: Path_, value: Any) -> None:
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


def value_of(settings: Settings, name: str) -> str:
    """A setting by its name, `table.key`, as it may be shown; nothing if it is not set."""
    value: Any = settings
    for part in name.split("."):
        value = getattr(value, part)
    if isinstance(value, dict):
        return ", ".join(f"{key}={_shown_under(key, each)}" for key, each in value.items())
    return "" if value is None else shown(value)


_SECRET_KEY = re.compile(r"(?i)secret|password|token|credential|access[.]?key")
"""Keys of Spark's settings whose values Spark hides as well (`spark.redaction.regex`)."""


def _shown_under(key: str, value: object) -> str:
    return HIDDEN if _SECRET_KEY.search(key) else shown(value)


def shown(value: object) -> str:
    """A setting as it may be shown: of an address everything but its password, of another secret nothing."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return ", ".join(map(shown, value))
    if not isinstance(value, SecretStr):
        return without_password(str(value))
    address = value.get_secret_value()
    return without_password(address) if "://" in address else HIDDEN


def without_password(address: str) -> str:
    """`postgresql://tidings:***@host/name`."""
    scheme, found, rest = address.partition("://")
    login, at, place = rest.rpartition("@")
    has_one = found and at and ":" in login
    return f"{scheme}://{login.partition(':')[0]}:{HIDDEN}@{place}" if has_one else address
