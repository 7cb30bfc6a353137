"""`rejects`: the dead letters, publications the stream could not use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
SUBSCRIPTION = 3


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
    """List the dead letters: publications that the stream could not use, and why. The stream went on without them.

    A letter that names a subscription is about this pair alone: it exceeded the budget of time or memory, and the other
    subscribers were notified.

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
        rows = [
            (f"#{one.number}", one.source, one.publication, one.subscription or "", one.reason)
            for one in letters
        ]
    if rows:
        _table(rows)
    else:
        output.note("no dead letters")


def _table(rows: Sequence[tuple[str, ...]]) -> None:
    """Subscriptions have a column only where a letter names one."""
    heads = ("", "source", "publication", "subscription", "reason")
    shown = [
        place for place, _ in enumerate(heads) if place != SUBSCRIPTION or any(row[place] for row in rows)
    ]
    output.table([heads[place] for place in shown], [tuple(row[place] for place in shown) for row in rows])


def _all(tidings: Tidings, after: int) -> Iterator[DeadLetter]:
    """Page by page: the bodies of all of them need not fit into memory."""
    while page := tidings.dead_letters(after, PAGE):
        yield from page
        after = page[-1].number
