"""`provider`: metadata documents and the rules over them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidings import durations
from tidings.counts import plural
from tidings.errors import InputError
from tidings.interfaces.cli import adding_rules, output
from tidings.interfaces.cli.backbone import follow, lead, status
from tidings.interfaces.cli.browsing import browse, pick
from tidings.interfaces.cli.metadata_log import catch_up, log, restore, snapshot, trim
from tidings.interfaces.cli.options import (
    DEFAULT_HOME,
    AsJson,
    Home,
    Master,
    Store,
    Subscriber,
    open_provider,
    prose,
)

if TYPE_CHECKING:
    from tidings.metadata.resources import Resource, Value
    from tidings.store.metadata import Registered
    from tidings.values import Scalar

app = typer.Typer(
    no_args_is_help=True,
    help="Metadata: documents that are registered, re-registered and removed, and rules that follow them.",
)

Uri = Annotated[
    str, typer.Argument(metavar="URI", help="What the document is called, absolute.", show_default=False)
]
File = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="A .rdf, .ttl, .nt, .owl or .jsonld file.", show_default=False),
]
Later = Annotated[
    bool, typer.Option("--later", help="Only put it into the log: [cyan]tidings run[/] applies it.")
]
Within = Annotated[
    str | None,
    typer.Option(
        metavar="DELAY",
        help="Gather notifications and hand them over together, no later than this: [cyan]10 minutes[/].",
        show_default=False,
    ),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="What the rule is called.", show_default=False)]


def schema(
    file: File,
    base: Annotated[
        str | None,
        typer.Option(metavar="IRI", help="What relative IRIs in it are relative to.", show_default=False),
    ] = None,
    home: Home = DEFAULT_HOME,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Load the schema that documents and rules are checked by: an RDF Schema.

    A new one may have more than the one before; it may not take away what there was.

    [dim]Example[/]
      tidings provider schema servers.ttl
    """
    with open_provider(home, store) as provider:
        loaded = provider.load_schema(*read_document(file), base)
    if as_json:
        output.json_line({"classes": sorted(loaded.classes), "properties": sorted(loaded.properties)})
    else:
        counts = plural(len(loaded.classes), "class"), plural(len(loaded.properties), "property")
        output.line(", ".join(counts))


def register(
    uri: Annotated[
        str | None,
        typer.Argument(metavar="URI", help="What the document is called, absolute.", show_default=False),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="A .rdf, .ttl, .nt, .owl or .jsonld file.", show_default=False),
    ] = None,
    many: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="DIR|FILE|-",
            help="Many documents instead: those of a folder, or of a .jsonl file (.ndjson, .jsonl.gz) or standard "
            "input with one a line, [cyan]uri[/], [cyan]media_type[/] and [cyan]body[/].",
            show_default=False,
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="IRI", help="What the URIs of a folder's documents begin with.", show_default=False
        ),
    ] = None,
    later: Later = False,
    home: Home = DEFAULT_HOME,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Register a document, or a new version of it, and say what that does to the results of rules.

    What breaks the schema is refused with resource, property and reason, and nothing of the document is kept. Of many,
    the good ones are registered and the others listed (exit code 3).

    [dim]Examples[/]
      tidings provider register http://example.org/doc.rdf host.rdf
      tidings provider register --from servers/ --base http://example.org/
      tidings provider register --from servers.jsonl --later
    """
    from tidings.interfaces.cli import registering
    from tidings.metadata.log import Draft, What

    with open_provider(home, store) as provider:
        if many is not None:
            if uri is not None:
                raise InputError("either one document or many", received=f"{uri} and --from {many}")
            registering.many(provider, many, base, later, as_json)
        elif uri is None or file is None:
            raise InputError("what is to be registered?", accepted="URI and FILE, or --from")
        elif base is not None:
            raise InputError("--base is for the files of a folder", hint="name it with --from")
        elif later:
            body, media_type = read_document(file)
            registering.one_later(provider, Draft(What.REGISTER, uri, media_type, body), as_json)
        else:
            _show(uri, provider.register(uri, *read_document(file)), as_json)


def remove(
    uri: Uri, later: Later = False, home: Home = DEFAULT_HOME, store: Store = None, as_json: AsJson = False
) -> None:
    """Remove a document with all its resources.

    [dim]Example[/]
      tidings provider remove http://example.org/doc.rdf
    """
    from tidings.interfaces.cli import registering
    from tidings.metadata.log import Draft, What

    with open_provider(home, store) as provider:
        if later:
            registering.one_later(provider, Draft(What.REMOVE, uri), as_json)
        else:
            _show(uri, provider.remove(uri), as_json)


def rule(
    name: Name,
    text: Annotated[
        str,
        typer.Argument(metavar="TEXT", help="[cyan]search ... register ... where ...[/]", show_default=False),
    ],
    subscriber: Subscriber,
    within: Within = None,
    spark: adding_rules.OnSpark = None,
    master: Master = None,
    home: Home = DEFAULT_HOME,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Add a rule. What it finds among what is registered is entered at once.

    What enters its results, changes inside them and leaves is told: [cyan]tidings notifications --as ana[/].

    [dim]Examples[/]
      tidings provider rule large "search ServerInformation s register s where s.memory > 64" --as ana
      tidings provider rule all "search CycleProvider c register c" --as ana --within "10 minutes"
    """
    delay = None if within is None else durations.parse(within)
    entered = adding_rules.add(
        {name: text}, subscriber, within=delay, spark=spark, master=master, home=home, store=store
    )
    _show_moves("entered", entered, as_json)
    if not as_json:
        output.line((name, "bold cyan"), plural(len(entered), "resource"))


