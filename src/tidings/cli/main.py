"""The `tidings` command: its subcommands, and how errors are printed.

Exit codes: 0 done; 1 failed; 2 the input or the command line was refused; 3 done, but some of the input was refused;
4 the machine is not set up (`tidings doctor` prints what to do).
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tidings.cli import (
    definitions,
    demo,
    destinations,
    feeds,
    match,
    notifications,
    publish,
    subscriptions,
    tables,
)
from tidings.cli.command import add_commands, format_help
from tidings.cli.metadata import provider, query, repository, rules
from tidings.cli.objects import changes, sources
from tidings.cli.operations import access, config, doctor, run, serve, storage
from tidings.cli.output import Output, print_note
from tidings.errors import TidingsError


class Commands(TyperGroup):
    """All commands. A TidingsError is printed and gives the exit code; other exceptions are bugs with a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except TidingsError as problem:
            Output(ctx.meta.get("json", False)).print_error(problem)
            raise typer.Exit(problem.exit_code) from problem


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 failed, 2 refused, 3 done with rejects, 4 not set up ([cyan]tidings doctor[/]).",
)


def _version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        typer.echo(f"tidings {version('tidings')}")
        raise typer.Exit


def tidings(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Match published data against standing subscriptions, and notify subscribers exactly once.

    Examples:
      tidings subscribe --as ana "price < 200 and period = 'XVI'"
      tidings run                                     # in a second terminal
      tidings publish '{"price": 180, "period": "XVI"}'
      tidings notifications --as ana

    Publications are matched with millions of such subscriptions on Spark; the results are durable, numbered
    notifications. `tidings demo` shows it at work. `tidings serve` is the service, with an API and a console in the
    browser.
    """


app.callback(help=format_help(tidings.__doc__))(tidings)

DAILY, METADATA, OBJECTS = "Subscribe and publish", "Metadata that stays", "Objects of a data model"
STREAM, SETTING_UP = "On Spark", "Set up and look around"

COMMANDS: tuple[tuple[str, Callable[..., None]], ...] = (
    (DAILY, subscriptions.subscribe),
    (DAILY, subscriptions.change),
    (DAILY, subscriptions.pause),
    (DAILY, subscriptions.resume),
    (DAILY, subscriptions.unsubscribe),
    (DAILY, subscriptions.subscriptions),
    (DAILY, publish.publish),
    (DAILY, notifications.notifications),
    (DAILY, publish.rejects),
    (DAILY, feeds.feeds),
    (DAILY, notifications.quiet),
    (DAILY, serve.serve),
    (METADATA, query.query),
    (OBJECTS, sources.watch),
    (OBJECTS, sources.unwatch),
    (OBJECTS, sources.watches),
    (STREAM, run.run),
    (STREAM, match.match),
    (SETTING_UP, storage.segments),
    (SETTING_UP, demo.demo),
    (SETTING_UP, doctor.doctor),
)
for panel, command in COMMANDS:
    add_commands(app, {command.__name__: command}, panel)
GROUPS = (
    (DAILY, "feed", feeds.app),
    (DAILY, "destination", destinations.app),
    (METADATA, "provider", provider.app),
    (METADATA, "rules", rules.app),
    (METADATA, "repository", repository.app),
    (OBJECTS, "model", changes.app),
    (OBJECTS, "objects", sources.app),
    (STREAM, "tables", tables.app),
    (SETTING_UP, "schema", definitions.schema_app),
    (SETTING_UP, "reference", definitions.reference_app),
    (SETTING_UP, "taxonomy", definitions.taxonomy_app),
    (SETTING_UP, "config", config.app),
    (SETTING_UP, "store", storage.app),
    (SETTING_UP, "token", access.token_app),
    (SETTING_UP, "audience", access.audience_app),
)
for panel, name, group in GROUPS:
    app.add_typer(group, name=name, rich_help_panel=panel)


TERMINATED = 128 + signal.SIGTERM


def _end(number: int, _: FrameType | None) -> None:
    """End as after Ctrl-C, so that Spark stops and temporary files are deleted; a second signal ends at once."""
    signal.signal(number, signal.SIG_DFL)
    print_note("ended by SIGTERM")
    raise SystemExit(TERMINATED)


def main() -> None:
    """Run the command line."""
    signal.signal(signal.SIGTERM, _end)
    app(prog_name="tidings")
