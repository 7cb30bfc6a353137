"""`audience grant`, `audience revoke` and `audience list`: who may see publications that carry a label."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from tidings.cli import output
from tidings.cli.options import (
    DEFAULT_HOME,
    HomeOption,
    JsonOption,
    StoreOption,
    SubscriberOption,
    find_subscriber,
    format_help,
    open_tidings,
    resolve_subscriber,
)

app = typer.Typer(
    no_args_is_help=True, help="Audiences: who may see publications that are not for everybody."
)

Label = Annotated[
    str, typer.Argument(metavar="LABEL", help="The label that publications carry.", show_default=False)
]


def grant(
    label: Label,
    subscriber: SubscriberOption,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let a subscriber see publications that carry a label. It counts for what is matched from now on.

    [dim]Examples[/]
      tidings audience grant board --as ana
      tidings publish merger.json --audience board
    """
    with open_tidings(home, store) as tidings:
        subscriber = resolve_subscriber(tidings.store, subscriber, as_json)
        new = tidings.store.audiences.grant(subscriber, label)
    if as_json:
        output.print_json({"label": label, "subscriber": subscriber, "new": new})
    else:
        done = f"{subscriber} may see it" if new else f"{subscriber} may see it already"
        output.print_line((label, "bold cyan"), done)


def revoke(
    label: Label,
    subscriber: SubscriberOption,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take a label back from a subscriber. What they were told before is withheld from now on.

    [dim]Example[/]
      tidings audience revoke board --as ana
    """
    with open_tidings(home, store) as tidings:
        subscriber = find_subscriber(tidings.store, subscriber, as_json)
        found = tidings.store.audiences.revoke(subscriber, label)
    done, missing = f"{subscriber} may not see it any more", f"{subscriber} was not granted it"
    output.print_removal({"label": label}, found, done, missing, as_json)


def list_grants(
    subscriber: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", help="Only this subscriber's.", show_default=False),
    ] = None,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """List who may see which labels.

    [dim]Example[/]
      tidings audience list
    """
    with open_tidings(home, store) as tidings:
        found = tidings.store.audiences.list(
            subscriber and find_subscriber(tidings.store, subscriber, as_json)
        )
    if as_json:
        for one in found:
            output.print_json(asdict(one))
    elif found:
        rows = [(one.subscriber, one.label, one.since[:10]) for one in found]
        output.print_table(("subscriber", "may see", "since"), rows)
    else:
        output.print_note("no grants: tidings audience grant LABEL --as SUBSCRIBER")


app.command(help=format_help(grant))(grant)
app.command(help=format_help(revoke))(revoke)
app.command("list", help=format_help(list_grants))(list_grants)
