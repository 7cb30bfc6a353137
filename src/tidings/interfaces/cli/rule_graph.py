"""`rules`: looking at what rules are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidings.errors import InputError
from tidings.interfaces.cli import output
from tidings.interfaces.cli.options import DEFAULT_HOME, Home, Store, open_tidings, prose

app = typer.Typer(no_args_is_help=True, help="What the rules over metadata are made of.")


def graph(
    rules: Annotated[
        list[str] | None,
        typer.Option(
            "--rule",
            metavar="NAME",
            help="Only this rule and what it needs; several times for several rules.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where to write it; otherwise standard output.", show_default=False
        ),
    ] = None,
    home: Home = DEFAULT_HOME,
    store: Store = None,
) -> None:
    """Draw how rules are taken apart into atomic rules, and what they share, with counts of results: an SVG.

    Triggering rules stand at the bottom, join rules above what they join, and rules with names on top. A rule base that
    is too large for that is drawn as kinds of rules.

    [dim]Examples[/]
      tidings rules graph --out rules.svg
      tidings rules graph --rule large --rule all > rules.svg
    """
    from tidings.interfaces.drawing.svg import drawn
    from tidings.interfaces.rule_picture import picture_of

    if out is not None and out.suffix.lower() not in ("", ".svg"):
        raise InputError(
            "the picture is an SVG", where="--out", received=str(out), accepted="a name with .svg at its end"
        )
    with open_tidings(home, store) as tidings:
        picture = picture_of(tidings.store, rules or ())
    svg = drawn(picture)
    if out is None:
        typer.echo(svg, nl=False)
        return
    try:
        out.write_text(svg, encoding="utf-8")
    except OSError as error:
        raise InputError("the picture cannot be written", where=str(out), received=error.strerror) from error
    output.note(f"{out}: {picture.notes[0]}")


@app.callback()
def rules() -> None:
    """A group of its own, though it has one command only."""


app.command(help=prose(graph))(graph)
