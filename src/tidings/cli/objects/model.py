"""`model check`, `show`, `diagram`, `triggers`, `tell` and `changes`: data models that say whom a change concerns."""

from __future__ import annotations

from typing import Annotated

import typer

from tidings.cli import output
from tidings.cli.objects.changes import changes
from tidings.cli.objects.outbox import tell
from tidings.cli.objects.triggers import read_model, triggers
from tidings.cli.options import JsonOption, format_help
from tidings.cli.output import PictureOption, check_picture_format, write_picture

app = typer.Typer(
    no_args_is_help=True,
    help="Data models that say whom a change concerns: as PlantUML, as XMI, or as SQLAlchemy's classes.",
)

ModelArgument = Annotated[
    str,
    typer.Argument(
        metavar="FILE|MODULE:BASE",
        help="A class diagram ([cyan].puml[/], [cyan].xmi[/], [cyan].uml[/]), or a declarative base of SQLAlchemy: "
        "[cyan]shop.tables:Base[/], [cyan]tables.py:Base[/].",
        show_default=False,
    ),
]


def check(model: ModelArgument, as_json: JsonOption = False) -> None:
    """Say what is wrong with a model, all of it with its place, or what there is in it.

    A class may be marked as [cyan]subscriber[/]; an association as [cyan]implicit[/] (objects at one end are told about
    those at the other) and as [cyan]propagates[/] (a change at one end is a change at the other).

    [dim]Examples[/]
      tidings model check university.puml
      tidings model check university.py:Base
    """
    from tidings.objects.model.summary import list_marks, summarize_model

    found = read_model(model).model
    if not as_json:
        output.print_line(summarize_model(found))
        return
    marks = {
        mark: [each.name for each in found.associations if mark in list_marks(each)]
        for mark in ("implicit", "propagates")
    }
    subscribers = [each.name for each in found.classes.values() if each.subscriber]
    counts = {"classes": len(found.classes), "associations": len(found.associations)}
    output.print_json({**counts, "subscribers": subscribers, **marks})


def show(model: ModelArgument, as_json: JsonOption = False) -> None:
    """Print the classes and associations of a model, what their marks do, and in which tables they lie.

    [dim]Examples[/]
      tidings model show university.xmi
      tidings model show university.puml --json
    """
    from tidings.objects.model.summary import list_association_rows, list_class_rows, list_records

    placed = read_model(model)
    if as_json:
        for row in list_records(placed):
            output.print_json(row)
        return
    output.print_table(("class", "", "attributes", "table"), list_class_rows(placed))
    if placed.model.associations:
        output.print_line("")
        output.print_table(("association", "", "", "lies in"), list_association_rows(placed))


def diagram(
    model: ModelArgument,
    out: PictureOption = None,
    classes: Annotated[
        list[str] | None,
        typer.Option(
            "--class",
            metavar="NAME",
            help="Only this class and what it is joined to; several times for several classes.",
        ),
    ] = None,
) -> None:
    """Draw a model, in the colours of its marks: an SVG. Changes go up along the lines, to those who are told.

    [dim]Examples[/]
      tidings model diagram university.puml --out university.svg
      tidings model diagram university.py:Base --class Course > course.svg
    """
    from tidings.objects.model.model_picture import build_model_picture

    check_picture_format(out)
    picture = build_model_picture(read_model(model).model, classes or ())
    write_picture(picture, out)


for command in (check, show, diagram, triggers, tell, changes):
    app.command(help=format_help(command))(command)
