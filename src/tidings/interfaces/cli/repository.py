"""`repository`: metadata near its users, kept up to date by a provider."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.counts import plural
from tidings.errors import InputError, SetupError
from tidings.interfaces.cli import output
from tidings.interfaces.cli.options import AsJson, prose
from tidings.interfaces.cli.provider import File, Uri, read_document
from tidings.interfaces.cli.repository_news import Teller
from tidings.interfaces.cli.resources import show_resource
from tidings.interfaces.cli.run import stopped_by_signals

if TYPE_CHECKING:
    from tidings.repository.news import Listener, News
    from tidings.repository.repository import Repository
    from tidings.repository.rule_files import RuleFile
    from tidings.repository.syncing import Syncing
    from tidings.store.repository import Why

INTERRUPTED = 130
DEFAULT_HOME = Path(".tidings-repository")
MAKES_ONE = "tidings repository --provider URL --rules FILE makes one"
Home = Annotated[
    Path,
    typer.Option(
        "--home", envvar="TIDINGS_REPOSITORY_HOME", help="The repository's own folder.", file_okay=False
    ),
]
Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        envvar="TIDINGS_REPOSITORY_STORE",
        metavar="URL",
        help="Another store than the folder's: [cyan]sqlite:///path[/] or [cyan]postgresql://...[/]",
        show_default=False,
    ),
]
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
    with _made(home, store) as opened, Teller(as_json) as tell:
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


def status(home: Home = DEFAULT_HOME, store: Store = None, as_json: AsJson = False) -> None:
    """Say where the repository is, what it holds, and how much of it each rule registers.

    [dim]Example[/]
      tidings repository status
    """
    from dataclasses import asdict

    with _opened(home, store) as opened:
        found, local = opened.status(), opened.local_documents()
    if as_json:
        output.json_line({**asdict(found), "documents": [asdict(each) for each in local]})
        return
    at = "has not reached a provider yet" if found.provider is None else f"position {found.position}"
    output.line((found.name, "bold cyan"), at, *([] if found.provider is None else [(found.provider, "dim")]))
    output.line(("resources", "bold"), f"{found.resources} in all, {found.local} local")
    for rule, count in found.rules.items():
        output.line(("rule", "bold"), (rule, "cyan"), plural(count, "resource"))
    for each in local:
        shadows = ["in the place of the provider's"] if each.shadows else []
        output.line(("local", "bold"), (each.uri, "cyan"), plural(each.resources, "resource"), *shadows)


def list_resources(
    cls: Annotated[
        str | None, typer.Argument(metavar="CLASS", help="Only those of a class.", show_default=False)
    ] = None,
    home: Home = DEFAULT_HOME,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """List what is held here, and why: the rules that register it, what refers to it, or that it is local.

    [dim]Examples[/]
      tidings repository list
      tidings repository list ServerInformation
    """
    with _opened(home, store) as opened:
        schema = opened.cache.schema()
        if cls is not None and cls not in schema.classes:
            raise InputError("there is no such class", received=cls, accepted=", ".join(schema.classes))
        found = opened.cache.resources() if cls is None else opened.cache.of_class(cls)
        why = opened.store.repository.why(schema, [each.uri for each in found])
    for each in found:
        if as_json:
            output.json_line({"uri": each.uri, "class": each.cls, **_as_json(why[each.uri])})
        else:
            output.line((each.uri, "bold cyan"), (each.cls, "dim"), "; ".join(_reasons(why[each.uri])))
    if not found and not as_json:
        output.note("nothing")


def show(
    uri: Annotated[str, typer.Argument(metavar="URI", help="A resource.", show_default=False)],
    home: Home = DEFAULT_HOME,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Show a resource that is held here, and why it is.

    [dim]Example[/]
      tidings repository show http://example.org/doc.rdf#info
    """
    from tidings.metadata.dates import dated

    with _opened(home, store) as opened:
        why, found, schema = opened.why(uri), opened.cache.resource(uri), opened.cache.schema()
    assert found is not None
    show_resource(dated(found, schema), as_json)
    if as_json:
        output.json_line(_as_json(why))
        return
    for each in _reasons(why):
        output.line(("because", "dim"), each)


def register(
    uri: Uri,
    file: File,
    local: Annotated[bool, typer.Option("--local", help="It stays here.")] = False,
    home: Home = DEFAULT_HOME,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Register a document that is of this repository alone, or a new version of it.

    Queries find it beside what came from the provider. It is never sent anywhere, and no rule removes it. In the place
    of a document of the provider that is called the same, it is the one that counts here.

    [dim]Example[/]
      tidings repository register --local http://example.org/mine.rdf mine.ttl
    """
    if not local:
        hint = "--local keeps it here; tidings provider register is for everybody"
        raise InputError("documents for everybody are registered with a provider", hint=hint)
    body, media_type = read_document(file)
    with _opened(home, store) as opened:
        made = opened.register_local(uri, body, media_type)
    if as_json:
        output.json_line({"uri": uri, "resources": len(made.resources)})
    else:
        output.line((uri, "bold cyan"), f"{plural(len(made.resources), 'resource')}, local")


def remove(uri: Uri, home: Home = DEFAULT_HOME, store: Store = None, as_json: AsJson = False) -> None:
    """Remove a local document with all its resources.

    [dim]Example[/]
      tidings repository remove http://example.org/mine.rdf
    """
    with _opened(home, store) as opened:
        gone = opened.remove_local(uri)
    output.removed({"uri": uri}, gone, "removed", "there is no such local document", as_json)


def leave(
    provider: Annotated[str, typer.Argument(metavar="URL", help="The provider.", show_default=False)],
    home: Home = DEFAULT_HOME,
    store: Store = None,
) -> None:
    """Have a provider forget this repository: its rules there, and what it was told. What is held here stays.

    A provider that was left for another goes on noting what changes, until it is told.

    [dim]Example[/]
      tidings repository leave http://localhost:8080
    """
    from tidings.repository.http_link import HttpLink

    with _opened(home, store) as opened, HttpLink(provider, opened.store.repository.name()) as link:
        link.forget()
    output.line((provider, "bold cyan"), "knows it no more")


def _made(home: Path, store: str | None) -> Repository:
    from tidings.repository.repository import Repository

    return Repository(home, store)


def _opened(home: Path, store: str | None) -> Repository:
    """One that is there: looking at a repository, or leaving a provider, makes none."""
    if store is None and not (home / "store.db").is_file():
        raise SetupError("there is no repository here", where=str(home), hint=MAKES_ONE)
    return _made(home, store)


def _reasons(why: Why) -> list[str]:
    """One after the other: rules, what refers to it, or that it is local."""
    reasons = [f"rule {rule} registers it" for rule in why.rules]
    reasons += [f"{uri} refers to it strongly" for uri in why.referred]
    return ["it is local"] if why.local else reasons


def _as_json(why: Why) -> dict[str, object]:
    return {"rules": list(why.rules), "referred": list(why.referred), "local": why.local}


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
