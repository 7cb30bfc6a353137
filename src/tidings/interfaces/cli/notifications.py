"""`notifications`: what a subscriber was told."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.counts import plural
from tidings.errors import InputError
from tidings.interfaces.cli import output
from tidings.interfaces.cli.options import (
    DEFAULT_HOME,
    AsJson,
    Home,
    Store,
    Subscriber,
    countable,
    open_tidings,
)
from tidings.interfaces.cli.subscriber_names import found_as
from tidings.model import Notification

if TYPE_CHECKING:
    from tidings.service import Tidings

PAGE = 1_000
RUNNING = "is `tidings run` or `tidings serve` running?"


def notifications(
    subscriber: Subscriber,
    after: Annotated[
        int, typer.Option(min=0, callback=countable, metavar="N", help="Only those behind number N.")
    ] = 0,
    limit: Annotated[
        int | None, typer.Option(min=1, callback=countable, metavar="N", help="At most N of them.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for more until Ctrl-C.")] = False,
    unread: Annotated[bool, typer.Option("--unread", help="Only those that are not acknowledged.")] = False,
    ack: Annotated[bool, typer.Option("--ack", help="Acknowledge what is shown.")] = False,
    home: Home = DEFAULT_HOME,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Show a subscriber's notifications: number, subscription, publication, and why.

    Numbers have no gaps: whoever has seen number 41 continues with [cyan]--after 41[/]. A rule over metadata stands in
    the place of a subscription, a resource in that of a publication: it entered, changed or left. Of objects it is the
    name of their database, and the object that changed.

    [dim]Examples[/]
      tidings notifications --as ana
      tidings notifications --as Student:3
      tidings notifications --as ana --after 41 --follow --json
      tidings notifications --as ana --unread --ack
    """
    if unread and after:
        raise InputError("two places to begin", where="--unread", received=f"--after {after}")
    with open_tidings(home, store) as tidings:
        subscriber = found_as(tidings.store, subscriber, quiet=as_json)
        after = tidings.store.acknowledgements.standing(subscriber).acknowledged if unread else after
        ruled = tidings.store.metadata.has_rules(subscriber)
        known = ruled or bool(tidings.subscriptions(subscriber))
        last = tidings.store.notifications.last_sequence(subscriber)
        _refuse_ahead(after, last)
        if follow and not (known or last) and not as_json:
            output.note(f"no subscriptions for {subscriber} yet; waiting")
        found = tidings.follow(subscriber, after) if follow else _all(tidings, subscriber, after)
        told, shown = 0, 0
        for one in islice(found, limit):
            output.notification(one, as_json)
            told, shown = told + 1, one.sequence
            if ack and follow:
                tidings.store.acknowledgements.acknowledge(subscriber, shown)
        if ack and not follow:
            tidings.store.acknowledgements.acknowledge(subscriber, shown)
        waits = tidings.held(subscriber)
        objects = not known and bool(tidings.store.object_sources.load())
    if as_json:
        return
    if waits.count:
        output.note(f"held for later: {plural(waits.count, 'notification')}, the first until {waits.due}")
    elif not told and last:
        output.note(f"nothing new for {subscriber}; the last number is {last}")
    elif not told:
        output.note(f"nothing for {subscriber} yet; {_why_nothing(known, ruled, objects)}")


def _refuse_ahead(after: int, last: int) -> None:
    """As over HTTP: such a number is a slip, or of another home, or from before a backup was restored."""
    if after > last:
        accepted, hint = f"0 to {last}" if last else "0", "what comes up to it would be passed over"
        raise InputError(
            "there is no such number", where="--after", received=str(after), accepted=accepted, hint=hint
        )


def _why_nothing(known: bool, ruled: bool, objects: bool) -> str:
    if objects:
        return "no change that was told has concerned that name: tidings model tell"
    if not known:
        return "there are no subscriptions for that name"
    return "nothing has entered the results of rules" if ruled else RUNNING


def _all(tidings: Tidings, subscriber: str, after: int) -> Iterator[Notification]:
    """Page by page, so that a long sequence needs no memory."""
    while page := tidings.notifications(subscriber, after, PAGE):
        yield from page
        after = page[-1].sequence
