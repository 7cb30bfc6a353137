"""`repository status`, `list`, `show`, `register`, `remove`, `leave`: what a repository holds, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import output
from tidings.cli.metadata.provider import DocumentFile, DocumentUri, read_document
from tidings.cli.options import (
    REPOSITORY_HOME,
    JsonOption,
    RepositoryHomeOption,
    RepositoryStoreOption,
    open_repository,
)
from tidings.cli.output import print_resource
from tidings.core.text import plural
from tidings.errors import InputError

if TYPE_CHECKING:
    from tidings.metadata.sql.repository.repository_store import ResourceOrigin


def status(
    home: RepositoryHomeOption = REPOSITORY_HOME,
    store: RepositoryStoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say where the repository is, what it holds, and how much of it each rule registers.

    [dim]Example[/]
      tidings repository status
    """
    from dataclasses import asdict

    with open_repository(home, store) as opened:
        found, local = opened.status(), opened.local_documents()
    if as_json:
        output.print_json({**asdict(found), "documents": [asdict(each) for each in local]})
        return
    at = "has not reached a provider yet" if found.provider is None else f"position {found.position}"
    output.print_line(
        (found.name, "bold cyan"), at, *([] if found.provider is None else [(found.provider, "dim")])
    )
    output.print_line(("resources", "bold"), f"{found.resources} in all, {found.local} local")
    for rule, count in found.rules.items():
        output.print_line(("rule", "bold"), (rule, "cyan"), plural(count, "resource"))
    for each in local:
        shadows = ["in the place of the provider's"] if each.shadows else []
        output.print_line(("local", "bold"), (each.uri, "cyan"), plural(each.resources, "resource"), *shadows)


def list_resources(
    cls: Annotated[
        str | None, typer.Argument(metavar="CLASS", help="Only those of a class.", show_default=False)
    ] = None,
    home: RepositoryHomeOption = REPOSITORY_HOME,
    store: RepositoryStoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """List what is held here, and why: the rules that register it, what refers to it, or that it is local.

    [dim]Examples[/]
      tidings repository list
      tidings repository list ServerInformation
    """
    with open_repository(home, store) as opened:
        schema = opened.cache.schema()
        if cls is not None and cls not in schema.classes:
            raise InputError("there is no such class", received=cls, accepted=", ".join(schema.classes))
        found = opened.cache.resources() if cls is None else opened.cache.of_class(cls)
        why = opened.store.repository.why(schema, [each.uri for each in found])
    for each in found:
        if as_json:
            output.print_json({"uri": each.uri, "class": each.cls, **_as_json(why[each.uri])})
        else:
            output.print_line((each.uri, "bold cyan"), (each.cls, "dim"), "; ".join(_reasons(why[each.uri])))
    if not found and not as_json:
        output.print_note("nothing")


def show(
    uri: Annotated[str, typer.Argument(metavar="URI", help="A resource.", show_default=False)],
    home: RepositoryHomeOption = REPOSITORY_HOME,
    store: RepositoryStoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a resource that is held here, and why it is.

    [dim]Example[/]
      tidings repository show http://example.org/doc.rdf#info
    """
    from tidings.metadata.queries.answers import restore_dates

    with open_repository(home, store) as opened:
        why, found, schema = opened.why(uri), opened.cache.resource(uri), opened.cache.schema()
    assert found is not None
    print_resource(restore_dates(found, schema), as_json)
    if as_json:
        output.print_json(_as_json(why))
        return
    for each in _reasons(why):
        output.print_line(("because", "dim"), each)


def register(
    uri: DocumentUri,
    file: DocumentFile,
    local: Annotated[bool, typer.Option("--local", help="It stays here.")] = False,
    home: RepositoryHomeOption = REPOSITORY_HOME,
    store: RepositoryStoreOption = None,
    as_json: JsonOption = False,
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
    with open_repository(home, store) as opened:
        made = opened.register_local(uri, body, media_type)
    if as_json:
        output.print_json({"uri": uri, "resources": len(made.resources)})
    else:
        output.print_line((uri, "bold cyan"), f"{plural(len(made.resources), 'resource')}, local")


def remove(
    uri: DocumentUri,
    home: RepositoryHomeOption = REPOSITORY_HOME,
    store: RepositoryStoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a local document with all its resources.

    [dim]Example[/]
      tidings repository remove http://example.org/mine.rdf
    """
    with open_repository(home, store) as opened:
        gone = opened.remove_local(uri)
    output.print_removal({"uri": uri}, gone, "removed", "there is no such local document", as_json)


def leave(
    provider: Annotated[str, typer.Argument(metavar="URL", help="The provider.", show_default=False)],
    home: RepositoryHomeOption = REPOSITORY_HOME,
    store: RepositoryStoreOption = None,
) -> None:
    """Have a provider forget this repository: its rules there, and what it was told. What is held here stays.

    A provider that was left for another goes on noting what changes, until it is told.

    [dim]Example[/]
      tidings repository leave http://localhost:8080
    """
    from tidings.metadata.repository.links import HttpLink

    with open_repository(home, store) as opened, HttpLink(provider, opened.store.repository.name()) as link:
        link.forget()
    output.print_line((provider, "bold cyan"), "knows it no more")


def _reasons(why: ResourceOrigin) -> list[str]:
    """One after the other: rules, what refers to it, or that it is local."""
    reasons = [f"rule {rule} registers it" for rule in why.rules]
    reasons += [f"{uri} refers to it strongly" for uri in why.referred]
    return ["it is local"] if why.local else reasons


def _as_json(why: ResourceOrigin) -> dict[str, object]:
    return {"rules": list(why.rules), "referred": list(why.referred), "local": why.local}
