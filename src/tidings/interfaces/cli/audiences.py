"""`audience grant`, `audience revoke` and `audience list`: who may see publications that carry a label."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from tidings.interfaces.cli import output
from tidings.interfaces.cli.options import DEFAULT_HOME, AsJson, Home, Store, Subscriber, open_tidings, prose
from tidings.interfaces.cli.subscriber_names import found_as, resolved

app = typer.Typer(
    no_args_is_help=True, help="Audiences: who may see publications that are not for everybody."
)

Label = Annotated[
    str, typer.Argument(metavar="LABEL", help="The label that publications carry.", show_default=False)
]


def grant(
    label: Label,
    subscriber: Subscriber,
    home: Home = DEFAULT_HOME,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Let a subscriber see publications that carry a label. It counts for what is matched from now on.

    [dim]Examples[/]
      tidings audience grant board --as ana
      tidings publish merger.json --audience board
    """
    with open_tidings(home, store) as tidings:
        subscriber = resolved(tidings.store, subscriber, as_json)
        new = tidings.store.audiences.grant(subscriber, label)
    if as_json:
        output.json_line({"label": label, "subscriber": subscriber, "new": new})
    else:
        done = f"{subscriber} may see it" if new else f"{subscriber} may see it already"
        output.line((label, "bold cyan"), done)


def revoke(
    label: Label,
    subscriber: Subscriber,
    home: Home = DEFAULT_HOME,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Take a label back from a subscriber. What they were told before is withheld from now on.

    [dim]Example[/]
      tidings audience revoke board --as ana
    """
    with open_tidings(home, store) as tidings:
        subscriber = found_as(tidings.store, subscriber, as_json)
        found = tidings.store.audiences.revoke(subscriber, label)
    done, missing = f"{subscriber} may not see it any more", f"{subscriber} was not granted it"
    output.removed({"label": label}, found, done, missing, as_json)


def list_grants(
    subscriber: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", help="Only this subscriber's.", show_default=False),
    ] = None,
    home: Home = DEFAULT_HOME,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """List who may see which labels.

    [dim]Example[/]
      tidings audience list
    """
    with open_tidings(home, store) as tidings:
        found = tidings.store.audiences.list(subscriber and found_as(tidings.store, subscriber, as_json))
    if as_json:
        for one in found:
            output.json_line(asdict(one))
    elif found:
        rows = [(one.subscriber, one.label, one.since[:10]) for one in found]
        output.table(("subscriber", "may see", "since"), rows)
    else:
        output.note("no grants: tidings audience grant LABEL --as SUBSCRIBER")


app.command(help=prose(grant))(grant)
app.command(help=prose(revoke))(revoke)
app.command("list", help=prose(list_grants))(list_grants)
