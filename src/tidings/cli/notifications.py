"""`notifications`: what a subscriber was told."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.cli import output
from tidings.cli.options import (
    DEFAULT_HOME,
    HomeOption,
    JsonOption,
    StoreOption,
    SubscriberOption,
    check_storable,
    find_subscriber,
    open_tidings,
    resolve_subscriber,
)
from tidings.core.text import plural
from tidings.errors import InputError
from tidings.model import Notification

if TYPE_CHECKING:
    from tidings.delivery.sql.destination_store import QuietHours
    from tidings.service.tidings import Tidings


PAGE = 1_000
RUNNING = "is `tidings run` or `tidings serve` running?"


def notifications(
    subscriber: SubscriberOption,
    after: Annotated[
        int, typer.Option(min=0, callback=check_storable, metavar="N", help="Only those behind number N.")
    ] = 0,
    limit: Annotated[
        int | None, typer.Option(min=1, callback=check_storable, metavar="N", help="At most N of them.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for more until Ctrl-C.")] = False,
    unread: Annotated[bool, typer.Option("--unread", help="Only those that are not acknowledged.")] = False,
    ack: Annotated[bool, typer.Option("--ack", help="Acknowledge what is shown.")] = False,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
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
        subscriber = find_subscriber(tidings.store, subscriber, quiet=as_json)
        after = tidings.store.acknowledgements.standing(subscriber).acknowledged if unread else after
        ruled = tidings.store.metadata.has_rules(subscriber)
        known = ruled or bool(tidings.subscriptions(subscriber))
        last = tidings.store.notifications.last_sequence(subscriber)
        _refuse_ahead(after, last)
        if follow and not (known or last) and not as_json:
            output.print_note(f"no subscriptions for {subscriber} yet; waiting")
        found = (
            tidings.follow(subscriber, after)
            if follow
            else _iterate_notifications(tidings, subscriber, after)
        )
        told, shown = 0, 0
        for one in islice(found, limit):
            output.print_notification(one, as_json)
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
        output.print_note(
            f"held for later: {plural(waits.count, 'notification')}, the first until {waits.due}"
        )
    elif not told and last:
        output.print_note(f"nothing new for {subscriber}; the last number is {last}")
    elif not told:
        output.print_note(f"nothing for {subscriber} yet; {_why_nothing(known, ruled, objects)}")


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


def _iterate_notifications(tidings: Tidings, subscriber: str, after: int) -> Iterator[Notification]:
    """Page by page, so that a long sequence needs no memory."""
    while page := tidings.notifications(subscriber, after, PAGE):
        yield from page
        after = page[-1].sequence


# `quiet`: when a subscriber wants to be left alone.


def quiet(
    subscriber: SubscriberOption,
    hours: Annotated[
        str | None,
        typer.Argument(
            metavar="FROM-TO",
            help="[cyan]22:00-07:00[/]; without it, those of now are shown.",
            show_default=False,
        ),
    ] = None,
    zone: Annotated[
        str | None,
        typer.Option(
            metavar="ZONE", help="Where the subscriber lives: [cyan]Europe/Berlin[/].", show_default=False
        ),
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="No quiet hours any more.")] = False,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set the quiet hours of a subscriber: what comes then is delivered together when they end.

    Feeds, pages and streams of notifications are not affected: whoever looks sees what is there.

    [dim]Examples[/]
      tidings quiet --as ana 22:00-07:00 --zone Europe/Berlin
      tidings quiet --as ana
      tidings quiet --as ana --off
    """
    from tidings.delivery.quiet_hours import parse_quiet_hours

    with open_tidings(home, store) as tidings:
        kept = tidings.store.preferences
        named = resolve_subscriber if hours is not None or off else find_subscriber
        subscriber = named(tidings.store, subscriber, as_json)
        if hours is not None or off:
            wanted = None if off else parse_quiet_hours(subscriber, *_times(hours), _named(zone))
            kept.set_quiet(subscriber, wanted)
            tidings.store.delivery_cursors.rouse(subscriber)
        found = kept.quiet(subscriber)
    _print_quiet_hours(subscriber, found, as_json)


def _times(hours: str | None) -> tuple[str, str]:
    start, dash, end = (hours or "").partition("-")
    if not dash:
        raise InputError("these are no hours", received=repr(hours), accepted="FROM-TO, 22:00-07:00 say")
    return start, end


def _named(zone: str | None) -> str:
    if zone is None:
        raise InputError("in which time zone?", hint="--zone Europe/Berlin")
    return zone


def _print_quiet_hours(subscriber: str, found: QuietHours | None, as_json: bool) -> None:
    from tidings.delivery.quiet_hours import format_quiet_hours

    if as_json:
        record: dict[str, Any] = {"subscriber": subscriber, "from": None, "to": None, "zone": None}
        if found:
            times = {"from": format_quiet_hours(found.from_minute), "to": format_quiet_hours(found.to_minute)}
            record |= times | {"zone": found.zone}
        output.print_json(record)
    elif found:
        times_shown = (
            f"quiet from {format_quiet_hours(found.from_minute)} to {format_quiet_hours(found.to_minute)}"
        )
        output.print_line((subscriber, "bold cyan"), f"{times_shown} in {found.zone}")
    else:
        output.print_note("no quiet hours")
