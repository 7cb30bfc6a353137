"""`rules`: looking at what rules are made of."""

from __future__ import annotations

from typing import Annotated

import typer

from tidings.interfaces.cli.options import DEFAULT_HOME, Home, Store, open_tidings, prose
from tidings.interfaces.cli.pictures import Out, refuse_other_formats, write_picture

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
    out: Out = None,
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
    from tidings.interfaces.rule_picture import picture_of

    refuse_other_formats(out)
    with open_tidings(home, store) as tidings:
        picture = picture_of(tidings.store, rules or ())
    write_picture(picture, out)


@app.callback()
def rules() -> None:
    """A group of its own, though it has one command only."""


app.command(help=prose(graph))(graph)
