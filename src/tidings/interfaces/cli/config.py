"""`config show` and `config check`: the settings, where each comes from, and what is wrong with them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from tidings.counts import plural
from tidings.interfaces.cli import output
from tidings.interfaces.cli.options import (
    DEFAULT_HOME,
    AsJson,
    Config,
    Home,
    Store,
    check_master,
    given_settings,
    prose,
)

if TYPE_CHECKING:
    from tidings.errors import TidingsError

app = typer.Typer(
    no_args_is_help=True,
    help="Settings: [cyan]tidings.toml[/] in the home folder, and [cyan]TIDINGS_...[/] in the environment.",
)
REFUSED = 2
OTHERS = frozenset(
    {
        "TIDINGS_CONFIG",
        "TIDINGS_BENCH_CACHE",
        "TIDINGS_JSONLD_CONTEXTS",
        "TIDINGS_REPOSITORY_HOME",
        "TIDINGS_REPOSITORY_STORE",
    }
)
"""Variables that are no settings of the service."""


def show(
    context: typer.Context,
    config: Config = None,
    home: Home = DEFAULT_HOME,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Show the settings as [cyan]tidings serve[/] would have them, and where each comes from. Secrets are not shown.

    [dim]Examples[/]
      tidings config show
      tidings config show --config /etc/tidings.toml --json
    """
    from tidings.operating.loading import value_of
    from tidings.operating.refusals import names

    loaded = given_settings(context, config, {})
    rows = [(name, value_of(loaded.settings, name), loaded.origins.get(name, "default")) for name in names()]
    if as_json:
        for name, value, origin in rows:
            output.json_line({"setting": name, "value": value, "from": origin})
    else:
        lines = [(name, origin, value or "-") for name, value, origin in rows]
        output.table(
            ("setting", "from", "value"), lines
        )  # lists of values are long: nothing stands behind them


def check(
    context: typer.Context,
    config: Config = None,
    home: Home = DEFAULT_HOME,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Check the settings, and say all that is wrong with them: names that are no settings, values that cannot be.

    [dim]Example[/]
      tidings config check --config /etc/tidings.toml
    """
    from tidings.interfaces.cli.limit_problems import limit_problems
    from tidings.interfaces.cli.options import typed_settings
    from tidings.operating.loading import sources
    from tidings.operating.refusals import unknown_variables

    found = sources(typed_settings(context, {}), config)
    problems: list[TidingsError] = [*found.refusals(), *unknown_variables(os.environ, OTHERS)]
    problems += limit_problems(found.values.get("limits"), found.origins)
    problems += _master_problems(found.values.get("spark"), found.origins)
    for problem in problems:
        output.error(problem, as_json)
    if problems:
        raise typer.Exit(REFUSED)
    count = len(found.origins)
    said = f"{plural(count, 'setting')} that {'is no default' if count == 1 else 'are no defaults'}"
    where = str(found.file) if found.file else "no file"
    if as_json:
        output.json_line({"settings": len(found.origins), "file": str(found.file) if found.file else None})
    else:
        output.line(("good", "bold green"), f"{said}; {where}")


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


app.command(help=prose(show))(show)
app.command(help=prose(check))(check)
