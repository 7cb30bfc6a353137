"""`repository`: a copy of metadata near its users, which a provider keeps current."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer
from rich.status import Status

from tidings.cli import output
from tidings.cli.command import add_commands, expand_bundles, format_help, stop_on_signals
from tidings.cli.metadata.repository_contents import leave, list_resources, register, remove, show, status
from tidings.cli.options import RepositoryHome, find_typed_options
from tidings.cli.output import Output
from tidings.core.text import plural
from tidings.errors import InputError

if TYPE_CHECKING:
    from tidings.metadata.repository.repository import Repository
    from tidings.metadata.repository.synchronization import SyncEvent, Synchronizer, SyncListener
    from tidings.metadata.rules.rule_files import RuleFile
    from tidings.metadata.sql.repository.change_application import ApplyCounts


class RepositoryReporter:
    """Printer of the events of a running repository, with a spinner on terminals. A lasting problem is printed once."""

    def __init__(self, out: Output) -> None:
        self._out = out
        console = output.make_console(stderr=True)
        self._status = Status("", console=console) if console.is_terminal and not out.as_json else None
        self._problem: str | None = None

    def __enter__(self) -> Self:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *failure: object) -> None:
        if self._status is not None:
            self._status.stop()

    def print_start(self, name: str, rules: int) -> None:
        record = {"event": "begins", "name": name, "rules": rules}
        self._out.print_record(record, ("repository", "bold"), (name, "cyan"), plural(rules, "rule"))

    def print_address(self, address: str) -> None:
        record = {"event": "answers", "address": address}
        self._out.print_record(record, ("answers", "bold"), f"at {address}")

    def __call__(self, news: SyncEvent) -> None:
        kind = type(news).__name__.lower()
        if self._out.as_json:
            output.print_json({"event": kind, **asdict(news)})
        else:
            getattr(self, f"_{kind}")(news)

    def _connected(self, news: Any) -> None:
        self._problem = None
        how = "switched to it, " if news.moved else ""
        output.print_line(("connected", "bold green"), news.link, f"{how}position {news.position}")
        self._update(f"following {news.link}")

    def _refreshed(self, news: Any) -> None:
        self._problem = None
        output.print_line(
            ("refreshed", "bold green"), news.link, *_list_facts(news), (f"because {news.because}", "dim")
        )
        self._update(f"following {news.link}")

    def _followed(self, news: Any) -> None:
        self._problem = None
        output.print_line(("followed", "bold green"), plural(news.moves, "move"), *_list_facts(news))

    def _cutoff(self, news: Any) -> None:
        again = f"retrying in {news.retry:.1f} s" if news.retry else "trying the next provider"
        self._update(f"cut off, {again}; {plural(news.resources, 'resource')} stored")
        if news.problem != self._problem:
            stored = f"{plural(news.resources, 'resource')} still stored"
            output.print_line(("cut off", "bold yellow"), news.problem, again, stored, stderr=True)
        self._problem = news.problem

    def _update(self, words: str) -> None:
        if self._status is not None:
            self._status.update(words)


def _list_facts(news: Any) -> list[str]:
    return [
        f"position {news.position}",
        _describe_applied(news.applied),
        f"{plural(news.resources, 'resource')} stored",
    ]


def _describe_applied(done: ApplyCounts) -> str:
    counts = {"new": done.new, "changed": done.changed, "gone": done.gone}
    return ", ".join(f"{count} {what}" for what, count in counts.items() if count) or "no changes"


app = typer.Typer(invoke_without_command=True)


def repository(
    context: typer.Context,
    home: RepositoryHome,
    out: Output,
    provider: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            help="The address of a `tidings serve`. Repeat it: if one provider fails, the next one is used.",
        ),
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The rules for what to store here: `NAME: search ...`"),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The name of this repository for providers; by default generated once."
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Catch up with the provider, and end.")] = False,
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65_535,
            metavar="PORT",
            help="Answer queries over HTTP on this machine as well; 0 chooses a free port.",
        ),
    ] = None,
    batch: Annotated[
        int,
        typer.Option(min=1, max=10_000, metavar="N", help="How many changes are applied in one transaction."),
    ] = 1_000,
) -> None:
    """Store the results of rules over a provider's metadata here, and keep them current until Ctrl-C.

    Examples:
      tidings repository --provider http://localhost:8080 --rules rules.txt
      tidings repository --provider http://one:8080 --provider http://two:8080 --rules rules.txt --port 8090
      tidings repository status

    A file of rules defines the stored resources: `large: search CycleProvider c register c where
    c.serverInformation.memory > 64`. The registered resources are stored with all resources that they refer to
    strongly. They change when the provider's metadata changes, and are deleted when no rule needs them any more.
    `tidings query` is answered from here alone.

    While its provider is away, the repository keeps its contents, retries, and catches up later; with several
    providers it switches to the next one. If you start it again with another file, only resources that
    no new rule needs are deleted.
    """
    if context.invoked_subcommand is not None:
        _refuse_options_before(context)
        return
    if not provider and rules is None:
        output.print_line(context.get_help())
        raise typer.Exit(2)
    if not provider or rules is None:
        missing, hint = ("--rules", "FILE") if provider else ("--provider", "http://HOST:PORT")
        raise InputError(f"{missing} is missing", hint=f"{missing} {hint}")
    from tidings.metadata.rules.rule_files import parse_rule_file

    rule_file = parse_rule_file(rules)
    with home.create() as opened, RepositoryReporter(out) as reporter:
        reporter.print_start(opened.store.repository.name(name), len(rule_file.texts))
        _keep_current(opened, provider, rule_file, reporter, batch, once, port)


def _refuse_options_before(context: typer.Context) -> None:
    command = context.invoked_subcommand
    for option in find_typed_options(context):
        message = f"--{option.replace('_', '-')} is before {command}"
        raise InputError(message, hint=f"options follow the command: tidings repository {command} ...")


def _keep_current(
    opened: Repository,
    providers: list[str],
    rules: RuleFile,
    reporter: RepositoryReporter,
    batch: int,
    once: bool,
    port: int | None,
) -> None:
    """Keep a repository current, once or until a signal."""
    from tidings.metadata.repository.links import HttpLink
    from tidings.metadata.repository.synchronization import Synchronizer

    name = opened.store.repository.name()
    with ExitStack() as stack:
        links = [stack.enter_context(HttpLink(url, name)) for url in providers]
        if once:
            Synchronizer(opened.store, links, rules, reporter, batch).catch_up_once()
            return
        listener = stack.enter_context(_serve_queries(opened, port, reporter))
        _follow(Synchronizer(opened.store, links, rules, listener, batch))


def _follow(syncing: Synchronizer) -> None:
    """Follow the provider in a thread, until a signal or an error."""
    with stop_on_signals() as stop, ThreadPoolExecutor(1) as thread:
        running = thread.submit(syncing.run)
        running.add_done_callback(lambda _: stop.set())
        stop.wait()
        syncing.stop()
        running.result()
    stop.exit_if_interrupted()


@contextmanager
def _serve_queries(
    opened: Repository, port: int | None, reporter: RepositoryReporter
) -> Iterator[SyncListener]:
    """Answer queries over HTTP during a block, if a port is given; yield the listener of events."""
    if port is None:
        yield reporter
        return
    from tidings.api.metadata.repository import FollowState, create_repository_app
    from tidings.api.server import create_server, listen

    following = FollowState()

    def hear(news: SyncEvent) -> None:
        following.record(news)
        reporter(news)

    with listen("127.0.0.1", port) as listening, ThreadPoolExecutor(1) as thread:
        server = create_server(create_repository_app(opened, following))
        served = thread.submit(server.run, sockets=[listening])
        reporter.print_address(f"http://127.0.0.1:{listening.getsockname()[1]}")
        try:
            yield hear
        finally:
            server.should_exit = True
            served.result()


app.callback(help=format_help(repository.__doc__))(expand_bundles(repository))
add_commands(
    app,
    {
        "status": status,
        "list": list_resources,
        "show": show,
        "register": register,
        "remove": remove,
        "leave": leave,
    },
)
