"""`model check`, `show`, `diagram`, `triggers`, `tell` and `changes`: data models that say whom a change concerns."""

from __future__ import annotations

from typing import Annotated

import typer

from tidings.interfaces.cli import output
from tidings.interfaces.cli.model_changes import changes
from tidings.interfaces.cli.model_inputs import read_model
from tidings.interfaces.cli.model_tell import tell
from tidings.interfaces.cli.model_triggers import triggers
from tidings.interfaces.cli.options import AsJson, prose
from tidings.interfaces.cli.pictures import Out, refuse_other_formats, write_picture

app = typer.Typer(
    no_args_is_help=True,
    help="Data models that say whom a change concerns: as PlantUML, as XMI, or as SQLAlchemy's classes.",
)

What = Annotated[
    str,
    typer.Argument(
        metavar="FILE|MODULE:BASE",
        help="A class diagram ([cyan].puml[/], [cyan].xmi[/], [cyan].uml[/]), or a declarative base of SQLAlchemy: "
        "[cyan]shop.tables:Base[/], [cyan]tables.py:Base[/].",
        show_default=False,
    ),
]


def check(model: What, as_json: AsJson = False) -> None:
    """Say what is wrong with a model, all of it with its place, or what there is in it.

    A class may be marked as [cyan]subscriber[/]; an association as [cyan]implicit[/] (objects at one end are told about
    those at the other) and as [cyan]propagates[/] (a change at one end is a change at the other).

    [dim]Examples[/]
      tidings model check university.puml
      tidings model check university.py:Base
    """
    from tidings.objects.summary import marks_of, summary

    found = read_model(model).model
    if not as_json:
        output.line(summary(found))
        return
    marks = {
        mark: [each.name for each in found.associations if mark in marks_of(each)]
        for mark in ("implicit", "propagates")
    }
    subscribers = [each.name for each in found.classes.values() if each.subscriber]
    counts = {"classes": len(found.classes), "associations": len(found.associations)}
    output.json_line({**counts, "subscribers": subscribers, **marks})


def show(model: What, as_json: AsJson = False) -> None:
    """Print the classes and associations of a model, what their marks do, and in which tables they lie.

    [dim]Examples[/]
      tidings model show university.xmi
      tidings model show university.puml --json
    """
    from tidings.objects.summary import association_lines, class_lines, rows

    placed = read_model(model)
    if as_json:
        for row in rows(placed):
            output.json_line(row)
        return
    output.table(("class", "", "attributes", "table"), class_lines(placed))
    if placed.model.associations:
        output.line("")
        output.table(("association", "", "", "lies in"), association_lines(placed))


def diagram(
    model: What,
    out: Out = None,
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
    from tidings.interfaces.model_picture import picture_of

    refuse_other_formats(out)
    picture = picture_of(read_model(model).model, classes or ())
    write_picture(picture, out)


for command in (check, show, diagram, triggers, tell, changes):
    app.command(help=prose(command))(command)
