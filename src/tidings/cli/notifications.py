"""`notifications` and `quiet`: the notifications of a subscriber, and the quiet hours."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.cli import output
from tidings.cli.options import (
    AfterOption,
    FollowFlag,
    Home,
    LimitOption,
    SubscriberOption,
    find_subscriber,
    resolve_subscriber,
)
from tidings.cli.output import Cell, Output
from tidings.core.text import plural
from tidings.errors import InputError
from tidings.model import Notification
from tidings.notification_text import (
    escape_line,
    find_change,
    format_bindings,
    format_change,
    format_limits,
    format_reasons,
)

if TYPE_CHECKING:
    from tidings.delivery.sql.destination_store import QuietHours
    from tidings.service.tidings import Tidings


PAGE = 1_000
RUNNING = "is `tidings run` or `tidings serve` running?"


def notifications(
    home: Home,
    out: Output,
    subscriber: SubscriberOption,
    after: AfterOption = 0,
    limit: LimitOption = None,
    follow: FollowFlag = False,
    unread: Annotated[bool, typer.Option("--unread", help="Only those that are not acknowledged.")] = False,
    ack: Annotated[bool, typer.Option("--ack", help="Acknowledge the printed notifications.")] = False,
) -> None:
    """Print the notifications of a subscriber: number, subscription, publication and reason.

    Examples:
      tidings notifications --as ana
      tidings notifications --as Student:3
      tidings notifications --as ana --after 41 --follow --json
      tidings notifications --as ana --unread --ack

    Numbers have no gaps: after number 41, continue with `--after 41`. For metadata, a rule takes the place of the
    subscription and a resource that of the publication: it entered, changed or left the results. For objects, it is
    the name of the database and the object that changed.
    """
    if unread and after:
        raise InputError(
            "--unread and --after exclude each other", where="--unread", received=f"--after {after}"
        )
    with home.open() as tidings:
        subscriber = find_subscriber(tidings.store, subscriber, out)
        after = tidings.store.acknowledgements.cursor(subscriber).acknowledged if unread else after
        has_rules = tidings.store.metadata.has_rules(subscriber)
        is_known = has_rules or bool(tidings.subscriptions(subscriber))
        last = tidings.store.notifications.last_sequence(subscriber)
        _check_not_ahead(after, last)
        if follow and not (is_known or last):
            out.print_note(f"no subscriptions for {subscriber} yet; waiting")
        source = (
            tidings.follow(subscriber, after)
            if follow
            else _iterate_notifications(tidings, subscriber, after)
        )
        shown = 0
        for notification in islice(source, limit):
            _print_notification(notification, out)
            shown = notification.sequence
            if ack and follow:
                tidings.store.acknowledgements.acknowledge(subscriber, shown)
        if ack and not follow:
            tidings.store.acknowledgements.acknowledge(subscriber, shown)
        deferred = tidings.deferred(subscriber)
        has_sources = not is_known and bool(tidings.store.object_sources.load())
    if deferred.count:
        out.print_note(f"deferred: {plural(deferred.count, 'notification')}, the first until {deferred.due}")
    elif not shown and last:
        out.print_note(f"nothing new for {subscriber}; the last number is {last}")
    elif not shown:
        out.print_note(f"nothing for {subscriber} yet; {_explain_none(is_known, has_rules, has_sources)}")


def _check_not_ahead(after: int, last: int) -> None:
    """Refuse a number that does not exist yet, as the API does: it is mistyped, or of another home or backup."""
    if after > last:
        accepted = f"0 to {last}" if last else "0"
        hint = "the notifications up to this number would be skipped"
        raise InputError(
            "there is no such number", where="--after", received=str(after), accepted=accepted, hint=hint
        )


def _explain_none(is_known: bool, has_rules: bool, has_sources: bool) -> str:
    if has_sources:
        return "no reported change concerns this subscriber: tidings model notify"
    if not is_known:
        return "there are no subscriptions for that name"
    return "no resource has entered the results of the rules" if has_rules else RUNNING


def _iterate_notifications(tidings: Tidings, subscriber: str, after: int) -> Iterator[Notification]:
    """Read page by page: a long sequence need not fit into memory."""
    while page := tidings.notifications(subscriber, after, PAGE):
        yield from page
        after = page[-1].sequence


def _print_notification(notification: Notification, out: Output) -> None:
    if out.as_json:
        output.print_json(_to_record(notification))
    else:
        output.print_line(*_list_cells(notification))


def _list_cells(notification: Notification) -> Iterator[Cell]:
    yield f"#{notification.sequence}", "bold cyan"
    yield notification.subscription, "dim"
    if notification.publication:
        yield notification.publication, "dim"
    yield from (
        (text, "green")
        for text in (format_bindings(notification.bindings), format_change(notification))
        if text
    )
    yield _format_reason(notification)
    if limits := format_limits(notification):
        yield limits, "yellow"


def _format_reason(notification: Notification) -> str:
    """Return why; for rules with the change of the result. The change of an object precedes its reasons."""
    reasons = format_reasons(notification.because)
    if find_change(notification) is not None:
        return escape_line(reasons)
    if notification.kind == "matched":
        return reasons
    return f"{notification.kind}: {reasons}" if reasons else notification.kind


def _to_record(notification: Notification) -> dict[str, Any]:
    names = ("id", "subscriber", "sequence", "kind", "subscription", "publication", "time")
    reasons = [output.select_fields(reason, "predicate", "value", "at") for reason in notification.because]
    record = output.select_fields(notification, *names)
    return record | {"because": reasons, "bindings": notification.bindings}


def quiet(
    home: Home,
    out: Output,
    subscriber: SubscriberOption,
    hours: Annotated[
        str | None,
        typer.Argument(metavar="FROM-TO", help="`22:00-07:00`; without it, the present ones are printed."),
    ] = None,
    zone: Annotated[
        str | None, typer.Option(metavar="ZONE", help="The subscriber's time zone: `Europe/Berlin`.")
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="Remove the quiet hours.")] = False,
) -> None:
    """Set the quiet hours of a subscriber: notifications of that time are delivered together at its end.

    Examples:
      tidings quiet --as ana 22:00-07:00 --zone Europe/Berlin
      tidings quiet --as ana
      tidings quiet --as ana --off

    Quiet hours affect deliveries only; feeds, pages and streams show notifications at any time.
    """
    from tidings.delivery.quiet_hours import parse_quiet_hours

    changes = hours is not None or off
    with home.open() as tidings:
        subscriber = (resolve_subscriber if changes else find_subscriber)(tidings.store, subscriber, out)
        if changes:
            parsed = None if off else parse_quiet_hours(subscriber, *_split_hours(hours), _require_zone(zone))
            tidings.store.preferences.set_quiet(subscriber, parsed)
            tidings.store.delivery_cursors.wake_subscriber(subscriber)
        quiet_hours = tidings.store.preferences.read_quiet_hours(subscriber)
    _print_quiet_hours(subscriber, quiet_hours, out)


def _split_hours(hours: str | None) -> tuple[str, str]:
    start, dash, end = (hours or "").partition("-")
    if not dash:
        accepted = "FROM-TO, for example 22:00-07:00"
        raise InputError("these are not hours", received=repr(hours), accepted=accepted)
    return start, end


def _require_zone(zone: str | None) -> str:
    if zone is None:
        raise InputError("the time zone is missing", hint="--zone Europe/Berlin")
    return zone


def _print_quiet_hours(subscriber: str, hours: QuietHours | None, out: Output) -> None:
    from tidings.delivery.quiet_hours import format_quiet_hours

    if hours is None:
        if out.as_json:
            output.print_json({"subscriber": subscriber, "from": None, "to": None, "zone": None})
        out.print_note("no quiet hours")
        return
    start, end = format_quiet_hours(hours.from_minute), format_quiet_hours(hours.to_minute)
    out.print_record(
        {"subscriber": subscriber, "from": start, "to": end, "zone": hours.zone},
        (subscriber, "bold cyan"),
        f"quiet from {start} to {end} in {hours.zone}",
    )
