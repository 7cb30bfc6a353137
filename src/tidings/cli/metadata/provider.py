"""`provider`: metadata documents, and the commands about rules, the log and other providers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli.command import make_group
from tidings.cli.inputs import read_graph_file
from tidings.cli.metadata.query import browse, pick
from tidings.cli.metadata.replication import (
    catch_up,
    follow,
    lead,
    log,
    restore,
    snapshot,
    status,
    trim,
)
from tidings.cli.metadata.rules import print_result_changes, remove_rule, results, rule, rules
from tidings.cli.options import Home
from tidings.cli.output import Output, View
from tidings.core.text import plural
from tidings.errors import InputError

if TYPE_CHECKING:
    from tidings.metadata.sql.transaction import RegistrationResult

URI_HELP, FILE_HELP = "The URI of the document, absolute.", "A .rdf, .ttl, .nt, .owl or .jsonld file."
DocumentUri = Annotated[str, typer.Argument(metavar="URI", help=URI_HELP)]
DocumentFile = Annotated[Path, typer.Argument(metavar="FILE", help=FILE_HELP)]
LaterOption = Annotated[
    bool, typer.Option("--later", help="Only append it to the log: `tidings run` applies it.")
]


def schema(
    home: Home,
    out: Output,
    file: DocumentFile,
    base: Annotated[
        str | None, typer.Option(metavar="IRI", help="The base of relative IRIs in the file.")
    ] = None,
) -> None:
    """Load the RDF Schema that documents and rules are checked against.

    Example:
      tidings provider schema servers.ttl

    A new schema may extend the previous one, but not remove anything from it.
    """
    with home.open_provider() as provider:
        loaded = provider.load_schema(*read_graph_file(file), base)
    counts = plural(len(loaded.classes), "class"), plural(len(loaded.properties), "property")
    record = {"classes": sorted(loaded.classes), "properties": sorted(loaded.properties)}
    out.print_record(record, ", ".join(counts))


def register(
    home: Home,
    out: Output,
    uri: Annotated[str | None, typer.Argument(metavar="URI", help=URI_HELP)] = None,
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help=FILE_HELP)] = None,
    many: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="DIR|FILE|-",
            help="Many documents: those of a folder, or of a .jsonl file (.ndjson, .jsonl.gz) or standard input with "
            "one JSON object per line: `uri`, `media_type` and `body`.",
        ),
    ] = None,
    base: Annotated[
        str | None, typer.Option(metavar="IRI", help="The beginning of the URIs of documents in a folder.")
    ] = None,
    later: LaterOption = False,
) -> None:
    """Register a document or a new version of it, and print how the results of rules change.

    Examples:
      tidings provider register http://example.org/doc.rdf host.rdf
      tidings provider register --from servers/ --base http://example.org/
      tidings provider register --from servers.jsonl --later

    A document that violates the schema is refused as a whole, with resource, property and reason. Of many documents,
    the valid ones are registered and the others are listed (exit code 3).
    """
    from tidings.cli.metadata import registration
    from tidings.metadata.log import LogDraft, Operation

    with home.open_provider() as provider:
        if many is not None:
            if uri is not None:
                raise InputError("URI and --from exclude each other", received=f"{uri} and --from {many}")
            registration.register_many(provider, many, base, later, out)
        elif uri is None or file is None:
            raise InputError("the document is missing", accepted="URI and FILE, or --from")
        elif base is not None:
            raise InputError("--base is for the files of a folder", hint="name the folder with --from")
        elif later:
            body, media_type = read_graph_file(file)
            registration.append_draft(provider, LogDraft(Operation.REGISTER, uri, media_type, body), out)
        else:
            _print_registration(uri, provider.register(uri, *read_graph_file(file)), out)


def remove(home: Home, out: Output, uri: DocumentUri, later: LaterOption = False) -> None:
    """Remove a document with all its resources.

    Example:
      tidings provider remove http://example.org/doc.rdf
    """
    from tidings.cli.metadata import registration
    from tidings.metadata.log import LogDraft, Operation

    with home.open_provider() as provider:
        if later:
            registration.append_draft(provider, LogDraft(Operation.REMOVE, uri), out)
        else:
            _print_registration(uri, provider.remove(uri), out)


def _print_registration(uri: str, done: RegistrationResult, out: Output) -> None:
    change, outcome = done.changes[uri], done.outcome
    counts = {what: len(getattr(change, what)) for what in ("new", "changed", "deleted", "unchanged")}
    shown = ", ".join(f"{count} {what}" for what, count in counts.items() if count) or "nothing there"
    summary = f"{plural(sum(counts.values()), 'resource')}: {shown}"
    out.print_record({"uri": uri, **counts}, (uri, "bold cyan"), summary)
    for kind in ("entered", "changed", "left"):
        print_result_changes(kind, getattr(outcome, kind), out)


DOCUMENTS: View[tuple[str, int]] = View(
    "no documents: tidings provider register URI FILE",
    line=lambda document: ((document[0], "bold cyan"), plural(document[1], "resource")),
    record=lambda document: {"uri": document[0], "resources": document[1]},
)


def documents(home: Home, out: Output) -> None:
    """List the registered documents.

    Example:
      tidings provider documents
    """
    with home.open_provider() as provider:
        registered = provider.documents()
    out.print_records(registered, DOCUMENTS)


app = make_group(
    "Metadata: documents that are registered, replaced and removed, and rules over them.",
    {
        "schema": schema,
        "register": register,
        "remove": remove,
        "documents": documents,
        "browse": browse,
        "pick": pick,
        "rule": rule,
        "rules": rules,
        "remove-rule": remove_rule,
        "results": results,
        "follow": follow,
        "lead": lead,
        "status": status,
        "log": log,
        "catch-up": catch_up,
        "trim": trim,
        "snapshot": snapshot,
        "restore": restore,
    },
)
