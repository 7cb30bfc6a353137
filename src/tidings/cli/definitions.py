"""`schema ...`, `reference ...`, `taxonomy ...`: the structure of publications, and knowledge about their values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.cli import output
from tidings.cli.command import make_group
from tidings.cli.inputs import read_graph_file
from tidings.cli.options import Home
from tidings.cli.output import Cell, Output, View
from tidings.core.text import plural
from tidings.errors import InputError, SchemaError

if TYPE_CHECKING:
    from tidings.events.schema.event_schema import EventSchema
    from tidings.reference_data.declarations import Reference
    from tidings.service.reference_data import DeclaredReference, LoadedTaxonomy

SchemaFile = Annotated[Path, typer.Argument(metavar="FILE", help="A schema as YAML.")]


def show_schema(home: Home, out: Output) -> None:
    """Print the schema in use, as YAML that `tidings schema extend` accepts.

    Example:
      tidings schema show > schema.yaml
    """
    from tidings.events.schema.files import dump

    with home.open() as tidings:
        schema = tidings.schema()
    if out.as_json:
        _print_schema_rows(schema)
    elif schema.is_empty:
        output.print_note("no schema: every event is accepted. tidings schema extend FILE")
    else:
        typer.echo(dump(schema), nl=False)


def check_schema(home: Home, out: Output, file: SchemaFile) -> None:
    """Check a schema file and print the errors, or a summary of the resulting schema. Nothing is changed.

    Example:
      tidings schema check furniture.yaml

    If a schema is in use, the file is checked as an extension of it; otherwise as a schema of its own.
    """
    from tidings.events.schema.rows import summary

    text = _read_schema_file(file)
    with _name_file(file):
        schema, extends = _try_schema(home, text)
    if out.as_json:
        _print_schema_rows(schema)
        return
    output.print_line(summary(schema))
    role = "an extension of the schema in use" if extends else "a schema of its own: none is in use"
    output.print_note(f"checked as {role}")


def _try_schema(home: Home, text: str) -> tuple[EventSchema, bool]:
    """Return the schema that a file leads to, and whether it extends another one; create no store for that."""
    from tidings.events.schema.files import load_text

    if not home.has_store():
        return load_text(text), False
    with home.open() as tidings:
        return tidings.try_schema(text).schema, not tidings.schema().is_empty


@contextmanager
def _name_file(file: Path) -> Iterator[None]:
    """Name the file in errors."""
    try:
        yield
    except SchemaError as problem:
        problem.what = f"{file}: {problem.what}"
        raise


def extend_schema(home: Home, out: Output, file: SchemaFile) -> None:
    """Add the domains, attributes and event types of a file to the schema in use.

    Example:
      tidings schema extend furniture.yaml

    Only extensions are accepted: existing declarations cannot be removed. Adding the same file again
    changes nothing.
    """
    from tidings.events.schema.rows import summary

    text = _read_schema_file(file)
    with home.open() as tidings, _name_file(file):
        extended = tidings.extend_schema(text)
    if out.as_json:
        for change in extended.changes:
            output.print_json(output.select_fields(change, "rule", "what"))
    else:
        output.print_line(("" if extended.changes else "nothing new: ") + summary(extended.schema))


def _read_schema_file(file: Path) -> str:
    if not file.is_file():
        raise InputError(f"no file '{file}'", accepted="a schema as YAML")
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SchemaError(f"{file} is not UTF-8", where=f"byte {error.start}", accepted="UTF-8") from None


def _print_schema_rows(schema: EventSchema) -> None:
    """Print one fact of the schema per line, as the store holds it."""
    from tidings.events.schema.rows import to_rows

    for row in to_rows(schema):
        output.print_json(asdict(row))


schema_app = make_group(
    "Event types, attributes and domains of events. Without a schema every event is accepted.",
    {"show": show_schema, "check": check_schema, "extend": extend_schema},
)


# Reference tables.


ReferenceName = Annotated[str, typer.Argument(metavar="NAME", help="The name of the table.")]


def add_reference(
    home: Home,
    out: Output,
    name: ReferenceName,
    file: Annotated[
        str,
        typer.Option(metavar="FILE", help="The table: a .csv, .jsonl or .parquet file, or `spark:TABLE`."),
    ],
    key: Annotated[str, typer.Option(metavar="COLUMN", help="The column that is compared with the value.")],
    on: Annotated[
        str,
        typer.Option(
            metavar="PATH",
            help="The place of the value: an attribute of events, or a path in documents, which begins with /.",
        ),
    ],
    field: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="A column to add; may be repeated. By default, all except the key."
        ),
    ] = None,
) -> None:
    """Declare a reference table: its columns are added to each publication that contains a value of its key.

    Examples:
      tidings reference add sectors --file sectors.csv --key symbol --on /stock/symbol
      tidings reference add cities --file cities.parquet --key name --on seller.city --field country
      tidings reference add shops --file spark:sales.shops --key id --on shop

    Events get attributes: `ref.sector = 'tech'`. Documents get elements: `//ref\\[sector = "tech"]`. The table and
    changes of its file take effect with the next batch of the stream. A table of the same name is replaced.
    """
    with home.open() as tidings:
        declared = tidings.add_reference(name, file, key, on, field or ())
    record = _to_reference_record(declared.reference) | {"rows": declared.rows, "adds": declared.adds}
    out.print_record(record, (name, "bold cyan"), f"{key} = {on}", _describe_reference(declared))


def _describe_reference(declared: DeclaredReference) -> str:
    if declared.rows is None:
        return "the stream reads it when it starts, and when it is declared again"
    return f"{plural(declared.rows, 'row')}, adds {', '.join(declared.adds or ()) or 'nothing'}"


def _to_reference_record(reference: Reference) -> dict[str, Any]:
    record = asdict(reference) | {"file": reference.shown_file}
    del record["version"]
    return record


REFERENCES: View[Reference] = View(
    "no reference tables: tidings reference add NAME --file FILE --key COLUMN --on PATH",
    columns=(
        ("name", "name"),
        ("key", "key"),
        ("on", "on"),
        ("fields", lambda reference: ", ".join(reference.fields) or "all"),
        ("file", "shown_file"),
    ),
    record=_to_reference_record,
)


def list_references(home: Home, out: Output) -> None:
    """List the declared reference tables.

    Example:
      tidings reference list
    """
    with home.open() as tidings:
        references = tidings.references()
    out.print_records(references, REFERENCES)


def remove_reference(home: Home, out: Output, name: ReferenceName) -> None:
    """Remove a reference table, from the next batch of the stream on.

    Example:
      tidings reference remove sectors
    """
    with home.open() as tidings:
        removed = tidings.remove_reference(name)
    out.print_removal({"name": name}, removed, "removed", "there is no such reference table")


reference_app = make_group(
    "Reference tables: their columns are joined to publications, and subscriptions can refer to them.",
    {"add": add_reference, "list": list_references, "remove": remove_reference},
)


# Taxonomies.


def load_taxonomy(
    home: Home,
    out: Output,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="RDFS: a .ttl, .nt, .rdf, .owl or .jsonld file.")
    ],
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="A name; by default, that of the file.")
    ] = None,
    base: Annotated[
        str | None, typer.Option(metavar="IRI", help="The base of relative IRIs in the file.")
    ] = None,
) -> None:
    """Load a taxonomy: rdfs:subClassOf, rdfs:subPropertyOf, and instances with their rdf:type.

    Examples:
      tidings taxonomy load academia.ttl
      tidings taxonomy load schemas.rdf --name schemas

    All loaded taxonomies together take effect with the next batch of the stream; one of the same name is replaced. A
    class that is a subclass of itself is refused with the cycle, and so is a file without classes or properties. SKOS
    hierarchies (skos:broader) are not supported.
    """
    body, media_type = read_graph_file(file)
    with home.open() as tidings:
        loaded = tidings.load_taxonomy(name or file.stem, body, media_type, base)
    warnings = [warning.facts() for warning in loaded.warnings]
    out.print_record(_to_taxonomy_record(loaded) | {"warnings": warnings}, *_list_taxonomy_cells(loaded))
    if not out.as_json:
        for warning in loaded.warnings:
            output.print_warning(warning)


def _to_taxonomy_record(taxonomy: LoadedTaxonomy) -> dict[str, object]:
    """Return the fields without the warnings, which only loading prints."""
    return {name: value for name, value in asdict(taxonomy).items() if name != "warnings"}


def _list_taxonomy_cells(taxonomy: LoadedTaxonomy) -> tuple[Cell, ...]:
    counts = {"class": taxonomy.classes, "instance": taxonomy.instances, "property": taxonomy.properties}
    return (taxonomy.name, "bold cyan"), ", ".join(plural(count, what) for what, count in counts.items())


TAXONOMIES: View[LoadedTaxonomy] = View(
    "no taxonomies: tidings taxonomy load FILE", line=_list_taxonomy_cells, record=_to_taxonomy_record
)


def list_taxonomies(home: Home, out: Output) -> None:
    """List the loaded taxonomies.

    Example:
      tidings taxonomy list
    """
    with home.open() as tidings:
        taxonomies = tidings.taxonomies()
    out.print_records(taxonomies, TAXONOMIES)


def remove_taxonomy(
    home: Home,
    out: Output,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the taxonomy.")],
) -> None:
    """Remove a taxonomy, from the next batch of the stream on.

    Example:
      tidings taxonomy remove academia
    """
    with home.open() as tidings:
        removed = tidings.remove_taxonomy(name)
    out.print_removal({"name": name}, removed, "removed", "there is no such taxonomy")


taxonomy_app = make_group(
    "Taxonomies: classes, instances and properties that subscriptions to graphs refer to.",
    {"load": load_taxonomy, "list": list_taxonomies, "remove": remove_taxonomy},
)
