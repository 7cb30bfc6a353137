"""`schema show`, `schema check` and `schema extend`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.errors import InputError, SchemaError
from tidings.interfaces.cli import output
from tidings.interfaces.cli.options import DEFAULT_HOME, AsJson, Home, Store, open_tidings, prose

if TYPE_CHECKING:
    from tidings.schema.event_schema import EventSchema

app = typer.Typer(
    no_args_is_help=True,
    help="Event types, attributes and domains: what events look like. Without a schema every event is taken.",
)

File = Annotated[Path, typer.Argument(metavar="FILE", help="A schema as YAML.", show_default=False)]


def show(home: Home = DEFAULT_HOME, store: Store = None, as_json: AsJson = False) -> None:
    """Print the schema in use, as the YAML that would make it.

    [dim]Example[/]
      tidings schema show > schema.yaml
    """
    from tidings.schema.files import dump

    with open_tidings(home, store) as tidings:
        schema = tidings.schema()
    if as_json:
        _json_rows(schema)
    elif schema.is_empty:
        output.note("no schema: every event is taken. tidings schema extend FILE")
    else:
        typer.echo(dump(schema), nl=False)


def check(file: File, as_json: AsJson = False) -> None:
    """Read a schema file and say what is wrong with it, or what is in it.

    [dim]Example[/]
      tidings schema check furniture.yaml
    """
    from tidings.schema.files import load_text
    from tidings.schema.summary import summary

    schema = load_text(_read(file))
    if as_json:
        _json_rows(schema)
    else:
        output.line(summary(schema))


def extend(file: File, home: Home = DEFAULT_HOME, store: Store = None, as_json: AsJson = False) -> None:
    """Add a file's domains, attributes and event types to the schema in use.

    Only extensions are taken: nothing that publishers and subscribers rely on may go away. A file that was added
    before may be added again and changes nothing.

    [dim]Example[/]
      tidings schema extend furniture.yaml
    """
    from tidings.schema.summary import summary

    with open_tidings(home, store) as tidings:
        extended = tidings.extend_schema(_read(file))
    if as_json:
        for change in extended.changes:
            output.json_line({"rule": change.rule, "what": change.what})
    elif extended.changes:
        output.line(summary(extended.schema))
    else:
        output.line(f"nothing new: {summary(extended.schema)}")


def _read(file: Path) -> str:
    if not file.is_file():
        raise InputError(f"no file '{file}'", accepted="a schema as YAML")
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SchemaError(f"{file} is not UTF-8", where=f"byte {error.start}", accepted="UTF-8") from None


def _json_rows(schema: EventSchema) -> None:
    """The schema a fact a line, as the store keeps it."""
    from tidings.schema.rows import to_rows

    for row in to_rows(schema):
        output.json_line(asdict(row))


for command in (show, check, extend):
    app.command(help=prose(command))(command)