def rules(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="Rules to be added: [cyan]NAME: search ...[/]", show_default=False
        ),
    ] = None,
    subscriber: Annotated[
        str | None, typer.Option("--as", metavar="NAME", help="Whose the rules of the file are.")
    ] = None,
    within: Within = None,
    spark: adding_rules.OnSpark = None,
    master: Master = None,
    home: Home = DEFAULT_HOME,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """List the rules; with a file, add those that are in it, all or none.

    [dim]Examples[/]
      tidings provider rules
      tidings provider rules rules.txt --as ana
    """
    if file is not None:
        if subscriber is None:
            raise InputError("whose rules are these?", accepted="--as NAME")
        delay = None if within is None else durations.parse(within)
        texts = adding_rules.from_file(file, home, store)
        entered = adding_rules.add(
            texts, subscriber, within=delay, spark=spark, master=master, home=home, store=store
        )
        _show_moves("entered", entered, as_json)
        if not as_json:
            output.line(f"{plural(len(texts), 'rule')}, {len(entered):,} entered")
        return
    if subscriber is not None or within is not None or spark is not None or master is not None:
        raise InputError(
            "which rules are to be added?", accepted="a FILE", hint="without one they are listed"
        )
    with open_provider(home, store) as provider:
        found = provider.rules()
    for each in found:
        if as_json:
            output.json_line({"name": each.name, "owner": each.owner, "text": each.text})
        else:
            output.line((each.name, "bold cyan"), (each.owner, "dim"), each.text)
    if not found and not as_json:
        output.note("no rules: tidings provider rule NAME TEXT --as NAME")


def forget(name: Name, home: Home = DEFAULT_HOME, store: Store = None, as_json: AsJson = False) -> None:
    """Forget a rule.

    [dim]Example[/]
      tidings provider forget large
    """
    with open_provider(home, store) as provider:
        gone = provider.remove_rules([name])
    output.removed({"name": name}, bool(gone), "forgotten", "there is no such rule", as_json)


def results(name: Name, home: Home = DEFAULT_HOME, store: Store = None, as_json: AsJson = False) -> None:
    """Show the resources that a rule has as its results now.

    [dim]Example[/]
      tidings provider results large
    """
    from tidings.metadata.dates import dated

    with open_provider(home, store) as provider:
        found = [dated(each, provider.schema) for each in provider.results(name)]
    for resource in found:
        show_resource(resource, as_json)
    if not found and not as_json:
        output.note("nothing")


def documents(home: Home = DEFAULT_HOME, store: Store = None, as_json: AsJson = False) -> None:
    """List the documents that are registered.

    [dim]Example[/]
      tidings provider documents
    """
    with open_provider(home, store) as provider:
        found = provider.documents()
    for uri, count in found:
        if as_json:
            output.json_line({"uri": uri, "resources": count})
        else:
            output.line((uri, "bold cyan"), plural(count, "resource"))
    if not found and not as_json:
        output.note("no documents: tidings provider register URI FILE")


def read_document(file: Path) -> tuple[bytes, str]:
    from tidings.publications.rdf_media_types import graph_media_type_of

    media_type = graph_media_type_of(file.name)
    if media_type is None:
        raise InputError(f"no idea what is in '{file}'", accepted="a .rdf, .ttl, .nt, .owl or .jsonld file")
    if not file.is_file():
        raise InputError(f"no file '{file}'")
    return file.read_bytes(), media_type


def _show(uri: str, done: Registered, as_json: bool) -> None:
    change, outcome = done.changes[uri], done.outcome
    counts = {
        "new": len(change.new),
        "changed": len(change.changed),
        "deleted": len(change.deleted),
        "unchanged": len(change.unchanged),
    }
    if as_json:
        output.json_line({"uri": uri, **counts})
    else:
        told = ", ".join(f"{count} {what}" for what, count in counts.items() if count) or "nothing there"
        output.line((uri, "bold cyan"), f"{plural(sum(counts.values()), 'resource')}: {told}")
    _show_moves("entered", outcome.entered, as_json)
    _show_moves("changed", outcome.changed, as_json)
    _show_moves("left", outcome.left, as_json)


_STYLES = {"entered": "bold green", "changed": "bold yellow", "left": "bold red"}


def _show_moves(what: str, pairs: Iterable[tuple[str, str]], as_json: bool) -> None:
    for name, uri in sorted(pairs):
        if as_json:
            output.json_line({"rule": name, "kind": what, "uri": uri})
        else:
            output.line((name, "bold cyan"), (what, _STYLES[what]), uri)


def show_resource(resource: Resource, as_json: bool) -> None:
    from tidings.browsing import shown
    from tidings.metadata.resources import Ref

    if as_json:
        values = {name: [_as_json(value) for value in each] for name, each in resource.values.items()}
        output.json_line({"uri": resource.uri, "class": resource.cls, "values": values})
        return
    told = [
        f"{name} {', '.join(f'-> {value.uri}' if isinstance(value, Ref) else shown(value) for value in each)}"
        for name, each in resource.values.items()
    ]
    output.line((resource.uri, "bold cyan"), (resource.cls, "dim"), *told)


def _as_json(value: Value) -> Scalar | dict[str, str]:
    from tidings.metadata.resources import Ref

    return {"ref": value.uri} if isinstance(value, Ref) else value


for command in (
    schema,
    register,
    remove,
    documents,
    browse,
    pick,
    rule,
    rules,
    forget,
    results,
    follow,
    lead,
    status,
):
    app.command(help=prose(command))(command)
for name, of_log in (
    ("log", log),
    ("catch-up", catch_up),
    ("trim", trim),
    ("snapshot", snapshot),
    ("restore", restore),
):
    app.command(name, help=prose(of_log))(of_log)
