"""`rejects`: the dead letters, publications the stream could not use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.interfaces.cli import output
from tidings.interfaces.cli.options import DEFAULT_HOME, AsJson, Home, Store, countable, open_tidings

if TYPE_CHECKING:
    from tidings.service import Tidings
    from tidings.store import DeadLetter

PAGE = 1_000


def rejects(
    after: Annotated[
        int, typer.Option(min=0, callback=countable, metavar="N", help="Only those behind number N.")
    ] = 0,
    limit: Annotated[
        int | None, typer.Option(min=1, callback=countable, metavar="N", help="At most N of them.")
    ] = None,
    home: Home = DEFAULT_HOME,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """List the dead letters: what the stream could not read, where it stood, and why. The stream went on without it.

    [dim]Example[/]
      tidings rejects --json
    """
    with open_tidings(home, store) as tidings:
        letters = islice(_all(tidings, after), limit)
        if as_json:
            for letter in letters:
                body = (letter.body or b"").decode("utf-8", "backslashreplace")
                output.json_line(asdict(letter) | {"body": body})
            return
        rows = [(f"#{one.number}", one.source, one.publication, one.reason) for one in letters]
    if rows:
        output.table(("", "source", "publication", "reason"), rows)
    else:
        output.note("no dead letters")


def _all(tidings: Tidings, after: int) -> Iterator[DeadLetter]:
    """Page by page: the bodies of all of them need not fit into memory."""
    while page := tidings.dead_letters(after, PAGE):
        yield from page
        after = page[-1].number
