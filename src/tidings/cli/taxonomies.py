"""`taxonomy load`, `taxonomy list` and `taxonomy remove`: which classes stand above which."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import output
from tidings.cli.options import DEFAULT_HOME, HomeOption, JsonOption, StoreOption, format_help, open_tidings
from tidings.core.text import plural
from tidings.errors import InputError

if TYPE_CHECKING:
    from tidings.service.reference_data import LoadedTaxonomy

app = typer.Typer(
    no_args_is_help=True,
    help="Taxonomies: classes, their instances and properties, which subscriptions to graphs ask about.",
)


def load(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="RDFS: a .ttl, .nt, .rdf, .owl or .jsonld file.", show_default=False
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="What it is called; the file's name when none is given.", show_default=False
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(metavar="IRI", help="What relative IRIs in it are relative to.", show_default=False),
    ] = None,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Load a taxonomy: rdfs:subClassOf, rdfs:subPropertyOf and the instances that rdf:type names.

    It counts from the stream's next batch on, together with those loaded before; one of the same name is replaced.
    Classes that stand above themselves are refused, with the circle, and so is a file without any class or property.
    Hierarchies of SKOS (skos:broader) are not read yet.

    [dim]Examples[/]
      tidings taxonomy load academia.ttl
      tidings taxonomy load schemas.rdf --name schemas
    """
    from tidings.graphs.rdf.media_types import graph_media_type_of

    media_type = graph_media_type_of(file.name)
    if media_type is None:
        raise InputError(f"no idea what is in '{file}'", accepted="a .ttl, .nt, .rdf, .owl or .jsonld file")
    if not file.is_file():
        raise InputError(f"no file '{file}'")
    with open_tidings(home, store) as tidings:
        loaded = tidings.load_taxonomy(name or file.stem, file.read_bytes(), media_type, base)
    if as_json:
        output.print_json(_record(loaded) | {"warnings": [warning.facts() for warning in loaded.warnings]})
        return
    _show([loaded], as_json)
    for warning in loaded.warnings:
        output.print_warning(warning)


def list_taxonomies(
    home: HomeOption = DEFAULT_HOME, store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """List the taxonomies that are loaded.

    [dim]Example[/]
      tidings taxonomy list
    """
    with open_tidings(home, store) as tidings:
        found = tidings.taxonomies()
    _show(found, as_json)
    if not found and not as_json:
        output.print_note("no taxonomies: tidings taxonomy load FILE")


def remove(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="What the taxonomy is called.", show_default=False)
    ],
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Forget a taxonomy. It counts from the stream's next batch on.

    [dim]Example[/]
      tidings taxonomy remove academia
    """
    with open_tidings(home, store) as tidings:
        removed = tidings.remove_taxonomy(name)
    output.print_removal({"name": name}, removed, "forgotten", "there is no such taxonomy", as_json)


def _record(one: LoadedTaxonomy) -> dict[str, object]:
    """The fields of a taxonomy without its warnings, which are given when it is loaded."""
    return {name: value for name, value in asdict(one).items() if name != "warnings"}


def _show(found: list[LoadedTaxonomy], as_json: bool) -> None:
    for one in found:
        if as_json:
            output.print_json(_record(one))
        else:
            counts = {"class": one.classes, "instance": one.instances, "property": one.properties}
            told = ", ".join(plural(count, what) for what, count in counts.items())
            output.print_line((one.name, "bold cyan"), told)


app.command(help=format_help(load))(load)
app.command("list", help=format_help(list_taxonomies))(list_taxonomies)
app.command(help=format_help(remove))(remove)
