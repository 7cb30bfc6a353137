"""`repository`: metadata near its users, kept up to date by a provider."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.errors import InputError
from tidings.interfaces.cli import output
from tidings.interfaces.cli.options import AsJson, prose
from tidings.interfaces.cli.repository_contents import leave, list_resources, register, remove, show, status
from tidings.interfaces.cli.repository_news import Teller
from tidings.interfaces.cli.repository_options import DEFAULT_HOME, Home, Store, make_repository
from tidings.interfaces.cli.run import stopped_by_signals

if TYPE_CHECKING:
    from tidings.repository.news import Listener, News
    from tidings.repository.repository import Repository
    from tidings.repository.rule_files import RuleFile
    from tidings.repository.syncing import Syncing

INTERRUPTED = 130
app = typer.Typer(invoke_without_command=True)


def repository(
    context: typer.Context,
    provider: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            help="Where [cyan]tidings serve[/] runs. Given several times, the next one is for when one is gone.",
            show_default=False,
        ),
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What to keep here: [cyan]NAME: search ...[/]", show_default=False),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What the provider knows it by; made up once when nothing is said.",
            show_default=False,
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Catch up, and end.")] = False,
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65_535,
            metavar="PORT",
            help="Answer over HTTP on this machine, too; 0 takes a port that is free.",
            show_default=False,
        ),
    ] = None,
    batch: Annotated[
        int, typer.Option(min=1, max=10_000, metavar="N", help="Moves that are applied in one transaction.")
    ] = 1_000,
    home: Home = DEFAULT_HOME,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Keep metadata here that rules ask a provider for, and whatever belongs to it. Until Ctrl-C.

    A file of rules says what: [cyan]large: search CycleProvider c register c where c.serverInformation.memory > 64[/].
    What they register is held here with all that it refers to strongly, changes as it changes at the provider, and goes
    when nothing holds it any more. Queries ([cyan]tidings query[/]) are answered from here alone.

    Without its provider it keeps what it has, tries again, and catches up; with several it moves to the next. Start it
    again with another file and just what the old rules alone held goes.

    [dim]Examples[/]
      tidings repository --provider http://localhost:8080 --rules rules.txt
      tidings repository --provider http://one:8080 --provider http://two:8080 --rules rules.txt --port 8090
      tidings repository status
    """
    if context.invoked_subcommand is not None:
        _refuse_before_a_command(context)
        return
    if not provider and rules is None:
        output.line(context.get_help())
        raise typer.Exit(2)
    if not provider or rules is None:
        missing, hint = ("--rules", "FILE") if provider else ("--provider", "http://HOST:PORT")
        raise InputError(f"{missing} is missing", hint=f"{missing} {hint}")
    from tidings.repository.rule_files import read_rules

    wanted = read_rules(rules)
    with make_repository(home, store) as opened, Teller(as_json) as tell:
        known = opened.store.repository.name(name)
        tell.begins(known, len(wanted.texts))
        by = _kept(opened, provider, wanted, tell, batch, once, port)
    if by == signal.SIGINT:
        raise typer.Exit(INTERRUPTED)


def _refuse_before_a_command(context: typer.Context) -> None:
    given = [
        name
        for name in context.params
        if (source := context.get_parameter_source(name)) is not None and source.name == "COMMANDLINE"
    ]
    if given:
        command = context.invoked_subcommand
        what = f"--{given[0].replace('_', '-')} stands before {command}"
        raise InputError(what, hint=f"options stand behind: tidings repository {command} ...")


def _kept(
    opened: Repository,
    providers: list[str],
    rules: RuleFile,
    tell: Teller,
    batch: int,
    once: bool,
    port: int | None,
) -> int | None:
    """Keep it up to date; the signal that ended it."""
    from tidings.repository.http_link import HttpLink
    from tidings.repository.syncing import Syncing

    name = opened.store.repository.name()
    with ExitStack() as stack:
        links = [stack.enter_context(HttpLink(url, name)) for url in providers]
        if once:
            Syncing(opened.store, links, rules, tell, batch).once()
            return None
        listener = stack.enter_context(_answering(opened, port, tell))
        return _follow(Syncing(opened.store, links, rules, listener, batch))


def _follow(syncing: Syncing) -> int | None:
    """Follow in a thread until a signal comes, and say which; or until it cannot go on, and raise why."""
    with stopped_by_signals() as stop, ThreadPoolExecutor(1) as thread:
        running = thread.submit(syncing.run)
        running.add_done_callback(lambda _: stop.set())
        stop.wait()
        syncing.stop()
        running.result()
    return stop.by


@contextmanager
def _answering(opened: Repository, port: int | None, tell: Teller) -> Iterator[Listener]:
    """Answer over HTTP as long as this is open, if a port is given; what is told is heard there, too."""
    if port is None:
        yield tell
        return
    from tidings.interfaces.http.repository import Following, app_for
    from tidings.interfaces.http.serving import listen, server_for

    following = Following()

    def hear(news: News) -> None:
        following.hear(news)
        tell(news)

    with listen("127.0.0.1", port) as listening, ThreadPoolExecutor(1) as thread:
        server = server_for(app_for(opened, following))
        served = thread.submit(server.run, sockets=[listening])
        tell.answers(f"http://127.0.0.1:{listening.getsockname()[1]}")
        try:
            yield hear
        finally:
            server.should_exit = True
            served.result()


COMMANDS: tuple[tuple[str, Callable[..., None]], ...] = (
    ("status", status),
    ("list", list_resources),
    ("show", show),
    ("register", register),
    ("remove", remove),
    ("leave", leave),
)
app.callback(help=prose(repository))(repository)
for called, command in COMMANDS:
    app.command(called, help=prose(command))(command)
