"""`destination ...`: where notifications are delivered, and those that could not be delivered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.cli import output
from tidings.cli.command import make_group
from tidings.cli.options import (
    AfterOption,
    Home,
    SubscriberFilter,
    SubscriberOption,
    check_storable,
    find_subscriber,
    resolve_subscriber,
)
from tidings.cli.output import Cell, Output, View, exit_if_rejects, select_fields
from tidings.core.text import plural

if TYPE_CHECKING:
    from tidings.delivery.destinations import Destinations
    from tidings.delivery.sql.dead_deliveries import DeadDelivery
    from tidings.delivery.sql.destination_store import Destination, Health

DestinationId = Annotated[str, typer.Argument(metavar="ID", help="The id of the destination.")]


@contextmanager
def _open_destinations(home: Home) -> Iterator[Destinations]:
    """Open the destinations of a home folder, with the delivery policy of its settings."""
    from tidings.operations.settings_sources import load_settings
    from tidings.service.delivery import build_delivery_policy, open_destinations

    settings = load_settings({"home": home.home}).settings
    with home.open() as tidings:
        destinations = open_destinations(tidings.store, build_delivery_policy(settings))
        try:
            yield destinations
        finally:
            destinations.close()


def add(
    home: Home,
    out: Output,
    kind: Annotated[str, typer.Argument(metavar="KIND", help="`webhook`, `apprise` or `kafka`.")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="The address to deliver to.")],
    subscriber: SubscriberOption,
    subscription: Annotated[
        str | None, typer.Option(metavar="ID", help="Only this subscription; by default all of them.")
    ] = None,
    name: Annotated[str, typer.Option(metavar="TEXT", help="A name for it.", show_default=False)] = "",
) -> None:
    """Deliver notifications to a target from now on, while `tidings serve` runs.

    Examples:
      tidings destination add webhook https://example.org/hooks/tidings --as ana
      tidings destination add apprise "mailto://name:password@example.org" --as ana --subscription s-7f3a
      tidings destination add kafka kafka://broker:9092/tidings --as ana

    A webhook receives each notification as a POST, signed with a secret that is printed once. Addresses of Apprise are
    mail and chat. Targets on this machine and in private networks are refused, unless the setting
    `delivery.private_callbacks` allows them.
    """
    with _open_destinations(home) as destinations:
        owner = resolve_subscriber(destinations.store, subscriber, out)
        added = destinations.add(owner, kind, target, subscription, name)
        shown = destinations.mask_target(added)
    scope = f"of {added.subscription}" if added.subscription else "of all subscriptions"
    record = _to_record(added, shown) | {"secret": added.secret}
    out.print_record(record, (added.id, "bold cyan"), added.subscriber, added.kind, shown, scope)
    if added.secret:
        _print_secret(added.secret, out)


def _print_secret(secret: str | None, out: Output) -> None:
    if not out.as_json:
        output.print_line(str(secret))
        output.print_note("the secret is not shown again")


def _to_record(destination: Destination, target: str) -> dict[str, Any]:
    names = ("id", "subscriber", "subscription", "kind", "name", "state", "reason", "made")
    return select_fields(destination, *names) | {"target": target}


@dataclass(frozen=True, slots=True)
class ListedDestination:
    """A destination with the target that may be shown, its deliveries and the number of its dead letters."""

    destination: Destination
    target: str
    health: Health
    dead_letters: int

    def format_state(self) -> str:
        """Return the state, with the reason or the last error."""
        destination, health = self.destination, self.health
        if destination.state == "active" and health.consecutive_failures:
            return f"failing: {health.last_error}"
        return f"{destination.state}: {destination.reason}" if destination.reason else destination.state

    def record(self) -> dict[str, Any]:
        """Return the fields without secrets."""
        health = select_fields(self.health, "delivered", "last_success", "consecutive_failures", "last_error")
        return _to_record(self.destination, self.target) | health | {"dead_letters": self.dead_letters}


DESTINATIONS: View[ListedDestination] = View(
    "no destinations: tidings destination add webhook URL --as NAME",
    columns=(
        ("id", lambda listed: listed.destination.id),
        ("subscriber", lambda listed: listed.destination.subscriber),
        ("kind", lambda listed: listed.destination.kind),
        ("target", "target"),
        ("of", lambda listed: listed.destination.subscription or "all"),
        ("state", ListedDestination.format_state),
        ("delivered", lambda listed: str(listed.health.delivered)),
        ("dead", "dead_letters"),
    ),
    record=ListedDestination.record,
)


def list_destinations(home: Home, out: Output, subscriber: SubscriberFilter = None) -> None:
    """List destinations with the state of their deliveries, without secrets.

    Example:
      tidings destination list --as ana
    """
    from tidings.delivery.sql.destination_store import Health

    with _open_destinations(home) as destinations:
        store = destinations.store
        stored = store.destinations.list(subscriber and find_subscriber(store, subscriber, out))
        health = store.destinations.health_of([destination.id for destination in stored])
        listed = [
            ListedDestination(
                destination,
                destinations.mask_target(destination),
                health.get(destination.id, Health()),
                store.dead_deliveries.count(destination.id),
            )
            for destination in stored
        ]
    out.print_records(listed, DESTINATIONS)


def remove(home: Home, out: Output, id: DestinationId) -> None:
    """Remove a destination and its dead letters.

    Example:
      tidings destination remove d-3c9a71f0
    """
    with _open_destinations(home) as destinations:
        removed = destinations.store.destinations.remove(id)
    out.print_removal({"id": id}, removed, "removed", "there is no such destination")


def test(home: Home, out: Output, id: DestinationId) -> None:
    """Send a sample to a destination now, and print the response.

    Example:
      tidings destination test d-3c9a71f0
    """
    with _open_destinations(home) as destinations:
        tested = destinations.test(destinations.find(id))
    outcome = f"accepted in {tested.seconds:.2f} s" if tested.taken else str(tested.problem)
    status = [f"status {tested.status}"] if tested.taken and tested.status else []
    out.print_record(
        {"id": id, "taken": tested.taken, "status": tested.status}
        | {"seconds": round(tested.seconds, 3), "problem": tested.problem},
        (id, "bold cyan" if tested.taken else "bold red"),
        outcome,
        *status,
    )
    if not tested.taken:
        raise typer.Exit(1)


def pause(home: Home, out: Output, id: DestinationId) -> None:
    """Stop delivering to a destination until you resume it. Nothing is lost meanwhile.

    Example:
      tidings destination pause d-3c9a71f0
    """
    with _open_destinations(home) as destinations:
        destinations.find(id)
        destinations.store.destinations.pause(id)
    out.print_record({"id": id, "state": "paused"}, (id, "bold cyan"), "paused")


def resume(home: Home, out: Output, id: DestinationId) -> None:
    """Resume a destination that was paused, or that was disabled because its receiver answered 410.

    Example:
      tidings destination resume d-3c9a71f0
    """
    with _open_destinations(home) as destinations:
        destinations.find(id)
        destinations.store.destinations.resume(id)
    out.print_record({"id": id, "state": "active"}, (id, "bold cyan"), "active")


def rotate(
    home: Home,
    out: Output,
    id: DestinationId,
    drop: Annotated[
        bool, typer.Option("--drop", help="Create no new secret, but end the old one, which still signs.")
    ] = False,
) -> None:
    """Create a new secret for a webhook. The old one signs as well for a day, or until `--drop`.

    Examples:
      tidings destination rotate d-3c9a71f0
      tidings destination rotate d-3c9a71f0 --drop
    """
    with _open_destinations(home) as destinations:
        if drop:
            destinations.find(id)
            destinations.store.destinations.drop_old_secret(id)
        destination = destinations.find(id) if drop else destinations.rotate(id)
    secret, until = None if drop else destination.secret, destination.old_until
    message = "the old secret has ended" if drop else f"the old secret signs as well until {until}"
    out.print_record({"id": id, "secret": secret, "old_secret_until": until}, (id, "bold cyan"), message)
    if not drop:
        _print_secret(secret, out)


def _list_letter_cells(letter: DeadDelivery) -> Iterator[Cell]:
    yield f"#{letter.number}", "bold cyan"
    numbers = f"{letter.first}" if letter.first == letter.last else f"{letter.first} to {letter.last}"
    yield f"{letter.subscription} {numbers}"
    yield "is tried again" if letter.due else f"{letter.attempts} attempts"
    yield letter.problem


LETTERS: View[DeadDelivery] = View(
    "no dead letters",
    line=_list_letter_cells,
    record=lambda letter: select_fields(
        letter,
        *("number", "subscription", "first", "last", "digest"),
        *("message", "attempts", "problem", "time", "due"),
    ),
)


def list_dead_letters(
    home: Home,
    out: Output,
    id: DestinationId,
    after: AfterOption = 0,
    limit: Annotated[
        int, typer.Option(min=1, callback=check_storable, metavar="N", help="At most N of them.")
    ] = 100,
) -> None:
    """List the dead letters of a destination: deliveries that failed in all attempts.

    Example:
      tidings destination dead-letters d-3c9a71f0
    """
    with _open_destinations(home) as destinations:
        destinations.find(id)
        dead = destinations.store.dead_deliveries.list(id, after, limit)
    out.print_records(dead, LETTERS)


def replay(
    home: Home,
    out: Output,
    id: DestinationId,
    number: Annotated[
        int | None,
        typer.Argument(metavar="NUMBER", min=1, callback=check_storable, help="One dead letter."),
    ] = None,
) -> None:
    """Retry one dead letter of a destination, or all of them, while `tidings serve` runs.

    Examples:
      tidings destination replay d-3c9a71f0
      tidings destination replay d-3c9a71f0 17
    """
    with _open_destinations(home) as destinations:
        destinations.find(id)
        count = destinations.store.dead_deliveries.replay(id, number)
    missing = number is not None and not count
    if missing and not out.as_json:
        hint = f"there is no such dead letter that waits; tidings destination dead-letters {id}"
        output.print_line((f"#{number}", "bold red"), hint, stderr=True)
    else:
        message = f"{plural(count, 'dead letter')} to be retried"
        out.print_record({"id": id, "replayed": count}, (id, "bold cyan"), message)
    exit_if_rejects(missing)


app = make_group(
    "Destinations: webhooks, mail, chat and Kafka topics to which notifications are delivered.",
    {
        "add": add,
        "list": list_destinations,
        "remove": remove,
        "test": test,
        "pause": pause,
        "resume": resume,
        "rotate": rotate,
        "dead-letters": list_dead_letters,
        "replay": replay,
    },
)
