"""`reference add`, `reference list` and `reference remove`: tables that publications are joined with."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.cli import output
from tidings.cli.options import DEFAULT_HOME, HomeOption, JsonOption, StoreOption, format_help, open_tidings
from tidings.core.text import plural

if TYPE_CHECKING:
    from tidings.reference_data.declarations import Reference
    from tidings.service.reference_data import DeclaredReference

app = typer.Typer(
    no_args_is_help=True,
    help="Reference tables: publications get what a table says of a value in them, and subscriptions can ask about it.",
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="What the table is called.", show_default=False)]


def add(
    name: Name,
    file: Annotated[
        str,
        typer.Option(
            metavar="FILE", help="The table: a .csv, .jsonl or .parquet file, or [cyan]spark:TABLE[/]."
        ),
    ],
    key: Annotated[str, typer.Option(metavar="COLUMN", help="The column that values are looked up in.")],
    on: Annotated[
        str,
        typer.Option(
            metavar="PATH",
            help="Where the value stands: an attribute of events, or a path in documents, which begins with /.",
        ),
    ],
    field: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="A column to add; may be repeated. All but the key when none is named."
        ),
    ] = None,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Declare a table. What it says of a value is added to each publication that has the value.

    Events get attributes: [cyan]ref.sector = 'tech'[/]. Documents get elements: [cyan]//ref\\[sector = "tech"][/].
    It counts from the stream's next batch on; so does a change of the file. A name that is taken gets the new table.

    [dim]Examples[/]
      tidings reference add sectors --file sectors.csv --key symbol --on /stock/symbol
      tidings reference add cities --file cities.parquet --key name --on seller.city --field country
      tidings reference add shops --file spark:sales.shops --key id --on shop
    """
    with open_tidings(home, store) as tidings:
        made = tidings.add_reference(name, file, key, on, field or ())
    if as_json:
        output.print_json(_record(made.reference) | {"rows": made.rows, "adds": made.adds})
    else:
        output.print_line((name, "bold cyan"), f"{key} = {on}", _read(made))


def _read(made: DeclaredReference) -> str:
    if made.rows is None:
        return "the stream reads it when it starts, and when it is declared again"
    adds = ", ".join(made.adds or ()) or "nothing"
    return f"{plural(made.rows, 'row')}, adds {adds}"


def _record(reference: Reference) -> dict[str, Any]:
    record = asdict(reference) | {"file": reference.shown_file}
    del record["version"]
    return record


def list_references(
    home: HomeOption = DEFAULT_HOME, store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """List the tables that are declared.

    [dim]Example[/]
      tidings reference list
    """
    with open_tidings(home, store) as tidings:
        found = tidings.references()
    if as_json:
        for one in found:
            output.print_json(_record(one))
    elif found:
        rows = [(one.name, one.key, one.on, ", ".join(one.fields) or "all", one.shown_file) for one in found]
        output.print_table(("name", "key", "on", "fields", "file"), rows)
    else:
        output.print_note(
            "no reference tables: tidings reference add NAME --file FILE --key COLUMN --on PATH"
        )


def remove(
    name: Name, home: HomeOption = DEFAULT_HOME, store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """Withdraw a table. Publications are matched without it from the stream's next batch on.

    [dim]Example[/]
      tidings reference remove sectors
    """
    with open_tidings(home, store) as tidings:
        removed = tidings.remove_reference(name)
    output.print_removal({"name": name}, removed, "withdrawn", "there is no such reference table", as_json)


app.command(help=format_help(add))(add)
app.command("list", help=format_help(list_references))(list_references)
app.command(help=format_help(remove))(remove)
