"""Pictures as files, or on standard output."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.errors import InputError
from tidings.interfaces.cli import output

if TYPE_CHECKING:
    from tidings.interfaces.drawing.picture import Picture

Out = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Where to write it; otherwise standard output.", show_default=False),
]


def refuse_other_formats(out: Path | None) -> None:
    """Before anything is drawn: an SVG in a file that is called otherwise is opened by nobody."""
    if out is not None and out.suffix.lower() not in ("", ".svg"):
        raise InputError(
            "the picture is an SVG", where="--out", received=str(out), accepted="a name with .svg at its end"
        )


def write_picture(picture: Picture, out: Path | None) -> None:
    from tidings.interfaces.drawing.svg import drawn

    svg = drawn(picture)
    if out is None:
        typer.echo(svg, nl=False)
        return
    try:
        out.write_text(svg, encoding="utf-8")
    except OSError as error:
        raise InputError("the picture cannot be written", where=str(out), received=error.strerror) from error
    output.note(f"{out}: {picture.notes[0]}")
