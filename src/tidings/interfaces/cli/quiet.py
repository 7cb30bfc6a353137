"""`quiet`: when a subscriber wants to be left alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.errors import InputError
from tidings.interfaces.cli import output
from tidings.interfaces.cli.options import DEFAULT_HOME, AsJson, Home, Store, Subscriber, open_tidings
from tidings.interfaces.cli.subscriber_names import found_as, resolved

if TYPE_CHECKING:
    from tidings.store import QuietHours


def quiet(
    subscriber: Subscriber,
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
    home: Home = DEFAULT_HOME,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Set the quiet hours of a subscriber: what comes then is delivered together when they end.

    Feeds, pages and streams of notifications are not affected: whoever looks sees what is there.

    [dim]Examples[/]
      tidings quiet --as ana 22:00-07:00 --zone Europe/Berlin
      tidings quiet --as ana
      tidings quiet --as ana --off
    """
    from tidings.delivery.quiet import quiet_hours

    with open_tidings(home, store) as tidings:
        kept = tidings.store.preferences
        named = resolved if hours is not None or off else found_as
        subscriber = named(tidings.store, subscriber, as_json)
        if hours is not None or off:
            wanted = None if off else quiet_hours(subscriber, *_times(hours), _named(zone))
            kept.set_quiet(subscriber, wanted)
            tidings.store.lanes.rouse(subscriber)
        found = kept.quiet(subscriber)
    _show(subscriber, found, as_json)


def _times(hours: str | None) -> tuple[str, str]:
    start, dash, end = (hours or "").partition("-")
    if not dash:
        raise InputError("these are no hours", received=repr(hours), accepted="FROM-TO, 22:00-07:00 say")
    return start, end


def _named(zone: str | None) -> str:
    if zone is None:
        raise InputError("in which time zone?", hint="--zone Europe/Berlin")
    return zone


def _show(subscriber: str, found: QuietHours | None, as_json: bool) -> None:
    from tidings.delivery.quiet import show

    if as_json:
        record: dict[str, Any] = {"subscriber": subscriber, "from": None, "to": None, "zone": None}
        if found:
            times = {"from": show(found.from_minute), "to": show(found.to_minute)}
            record |= times | {"zone": found.zone}
        output.json_line(record)
    elif found:
        times_shown = f"quiet from {show(found.from_minute)} to {show(found.to_minute)}"
        output.line((subscriber, "bold cyan"), f"{times_shown} in {found.zone}")
    else:
        output.note("no quiet hours")
