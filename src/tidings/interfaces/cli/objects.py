"""`objects add`, `objects list` and `objects remove`: databases whose objects are watched and told about."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from tidings.interfaces.cli import output
from tidings.interfaces.cli.options import DEFAULT_HOME, AsJson, Home, Store, open_tidings, prose

app = typer.Typer(
    no_args_is_help=True,
    help="Databases whose objects are watched and told about, each under a name with its model.",
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="What the database is called.", show_default=False)]
Source = Annotated[
    str | None,
    typer.Option(
        "--source",
        metavar="NAME",
        help="Which of the databases that [cyan]tidings objects add[/] has added; the only one when nothing is said.",
        show_default=False,
    ),
]


def add(
    name: Name,
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
    home: Home = DEFAULT_HOME,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Remember a database and its model under a name, so that they need not be said again. A name that is taken gets
    the new ones.

    The address is kept in the store, and a password in it is refused: [cyan]PGPASSWORD[/] or [cyan]~/.pgpass[/] says it
    whenever the database is opened.

    [dim]Examples[/]
      tidings objects add university --model university.puml --database sqlite:///university.db
      tidings objects add shop --model shop.tables:Base --database postgresql://tidings@localhost/shop
    """
    from tidings.objects.summary import summary
    from tidings.service.sources import Sources

    with open_tidings(home, store) as tidings:
        sources = Sources(tidings.store)
        placed = sources.add(name, model, database).placed
        kept = sources.chosen(name)
    if as_json:
        output.json_line(asdict(kept))
    else:
        output.line((name, "bold cyan"), summary(placed.model))


def list_sources(home: Home = DEFAULT_HOME, store: Store = None, as_json: AsJson = False) -> None:
    """List the databases that were added.

    [dim]Example[/]
      tidings objects list
    """
    from tidings.service.sources import ADD, Sources

    with open_tidings(home, store) as tidings:
        found = Sources(tidings.store).all()
    if as_json:
        for one in found:
            output.json_line(asdict(one))
    elif found:
        output.table(("name", "model", "database"), [(one.name, one.model, one.database) for one in found])
    else:
        output.note(f"no databases with objects: {ADD}")


def remove(name: Name, home: Home = DEFAULT_HOME, store: Store = None, as_json: AsJson = False) -> None:
    """Forget a database. Nothing changes in it: watches and triggers stay, and so do notifications here.

    [dim]Example[/]
      tidings objects remove university
    """
    from tidings.service.sources import Sources

    with open_tidings(home, store) as tidings:
        removed = Sources(tidings.store).remove(name)
    output.removed({"name": name}, removed, "forgotten", "there is no such database", as_json)


app.command(help=prose(add))(add)
app.command("list", help=prose(list_sources))(list_sources)
app.command(help=prose(remove))(remove)
