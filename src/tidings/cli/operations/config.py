"""`config show` and `config check`: the settings, where each comes from, and what is wrong with them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from tidings.cli import output
from tidings.cli.options import (
    DEFAULT_HOME,
    ConfigOption,
    HomeOption,
    JsonOption,
    StoreOption,
    check_master,
    format_help,
    load_command_settings,
)
from tidings.core.text import plural

if TYPE_CHECKING:
    from tidings.errors import TidingsError

app = typer.Typer(
    no_args_is_help=True,
    help="Settings: [cyan]tidings.toml[/] in the home folder, and [cyan]TIDINGS_...[/] in the environment.",
)
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
"""Variables that are no settings of the service."""


def show(
    context: typer.Context,
    config: ConfigOption = None,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the settings as [cyan]tidings serve[/] would have them, and where each comes from. Secrets are not shown.

    [dim]Examples[/]
      tidings config show
      tidings config show --config /etc/tidings.toml --json
    """
    from tidings.operations.settings_errors import list_setting_names
    from tidings.operations.settings_sources import format_setting

    loaded = load_command_settings(context, config, {})
    rows = [
        (name, format_setting(loaded.settings, name), loaded.origins.get(name, "default"))
        for name in list_setting_names()
    ]
    if as_json:
        for name, value, origin in rows:
            output.print_json({"setting": name, "value": value, "from": origin})
    else:
        lines = [(name, origin, value or "-") for name, value, origin in rows]
        output.print_table(
            ("setting", "from", "value"), lines
        )  # lists of values are long: nothing stands behind them


def check(
    context: typer.Context,
    config: ConfigOption = None,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check the settings, and say all that is wrong with them: names that are no settings, values that cannot be.

    [dim]Example[/]
      tidings config check --config /etc/tidings.toml
    """
    from tidings.cli.operations.limits import find_limit_problems
    from tidings.cli.options import collect_typed_settings
    from tidings.operations.settings_errors import find_unknown_variables
    from tidings.operations.settings_sources import read_sources

    found = read_sources(collect_typed_settings(context, {}), config)
    problems: list[TidingsError] = [*found.refusals(), *find_unknown_variables(os.environ, OTHER_VARIABLES)]
    problems += find_limit_problems(found.values.get("limits"), found.origins)
    problems += _master_problems(found.values.get("spark"), found.origins)
    for problem in problems:
        output.print_error(problem, as_json)
    if problems:
        raise typer.Exit(EXIT_REFUSED)
    count = len(found.origins)
    said = f"{plural(count, 'setting')} that {'is no default' if count == 1 else 'are no defaults'}"
    where = str(found.file) if found.file else "no file"
    if as_json:
        output.print_json({"settings": len(found.origins), "file": str(found.file) if found.file else None})
    else:
        output.print_line(("good", "bold green"), f"{said}; {where}")


def _master_problems(spark: Any, origins: Mapping[str, str]) -> list[TidingsError]:
    """An address that names no Spark. One that is no text has been refused before."""
    from tidings.errors import TidingsError

    master = spark.get("master") if isinstance(spark, Mapping) else None
    try:
        check_master(master if isinstance(master, str) else None)
    except TidingsError as problem:
        problem.where = origins["spark.master"]
        return [problem]
    return []


app.command(help=format_help(show))(show)
app.command(help=format_help(check))(check)
