"""`schema show`, `schema check` and `schema extend`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import output
from tidings.cli.options import DEFAULT_HOME, HomeOption, JsonOption, StoreOption, format_help, open_tidings
from tidings.errors import InputError, SchemaError

if TYPE_CHECKING:
    from tidings.events.schema.event_schema import EventSchema

app = typer.Typer(
    no_args_is_help=True,
    help="Event types, attributes and domains: what events look like. Without a schema every event is taken.",
)

File = Annotated[Path, typer.Argument(metavar="FILE", help="A schema as YAML.", show_default=False)]


def show(home: HomeOption = DEFAULT_HOME, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Print the schema in use, as the YAML that would make it.

    [dim]Example[/]
      tidings schema show > schema.yaml
    """
    from tidings.events.schema.files import dump

    with open_tidings(home, store) as tidings:
        schema = tidings.schema()
    if as_json:
        _json_rows(schema)
    elif schema.is_empty:
        output.print_note("no schema: every event is taken. tidings schema extend FILE")
    else:
        typer.echo(dump(schema), nl=False)


def check(
    file: File, home: HomeOption = DEFAULT_HOME, store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """Say what is wrong with a schema file, or what there would be after extending by it. Nothing is changed.

    With a schema in use, the file is checked as an extension of it; without one, as a schema of its own.

    [dim]Example[/]
      tidings schema check furniture.yaml
    """
    from tidings.events.schema.rows import summary

    text = _read(file)
    with _named(file):
        schema, extends = _tried(text, home, store)
    if as_json:
        _json_rows(schema)
        return
    output.print_line(summary(schema))
    output.print_note(
        f"checked as {'an extension of the schema in use' if extends else 'a schema of its own: none is in use'}"
    )


def _tried(text: str, home: Path, store: str | None) -> tuple[EventSchema, bool]:
    """The schema that a file would make, and whether one is there to be extended; makes no store to find out."""
    from tidings.events.schema.files import load_text

    if store is None and not (home / "store.db").exists():
        return load_text(text), False
    with open_tidings(home, store) as tidings:
        return tidings.try_schema(text).schema, not tidings.schema().is_empty


@contextmanager
def _named(file: Path) -> Iterator[None]:
    """An error says which file it is about."""
    try:
        yield
    except SchemaError as problem:
        problem.what = f"{file}: {problem.what}"
        raise


def extend(
    file: File, home: HomeOption = DEFAULT_HOME, store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """Add a file's domains, attributes and event types to the schema in use.

    Only extensions are taken: nothing that publishers and subscribers rely on may go away. A file that was added
    before may be added again and changes nothing.

    [dim]Example[/]
      tidings schema extend furniture.yaml
    """
    from tidings.events.schema.rows import summary

    text = _read(file)
    with open_tidings(home, store) as tidings, _named(file):
        extended = tidings.extend_schema(text)
    if as_json:
        for change in extended.changes:
            output.print_json({"rule": change.rule, "what": change.what})
    elif extended.changes:
        output.print_line(summary(extended.schema))
    else:
        output.print_line(f"nothing new: {summary(extended.schema)}")


def _read(file: Path) -> str:
    if not file.is_file():
        raise InputError(f"no file '{file}'", accepted="a schema as YAML")
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SchemaError(f"{file} is not UTF-8", where=f"byte {error.start}", accepted="UTF-8") from None


def _json_rows(schema: EventSchema) -> None:
    """The schema a fact a line, as the store keeps it."""
    from tidings.events.schema.rows import to_rows

    for row in to_rows(schema):
        output.print_json(asdict(row))


for command in (show, check, extend):
    app.command(help=format_help(command))(command)
