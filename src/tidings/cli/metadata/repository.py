"""`repository`: metadata near its users, kept up to date by a provider."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer
from rich.status import Status

from tidings.cli import output
from tidings.cli.metadata.repository_contents import leave, list_resources, register, remove, show, status
from tidings.cli.operations.run import stop_on_signals
from tidings.cli.options import (
    REPOSITORY_HOME,
    JsonOption,
    RepositoryHomeOption,
    RepositoryStoreOption,
    format_help,
    make_repository,
)
from tidings.core.text import plural
from tidings.errors import InputError

if TYPE_CHECKING:
    from tidings.metadata.repository.repository import Repository
    from tidings.metadata.repository.synchronization import SyncEvent, Synchronizer, SyncListener
    from tidings.metadata.rules.rule_files import RuleFile
    from tidings.metadata.sql.repository.change_application import ApplyCounts


# What a repository says while it runs: a line for each piece of news, or JSON Lines for machines.


class RepositoryReporter:
    """Tells news. The same problem is said once, however long it lasts; on terminals something turns all the while."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        console = output.make_console(stderr=True)
        self._status = Status("", console=console) if console.is_terminal and not as_json else None
        self._problem: str | None = None

    def __enter__(self) -> Self:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *failure: object) -> None:
        if self._status is not None:
            self._status.stop()

    def begins(self, name: str, rules: int) -> None:
        if self._as_json:
            output.print_json({"news": "begins", "name": name, "rules": rules})
        else:
            output.print_line(("repository", "bold"), (name, "cyan"), plural(rules, "rule"))

    def answers(self, address: str) -> None:
        if self._as_json:
            output.print_json({"news": "answers", "address": address})
        else:
            output.print_line(("answers", "bold"), f"at {address}")

    def __call__(self, news: SyncEvent) -> None:
        kind = type(news).__name__.lower()
        if self._as_json:
            output.print_json({"news": kind, **asdict(news)})
        else:
            getattr(self, f"_{kind}")(news)

    def _connected(self, news: Any) -> None:
        self._problem = None
        how = "moved there, " if news.moved else ""
        output.print_line(("connected", "bold green"), news.link, f"{how}position {news.position}")
        self._turn(f"following {news.link}")

    def _refreshed(self, news: Any) -> None:
        self._problem = None
        output.print_line(
            ("refreshed", "bold green"), news.link, *_facts(news), (f"because {news.because}", "dim")
        )
        self._turn(f"following {news.link}")

    def _followed(self, news: Any) -> None:
        self._problem = None
        output.print_line(("followed", "bold green"), plural(news.moves, "move"), *_facts(news))

    def _cutoff(self, news: Any) -> None:
        again = f"trying again in {news.retry:.1f} s" if news.retry else "trying the next"
        self._turn(f"cut off, {again}; {plural(news.resources, 'resource')} held")
        if news.problem != self._problem:
            held = f"{plural(news.resources, 'resource')} held all the same"
            output.print_line(("cut off", "bold yellow"), news.problem, again, held, stderr=True)
        self._problem = news.problem

    def _turn(self, words: str) -> None:
        if self._status is not None:
            self._status.update(words)


def _facts(news: Any) -> list[str]:
    return [f"position {news.position}", _applied(news.applied), f"{plural(news.resources, 'resource')} held"]


def _applied(done: ApplyCounts) -> str:
    counts = {"new": done.new, "changed": done.changed, "gone": done.gone}
    return ", ".join(f"{count} {what}" for what, count in counts.items() if count) or "nothing different"


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
    home: RepositoryHomeOption = REPOSITORY_HOME,
    store: RepositoryStoreOption = None,
    as_json: JsonOption = False,
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
        output.print_line(context.get_help())
        raise typer.Exit(2)
    if not provider or rules is None:
        missing, hint = ("--rules", "FILE") if provider else ("--provider", "http://HOST:PORT")
        raise InputError(f"{missing} is missing", hint=f"{missing} {hint}")
    from tidings.metadata.rules.rule_files import parse_rule_file

    wanted = parse_rule_file(rules)
    with make_repository(home, store) as opened, RepositoryReporter(as_json) as tell:
        known = opened.store.repository.name(name)
        tell.begins(known, len(wanted.texts))
        by = _keep_current(opened, provider, wanted, tell, batch, once, port)
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


def _keep_current(
    opened: Repository,
    providers: list[str],
    rules: RuleFile,
    tell: RepositoryReporter,
    batch: int,
    once: bool,
    port: int | None,
) -> int | None:
    """Keep it up to date; the signal that ended it."""
    from tidings.metadata.repository.links import HttpLink
    from tidings.metadata.repository.synchronization import Synchronizer

    name = opened.store.repository.name()
    with ExitStack() as stack:
        links = [stack.enter_context(HttpLink(url, name)) for url in providers]
        if once:
            Synchronizer(opened.store, links, rules, tell, batch).once()
            return None
        listener = stack.enter_context(_answering(opened, port, tell))
        return _follow(Synchronizer(opened.store, links, rules, listener, batch))


def _follow(syncing: Synchronizer) -> int | None:
    """Follow in a thread until a signal comes, and say which; or until it cannot go on, and raise why."""
    with stop_on_signals() as stop, ThreadPoolExecutor(1) as thread:
        running = thread.submit(syncing.run)
        running.add_done_callback(lambda _: stop.set())
        stop.wait()
        syncing.stop()
        running.result()
    return stop.by


@contextmanager
def _answering(opened: Repository, port: int | None, tell: RepositoryReporter) -> Iterator[SyncListener]:
    """Answer over HTTP as long as this is open, if a port is given; what is told is heard there, too."""
    if port is None:
        yield tell
        return
    from tidings.api.metadata.repository import FollowState, create_repository_app
    from tidings.api.server import create_server, listen

    following = FollowState()

    def hear(news: SyncEvent) -> None:
        following.hear(news)
        tell(news)

    with listen("127.0.0.1", port) as listening, ThreadPoolExecutor(1) as thread:
        server = create_server(create_repository_app(opened, following))
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
app.callback(help=format_help(repository))(repository)
for called, command in COMMANDS:
    app.command(called, help=format_help(command))(command)
