"""`objects add`, `objects list` and `objects remove`: databases whose objects are watched and told about."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from tidings.cli import output
from tidings.cli.options import DEFAULT_HOME, HomeOption, JsonOption, StoreOption, format_help, open_tidings

app = typer.Typer(
    no_args_is_help=True,
    help="Databases whose objects are watched and told about, each under a name with its model.",
)

SourceName = Annotated[
    str, typer.Argument(metavar="NAME", help="What the database is called.", show_default=False)
]
SourceOption = Annotated[
    str | None,
    typer.Option(
        "--source",
        metavar="NAME",
        help="Which of the databases that [cyan]tidings objects add[/] has added; the only one when nothing is said.",
        show_default=False,
    ),
]


def add(
    name: SourceName,
    model: Annotated[
        str,
        typer.Option(metavar="FILE|MODULE:BASE", help="A model, as in [cyan]tidings model check[/]."),
    ],
    database: Annotated[
        str,
        typer.Option(
            metavar="URL", help="Where its objects are: [cyan]sqlite:///path[/] or [cyan]postgresql://...[/]"
        ),
    ],
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remember a database and its model under a name, so that they need not be said again. A name that is taken gets
    the new ones.

    The address is kept in the store, and a password in it is refused: [cyan]PGPASSWORD[/] or [cyan]~/.pgpass[/] says it
    whenever the database is opened.

    [dim]Examples[/]
      tidings objects add university --model university.puml --database sqlite:///university.db
      tidings objects add shop --model shop.tables:Base --database postgresql://tidings@localhost/shop
    """
    from tidings.objects.model.summary import summarize_model
    from tidings.objects.sources import SourceRegistry

    with open_tidings(home, store) as tidings:
        sources = SourceRegistry(tidings.store)
        mapped = sources.add(name, model, database).mapped
        kept = sources.select(name)
    if as_json:
        output.print_json(asdict(kept))
    else:
        output.print_line((name, "bold cyan"), summarize_model(mapped.model))


def list_sources(
    home: HomeOption = DEFAULT_HOME, store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """List the databases that were added.

    [dim]Example[/]
      tidings objects list
    """
    from tidings.objects.sources import ADD_COMMAND, SourceRegistry

    with open_tidings(home, store) as tidings:
        found = SourceRegistry(tidings.store).list_sources()
    if as_json:
        for one in found:
            output.print_json(asdict(one))
    elif found:
        output.print_table(
            ("name", "model", "database"), [(one.name, one.model, one.database) for one in found]
        )
    else:
        output.print_note(f"no databases with objects: {ADD_COMMAND}")


def remove(
    name: SourceName, home: HomeOption = DEFAULT_HOME, store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """Forget a database. Nothing changes in it: watches and triggers stay, and so do notifications here.

    [dim]Example[/]
      tidings objects remove university
    """
    from tidings.objects.sources import SourceRegistry

    with open_tidings(home, store) as tidings:
        removed = SourceRegistry(tidings.store).remove(name)
    output.print_removal({"name": name}, removed, "forgotten", "there is no such database", as_json)


app.command(help=format_help(add))(add)
app.command("list", help=format_help(list_sources))(list_sources)
app.command(help=format_help(remove))(remove)
