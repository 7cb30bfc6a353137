"""`config show` and `config check`: the settings with their origins, and errors in them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from tidings.cli.command import make_group
from tidings.cli.options import (
    ConfigOption,
    Home,
    check_master,
    collect_typed_settings,
    load_command_settings,
)
from tidings.cli.output import Output, View
from tidings.core.text import plural

if TYPE_CHECKING:
    from tidings.errors import TidingsError

EXIT_REFUSED = 2
OTHER_VARIABLES = frozenset(
    {
        "TIDINGS_CONFIG",
        "TIDINGS_BENCH_CACHE",
        "TIDINGS_JSONLD_CONTEXTS",
        "TIDINGS_KINDS",
        "TIDINGS_REPOSITORY_HOME",
        "TIDINGS_REPOSITORY_STORE",
    }
)
"""Variables of the environment that are not settings of the service."""
LIMIT_MODULES = {
    "document": "tidings.documents.xml_decoder",
    "graph": "tidings.graphs.rdf.rdf_errors",
    "xpath": "tidings.documents.xpath.xpath_parser",
    "gql": "tidings.graphs.patterns.pattern_parser",
    "rules": "tidings.metadata.rules.rule_parser",
    "query": "tidings.metadata.sql.queries.query_executor",
    "sparql": "tidings.metadata.queries.sparql",
    "parser": "tidings.parsers.parser_pool",
    "api": "tidings.api.limits",
}
"""The module with the class `Limits` of each group of limits."""


class Setting(NamedTuple):
    """A setting, its value and where the value comes from."""

    name: str
    value: str | None
    origin: str


SETTINGS: View[Setting] = View(
    "no settings",
    columns=(("setting", "name"), ("from", "origin"), ("value", lambda setting: setting.value or "-")),
    record=lambda setting: {"setting": setting.name, "value": setting.value, "from": setting.origin},
)
"""The value is the last column because lists of values are long."""


def show(context: typer.Context, home: Home, out: Output, config: ConfigOption = None) -> None:
    """Print the settings as `tidings serve` would use them, with their origins. Secrets are not shown.

    Examples:
      tidings config show
      tidings config show --config /etc/tidings.toml --json
    """
    from tidings.operations.settings_sources import format_setting, list_setting_names

    loaded = load_command_settings(context, config, {})
    settings = [
        Setting(name, format_setting(loaded.settings, name), loaded.origins.get(name, "default"))
        for name in list_setting_names()
    ]
    out.print_records(settings, SETTINGS)


def check(context: typer.Context, home: Home, out: Output, config: ConfigOption = None) -> None:
    """Check the settings, and print all errors: unknown names and invalid values.

    Example:
      tidings config check --config /etc/tidings.toml
    """
    from tidings.operations.settings_sources import find_unknown_variables, read_sources

    sources = read_sources(collect_typed_settings(context, {}), config)
    problems: list[TidingsError] = [*sources.refusals(), *find_unknown_variables(os.environ, OTHER_VARIABLES)]
    problems += _find_limit_problems(sources.values.get("limits"), sources.origins)
    problems += _find_master_problems(sources.values.get("spark"), sources.origins)
    for problem in problems:
        out.print_error(problem)
    if problems:
        raise typer.Exit(EXIT_REFUSED)
    count = len(sources.origins)
    file = str(sources.file) if sources.file else None
    differ = f"{plural(count, 'setting')} {'differs' if count == 1 else 'differ'} from the default"
    record = {"settings": count, "file": file}
    out.print_record(record, ("valid", "bold green"), f"{differ}; {file or 'no file'}")


def _find_limit_problems(values: Any, origins: Mapping[str, str]) -> list[TidingsError]:
    """Return the errors in limits: in the settings, and in `TIDINGS_..._LIMITS`, which outweigh them."""
    from tidings.core.limits import limits_from, limits_in
    from tidings.errors import TidingsError
    from tidings.operations.settings import VARIABLE_PREFIX

    problems: list[TidingsError] = []
    for name, module in LIMIT_MODULES.items():
        value = values.get(name) if isinstance(values, Mapping) else None
        try:
            kind = import_module(module).Limits
            limits_from(f"{VARIABLE_PREFIX}{name.upper()}_LIMITS", kind)
            if isinstance(value, str):
                limits_in(value, kind, origins.get(f"limits.{name}", f"limits.{name}"))
        except TidingsError as problem:
            problems.append(problem)
    return problems


def _find_master_problems(spark: Any, origins: Mapping[str, str]) -> list[TidingsError]:
    """Return the error in the address of the Spark master; a value of another type is refused before."""
    from tidings.errors import TidingsError

    master = spark.get("master") if isinstance(spark, Mapping) else None
    try:
        check_master(master if isinstance(master, str) else None)
    except TidingsError as problem:
        problem.where = origins["spark.master"]
        return [problem]
    return []


app = make_group(
    "Settings: `tidings.toml` in the home folder, and `TIDINGS_...` in the environment.",
    {"show": show, "check": check},
)
