"""The `tidings` command itself: what it is made of, and how what goes wrong is said.

Exit codes: 0 done; 1 failed; 2 the input or the command line was refused; 3 done, but some of the input was refused;
4 the machine is not set up for it (`tidings doctor` says what to do).
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tidings.cli import (
    demo,
    destinations,
    feeds,
    match,
    notifications,
    output,
    publish,
    references,
    schema,
    subscriptions,
    taxonomies,
)
from tidings.cli import feeds as feed
from tidings.cli import notifications as quiet
from tidings.cli import publish as rejects
from tidings.cli import subscriptions as pausing
from tidings.cli.metadata import provider, query, repository, rules
from tidings.cli.objects import model, sources, watches
from tidings.cli.operations import audiences, config, doctor, run, segments, serve, store, tokens
from tidings.cli.options import format_help
from tidings.errors import TidingsError


class Commands(TyperGroup):
    """All commands. An error of ours is drawn and gives the exit code; any other is a bug and shows itself whole."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except TidingsError as problem:
            output.print_error(problem, as_json=ctx.meta.get("json", False))
            raise typer.Exit(problem.exit_code) from problem


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 failed, 2 refused, 3 done with rejects, 4 not set up ([cyan]tidings doctor[/]).",
)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"tidings {version('tidings')}")
        raise typer.Exit


def tidings(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="The version, and nothing else."),
    ] = False,
) -> None:
    """Tidings tells the right people, once, as soon as something they asked about changes.

    A subscriber writes what matters ([cyan]price < 200 and period = 'XVI'[/]); what is published is matched against
    millions of such subscriptions on Spark; durable, numbered notifications come out.

    See it at work with [cyan]tidings demo[/]. To begin: [cyan]tidings subscribe[/], [cyan]tidings run[/] in a second
    terminal, [cyan]tidings publish[/], [cyan]tidings notifications[/]. For others, with a console in the browser and an
    API: [cyan]tidings serve[/].
    """


app.callback(help=format_help(tidings))(tidings)

DAILY, METADATA, OBJECTS = "Subscribe and publish", "Metadata that stays", "Objects of a data model"
STREAM, SETTING_UP = "On Spark", "Set up and look around"

COMMANDS: tuple[tuple[str, Callable[..., None]], ...] = (
    (DAILY, subscriptions.subscribe),
    (DAILY, pausing.change),
    (DAILY, pausing.pause),
    (DAILY, pausing.resume),
    (DAILY, subscriptions.unsubscribe),
    (DAILY, subscriptions.subscriptions),
    (DAILY, publish.publish),
    (DAILY, notifications.notifications),
    (DAILY, rejects.rejects),
    (DAILY, feeds.feeds),
    (DAILY, quiet.quiet),
    (DAILY, serve.serve),
    (METADATA, query.query),
    (OBJECTS, watches.watch),
    (OBJECTS, watches.unwatch),
    (OBJECTS, watches.watches),
    (STREAM, run.run),
    (STREAM, match.match),
    (SETTING_UP, segments.segments),
    (SETTING_UP, demo.demo),
    (SETTING_UP, doctor.doctor),
)
for panel, command in COMMANDS:
    app.command(help=format_help(command), rich_help_panel=panel)(command)
app.add_typer(feed.app, name="feed", rich_help_panel=DAILY)
app.add_typer(destinations.app, name="destination", rich_help_panel=DAILY)
app.add_typer(provider.app, name="provider", rich_help_panel=METADATA)
app.add_typer(rules.app, name="rules", rich_help_panel=METADATA)
app.add_typer(repository.app, name="repository", rich_help_panel=METADATA)
app.add_typer(model.app, name="model", rich_help_panel=OBJECTS)
app.add_typer(sources.app, name="objects", rich_help_panel=OBJECTS)
app.add_typer(schema.app, name="schema", rich_help_panel=SETTING_UP)
app.add_typer(references.app, name="reference", rich_help_panel=SETTING_UP)
app.add_typer(taxonomies.app, name="taxonomy", rich_help_panel=SETTING_UP)
app.add_typer(config.app, name="config", rich_help_panel=SETTING_UP)
app.add_typer(store.app, name="store", rich_help_panel=SETTING_UP)
app.add_typer(tokens.app, name="token", rich_help_panel=SETTING_UP)
app.add_typer(audiences.app, name="audience", rich_help_panel=SETTING_UP)


TERMINATED = 128 + signal.SIGTERM


def _end(number: int, _: FrameType | None) -> None:
    """End as after Ctrl-C: Spark is stopped and temporary files are deleted. A second signal ends it at once."""
    signal.signal(number, signal.SIG_DFL)
    output.print_note("ended by SIGTERM")
    raise SystemExit(TERMINATED)


def main() -> None:
    signal.signal(signal.SIGTERM, _end)
    app(prog_name="tidings")
