"""`repository status`, `list`, `show`, `register`, `remove` and `leave`: contents of a repository and their origin."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import output
from tidings.cli.inputs import read_graph_file
from tidings.cli.metadata.provider import DocumentFile, DocumentUri
from tidings.cli.metadata.rules import print_resource
from tidings.cli.options import RepositoryHome
from tidings.cli.output import Output
from tidings.core.text import plural
from tidings.errors import InputError

if TYPE_CHECKING:
    from tidings.metadata.sql.repository.repository_store import ResourceOrigin


def status(home: RepositoryHome, out: Output) -> None:
    """Print the position of the repository, its size, and how many resources each rule registers.

    Example:
      tidings repository status
    """
    with home.open() as opened:
        current, local = opened.status(), opened.local_documents()
    if out.as_json:
        output.print_json({**asdict(current), "documents": [asdict(document) for document in local]})
        return
    provider = [(current.provider, "dim")] if current.provider else []
    position = f"position {current.position}" if provider else "has not reached a provider yet"
    output.print_line((current.name, "bold cyan"), position, *provider)
    output.print_line(("resources", "bold"), f"{current.resources} in all, {current.local} local")
    for rule, count in current.rules.items():
        output.print_line(("rule", "bold"), (rule, "cyan"), plural(count, "resource"))
    for document in local:
        size, shadows = plural(document.resources, "resource"), ["replaces that of the provider"]
        output.print_line(
            ("local", "bold"), (document.uri, "cyan"), size, *(shadows if document.shadows else [])
        )


def list_resources(
    home: RepositoryHome,
    out: Output,
    cls: Annotated[str | None, typer.Argument(metavar="CLASS", help="Only resources of this class.")] = None,
) -> None:
    """List the stored resources and why they are here: registered by a rule, referred to, or local.

    Examples:
      tidings repository list
      tidings repository list ServerInformation
    """
    with home.open() as opened:
        schema = opened.cache.schema()
        if cls is not None and cls not in schema.classes:
            raise InputError("there is no such class", received=cls, accepted=", ".join(schema.classes))
        resources = opened.cache.resources() if cls is None else opened.cache.of_class(cls)
        origins = opened.store.repository.explain_origins(schema, [each.uri for each in resources])
    for resource in resources:
        origin = origins[resource.uri]
        out.print_record(
            {"uri": resource.uri, "class": resource.cls, **_to_record(origin)},
            *((resource.uri, "bold cyan"), (resource.cls, "dim"), "; ".join(_list_reasons(origin))),
        )
    if not resources:
        out.print_note("no resources")


def show(
    home: RepositoryHome,
    out: Output,
    uri: Annotated[str, typer.Argument(metavar="URI", help="A resource.")],
) -> None:
    """Print a stored resource, and why it is here.

    Example:
      tidings repository show http://example.org/doc.rdf#info
    """
    from tidings.metadata.queries.answers import restore_dates

    with home.open() as opened:
        origin, resource, schema = (
            opened.explain_origin(uri),
            opened.cache.resource(uri),
            opened.cache.schema(),
        )
    assert resource is not None
    print_resource(restore_dates(resource, schema), out)
    if out.as_json:
        output.print_json(_to_record(origin))
        return
    for reason in _list_reasons(origin):
        output.print_line(("because", "dim"), reason)


def register(
    home: RepositoryHome,
    out: Output,
    uri: DocumentUri,
    file: DocumentFile,
    local: Annotated[bool, typer.Option("--local", help="The document is local to this repository.")] = False,
) -> None:
    """Register a document that is local to this repository, or a new version of it.

    Example:
      tidings repository register --local http://example.org/mine.rdf mine.ttl

    Queries find it beside the metadata of the provider. It is never sent anywhere, and no rule removes it. It replaces
    a document of the provider with the same URI.
    """
    if not local:
        hint = "add --local for this repository only, or use tidings provider register"
        raise InputError("shared documents are registered with a provider", hint=hint)
    body, media_type = read_graph_file(file)
    with home.open() as opened:
        count = len(opened.register_local(uri, body, media_type).resources)
    record = {"uri": uri, "resources": count}
    out.print_record(record, (uri, "bold cyan"), f"{plural(count, 'resource')}, local")


def remove(home: RepositoryHome, out: Output, uri: DocumentUri) -> None:
    """Remove a local document with all its resources.

    Example:
      tidings repository remove http://example.org/mine.rdf
    """
    with home.open() as opened:
        removed = opened.remove_local(uri)
    out.print_removal({"uri": uri}, removed, "removed", "there is no such local document")


def leave(
    home: RepositoryHome, provider: Annotated[str, typer.Argument(metavar="URL", help="The provider.")]
) -> None:
    """Unregister this repository from a provider, with its rules there. The stored resources stay here.

    Example:
      tidings repository leave http://localhost:8080

    Until then, a provider that you no longer use keeps recording changes for this repository.
    """
    from tidings.metadata.repository.links import HttpLink

    with home.open() as opened, HttpLink(provider, opened.store.repository.name()) as link:
        link.forget()
    output.print_line((provider, "bold cyan"), "unregistered")


def _list_reasons(origin: ResourceOrigin) -> list[str]:
    """Return why a resource is here: rules and strong references, or that it is local."""
    reasons = [f"rule {rule} registers it" for rule in origin.rules]
    reasons += [f"{uri} refers to it strongly" for uri in origin.referred]
    return ["it is local"] if origin.local else reasons


def _to_record(origin: ResourceOrigin) -> dict[str, object]:
    return {"rules": list(origin.rules), "referred": list(origin.referred), "local": origin.local}
