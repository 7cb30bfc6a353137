"""`provider`: metadata documents, and the commands about rules, the log and other providers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import output
from tidings.cli.metadata.browser import browse, pick
from tidings.cli.metadata.change_log import catch_up, log, restore, snapshot, trim
from tidings.cli.metadata.replication import follow, lead, status
from tidings.cli.metadata.rules import forget, results, rule, rules
from tidings.cli.options import DEFAULT_HOME, HomeOption, JsonOption, StoreOption, format_help, open_provider
from tidings.cli.output import print_result_changes
from tidings.core.text import plural
from tidings.errors import InputError

if TYPE_CHECKING:
    from tidings.metadata.sql.transaction import RegistrationResult

app = typer.Typer(
    no_args_is_help=True,
    help="Metadata: documents that are registered, re-registered and removed, and rules that follow them.",
)

DocumentUri = Annotated[
    str, typer.Argument(metavar="URI", help="What the document is called, absolute.", show_default=False)
]
DocumentFile = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="A .rdf, .ttl, .nt, .owl or .jsonld file.", show_default=False),
]
LaterOption = Annotated[
    bool, typer.Option("--later", help="Only put it into the log: [cyan]tidings run[/] applies it.")
]


def schema(
    file: DocumentFile,
    base: Annotated[
        str | None,
        typer.Option(metavar="IRI", help="What relative IRIs in it are relative to.", show_default=False),
    ] = None,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Load the schema that documents and rules are checked by: an RDF Schema.

    A new one may have more than the one before; it may not take away what there was.

    [dim]Example[/]
      tidings provider schema servers.ttl
    """
    with open_provider(home, store) as provider:
        loaded = provider.load_schema(*read_document(file), base)
    if as_json:
        output.print_json({"classes": sorted(loaded.classes), "properties": sorted(loaded.properties)})
    else:
        counts = plural(len(loaded.classes), "class"), plural(len(loaded.properties), "property")
        output.print_line(", ".join(counts))


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
    later: LaterOption = False,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Register a document, or a new version of it, and say what that does to the results of rules.

    What breaks the schema is refused with resource, property and reason, and nothing of the document is kept. Of many,
    the good ones are registered and the others listed (exit code 3).

    [dim]Examples[/]
      tidings provider register http://example.org/doc.rdf host.rdf
      tidings provider register --from servers/ --base http://example.org/
      tidings provider register --from servers.jsonl --later
    """
    from tidings.cli.metadata import registration
    from tidings.metadata.log import LogDraft, Operation

    with open_provider(home, store) as provider:
        if many is not None:
            if uri is not None:
                raise InputError("either one document or many", received=f"{uri} and --from {many}")
            registration.register_many(provider, many, base, later, as_json)
        elif uri is None or file is None:
            raise InputError("what is to be registered?", accepted="URI and FILE, or --from")
        elif base is not None:
            raise InputError("--base is for the files of a folder", hint="name it with --from")
        elif later:
            body, media_type = read_document(file)
            registration.register_later(
                provider, LogDraft(Operation.REGISTER, uri, media_type, body), as_json
            )
        else:
            _show(uri, provider.register(uri, *read_document(file)), as_json)


def remove(
    uri: DocumentUri,
    later: LaterOption = False,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a document with all its resources.

    [dim]Example[/]
      tidings provider remove http://example.org/doc.rdf
    """
    from tidings.cli.metadata import registration
    from tidings.metadata.log import LogDraft, Operation

    with open_provider(home, store) as provider:
        if later:
            registration.register_later(provider, LogDraft(Operation.REMOVE, uri), as_json)
        else:
            _show(uri, provider.remove(uri), as_json)


def documents(
    home: HomeOption = DEFAULT_HOME, store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """List the documents that are registered.

    [dim]Example[/]
      tidings provider documents
    """
    with open_provider(home, store) as provider:
        found = provider.documents()
    for uri, count in found:
        if as_json:
            output.print_json({"uri": uri, "resources": count})
        else:
            output.print_line((uri, "bold cyan"), plural(count, "resource"))
    if not found and not as_json:
        output.print_note("no documents: tidings provider register URI FILE")


def read_document(file: Path) -> tuple[bytes, str]:
    from tidings.graphs.rdf.media_types import graph_media_type_of

    media_type = graph_media_type_of(file.name)
    if media_type is None:
        raise InputError(f"no idea what is in '{file}'", accepted="a .rdf, .ttl, .nt, .owl or .jsonld file")
    if not file.is_file():
        raise InputError(f"no file '{file}'")
    return file.read_bytes(), media_type


def _show(uri: str, done: RegistrationResult, as_json: bool) -> None:
    change, outcome = done.changes[uri], done.outcome
    counts = {
        "new": len(change.new),
        "changed": len(change.changed),
        "deleted": len(change.deleted),
        "unchanged": len(change.unchanged),
    }
    if as_json:
        output.print_json({"uri": uri, **counts})
    else:
        told = ", ".join(f"{count} {what}" for what, count in counts.items() if count) or "nothing there"
        output.print_line((uri, "bold cyan"), f"{plural(sum(counts.values()), 'resource')}: {told}")
    print_result_changes("entered", outcome.entered, as_json)
    print_result_changes("changed", outcome.changed, as_json)
    print_result_changes("left", outcome.left, as_json)


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
    app.command(help=format_help(command))(command)
for name, of_log in (
    ("log", log),
    ("catch-up", catch_up),
    ("trim", trim),
    ("snapshot", snapshot),
    ("restore", restore),
):
    app.command(name, help=format_help(of_log))(of_log)
