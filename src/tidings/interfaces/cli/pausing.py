"""`change`, `pause` and `resume`: subscriptions that keep their id."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.errors import Absent, InputError
from tidings.interfaces.cli import output
from tidings.interfaces.cli.options import DEFAULT_HOME, AsJson, Home, Store, open_tidings

if TYPE_CHECKING:
    from tidings.service.subscribing import Subscribing
    from tidings.store import Kept

Ids = Annotated[
    list[str], typer.Argument(help="Ids of subscriptions, as `tidings subscriptions` shows them.")
]
AT_ONCE = "at once"


def change(
    id: Annotated[str, typer.Argument(help="The id of a subscription.")],
    text: Annotated[
        str | None,
        typer.Argument(metavar="TEXT", help="What to be told about from now on, in the same language."),
    ] = None,
    within: Annotated[
        str | None,
        typer.Option(
            metavar="DELAY",
            help="The delay that is accepted from now on: [cyan]10 minutes[/], or [cyan]at once[/].",
            show_default=False,
        ),
    ] = None,
    home: Home = DEFAULT_HOME,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Give a subscription another text, or another delay. It keeps its id, and its feed and deliveries go on.

    The stream's next batch knows the new text only. One that is paused stays so.

    [dim]Examples[/]
      tidings change s-7f3a9c01 "price < 100"
      tidings change s-7f3a9c01 --within "1 hour"
    """
    from tidings.service.subscribing import delay_of

    if text is None and within is None:
        raise InputError("what is to change?", hint='tidings change ID "price < 100", or --within DELAY')
    with open_tidings(home, store) as tidings:
        subscribing = tidings.subscribing()
        delay = subscribing.find(id).subscription.within
        if within is not None:
            delay = None if within.strip() == AT_ONCE else delay_of(within)
        made = subscribing.change(id, text, delay)
    if as_json:
        output.json_line(output.subscribed_record(made))
    else:
        output.subscribed(made)


def pause(ids: Ids, home: Home = DEFAULT_HOME, store: Store = None, as_json: AsJson = False) -> None:
    """Match nothing for subscriptions until they are resumed. They keep their ids and texts.

    [dim]Example[/]
      tidings pause s-7f3a9c01
    """
    with open_tidings(home, store) as tidings:
        _each(tidings.subscribing(), ids, lambda all, id: all.pause(id), as_json)


def resume(ids: Ids, home: Home = DEFAULT_HOME, store: Store = None, as_json: AsJson = False) -> None:
    """Match for subscriptions again that were paused.

    What was published meanwhile is not told of. A rule tells what became different for it.

    [dim]Example[/]
      tidings resume s-7f3a9c01
    """
    with open_tidings(home, store) as tidings:
        _each(tidings.subscribing(), ids, lambda all, id: all.resume(id), as_json)


def _each(all: Subscribing, ids: list[str], do: Callable[[Subscribing, str], Kept], as_json: bool) -> None:
    missing = False
    for id in ids:
        try:
            state = do(all, id).state
        except Absent as problem:
            missing, state = True, None
            if not as_json:
                output.line((id, "bold red"), problem.what, stderr=True)
        if as_json:
            output.json_line({"id": id, "state": state})
        elif state:
            output.line((id, "bold cyan"), state)
    if missing:
        raise typer.Exit(output.WITH_REJECTS)
