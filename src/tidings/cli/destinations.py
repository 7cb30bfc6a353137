"""`destination ...`: where subscribers want to be told, and what could not be delivered there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
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
    format_help,
    open_tidings,
    resolve_subscriber,
)

if TYPE_CHECKING:
    from tidings.delivery.destinations import Destinations
    from tidings.delivery.sql.destination_store import Destination, Health

app = typer.Typer(
    no_args_is_help=True,
    help="Destinations: notifications go to webhooks, mail, chat and topics of Kafka.",
)

Id = Annotated[str, typer.Argument(metavar="ID", help="The destination's id.", show_default=False)]
Number = Annotated[
    int | None,
    typer.Argument(
        metavar="NUMBER", min=1, callback=check_storable, help="One dead letter.", show_default=False
    ),
]


@contextmanager
def _opened(home: Path, store: str | None) -> Iterator[Destinations]:
    """The destinations of a home, by the rules that its settings say."""
    from tidings.operations.settings_sources import load_settings
    from tidings.service.delivery import build_delivery_policy, open_destinations

    settings = load_settings({"home": home}).settings
    with open_tidings(home, store) as tidings:
        found = open_destinations(tidings.store, build_delivery_policy(settings))
        try:
            yield found
        finally:
            found.close()


def add(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND", help="[cyan]webhook[/], [cyan]apprise[/] or [cyan]kafka[/].", show_default=False
        ),
    ],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="Where it leads.", show_default=False)],
    subscriber: SubscriberOption,
    subscription: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="Only this subscription; all, when nothing is said.", show_default=False
        ),
    ] = None,
    name: Annotated[str, typer.Option(metavar="TEXT", help="What it is called.", show_default=False)] = "",
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Have notifications delivered, from now on, while [cyan]tidings serve[/] runs.

    A webhook gets each as a signed POST, by the secret that is shown here once. Apprise's addresses are mail and chat.
    Targets on this machine and in private networks are refused, unless the setting [cyan]delivery.private_callbacks[/]
    allows them.

    [dim]Examples[/]
      tidings destination add webhook https://example.org/hooks/tidings --as ana
      tidings destination add apprise "mailto://name:password@example.org" --as ana --subscription s-7f3a
      tidings destination add kafka kafka://broker:9092/tidings --as ana
    """
    with _opened(home, store) as destinations:
        whose = resolve_subscriber(destinations.store, subscriber, as_json)
        made = destinations.add(whose, kind, target, subscription, name)
        shown = destinations.shown(made)
    if as_json:
        output.print_json(_record(made, shown) | {"secret": made.secret})
        return
    output.print_line((made.id, "bold cyan"), made.subscriber, made.kind, shown, _of(made))
    if made.secret:
        output.print_line(made.secret)
        output.print_note("the secret is not shown again")


def list_destinations(
    subscriber: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", help="Only this subscriber's.", show_default=False),
    ] = None,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """List destinations with how their deliveries go; secrets are left out.

    [dim]Example[/]
      tidings destination list --as ana
    """
    from tidings.delivery.sql.destination_store import Health

    with _opened(home, store) as destinations:
        whose = subscriber and find_subscriber(destinations.store, subscriber, as_json)
        found = destinations.store.destinations.list(whose)
        health = destinations.store.destinations.health_of([one.id for one in found])
        letters = {one.id: destinations.store.dead_deliveries.count(one.id) for one in found}
        shown = {one.id: destinations.shown(one) for one in found}
    if as_json:
        for one in found:
            known = health.get(one.id, Health())
            output.print_json(_record(one, shown[one.id], known) | {"dead_letters": letters[one.id]})
    elif found:
        rows = [_row(one, shown[one.id], health.get(one.id, Health()), letters[one.id]) for one in found]
        output.print_table(("id", "subscriber", "kind", "target", "of", "state", "delivered", "dead"), rows)
    else:
        output.print_note("no destinations: tidings destination add webhook URL --as NAME")


def remove(
    id: Id, home: HomeOption = DEFAULT_HOME, store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """Forget a destination, and its dead letters.

    [dim]Example[/]
      tidings destination remove d-3c9a71f0
    """
    with _opened(home, store) as destinations:
        gone = destinations.store.destinations.remove(id)
    output.print_removal({"id": id}, gone, "removed", "there is no such destination", as_json)


def test(
    id: Id, home: HomeOption = DEFAULT_HOME, store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """Send a sample to a destination now, and say what came back.

    [dim]Example[/]
      tidings destination test d-3c9a71f0
    """
    with _opened(home, store) as destinations:
        tested = destinations.test(destinations.find(id))
    if as_json:
        output.print_json(
            {"id": id, "taken": tested.taken, "status": tested.status}
            | {"seconds": round(tested.seconds, 3), "problem": tested.problem}
        )
    else:
        how = f"taken in {tested.seconds:.2f} s" if tested.taken else str(tested.problem)
        status = [f"status {tested.status}"] if tested.taken and tested.status else []
        output.print_line((id, "bold cyan" if tested.taken else "bold red"), how, *status)
    if not tested.taken:
        raise typer.Exit(1)


def pause(
    id: Id, home: HomeOption = DEFAULT_HOME, store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """Deliver nothing there until it is resumed. Nothing is lost meanwhile.

    [dim]Example[/]
      tidings destination pause d-3c9a71f0
    """
    with _opened(home, store) as destinations:
        destinations.find(id)
        destinations.store.destinations.pause(id)
    _done(id, "paused", as_json)


def resume(
    id: Id, home: HomeOption = DEFAULT_HOME, store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """Go on with a destination that was paused, or disabled because its receiver answered 410.

    [dim]Example[/]
      tidings destination resume d-3c9a71f0
    """
    with _opened(home, store) as destinations:
        destinations.find(id)
        destinations.store.destinations.resume(id)
    _done(id, "active", as_json)


def rotate(
    id: Id,
    drop: Annotated[
        bool, typer.Option("--drop", help="Make no new secret: end the old one, which still signs.")
    ] = False,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a new secret for a webhook. The old one signs, too, for a day, or until [cyan]--drop[/].

    [dim]Examples[/]
      tidings destination rotate d-3c9a71f0
      tidings destination rotate d-3c9a71f0 --drop
    """
    with _opened(home, store) as destinations:
        if drop:
            destinations.find(id)
            destinations.store.destinations.drop_old_secret(id)
            made = destinations.find(id)
        else:
            made = destinations.rotate(id)
    told = None if drop else made.secret
    if as_json:
        output.print_json({"id": id, "secret": told, "old_secret_until": made.old_until})
    elif drop:
        output.print_line((id, "bold cyan"), "the old secret has ended")
    else:
        output.print_line((id, "bold cyan"), f"the old secret signs, too, until {made.old_until}")
        output.print_line(str(told))
        output.print_note("the secret is not shown again")


def letters(
    id: Id,
    after: Annotated[
        int,
        typer.Option(min=0, callback=check_storable, metavar="NUMBER", help="Only those after this number."),
    ] = 0,
    limit: Annotated[
        int, typer.Option(min=1, callback=check_storable, metavar="COUNT", help="At most so many.")
    ] = 100,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the dead letters of a destination: what it did not take, however often it was tried.

    [dim]Example[/]
      tidings destination letters d-3c9a71f0
    """
    with _opened(home, store) as destinations:
        destinations.find(id)
        found = destinations.store.dead_deliveries.list(id, after, limit)
    names = (
        "number",
        "subscription",
        "first",
        "last",
        "digest",
        "message",
        "attempts",
        "problem",
        "time",
        "due",
    )
    for one in found:
        if as_json:
            output.print_json({name: getattr(one, name) for name in names})
        else:
            which = f"{one.first}" if one.first == one.last else f"{one.first} to {one.last}"
            state = "is tried again" if one.due else f"{one.attempts} attempts"
            output.print_line(
                (f"#{one.number}", "bold cyan"), f"{one.subscription} {which}", state, one.problem
            )
    if not found and not as_json:
        output.print_note("no dead letters")


def replay(
    id: Id,
    number: Number = None,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Try dead letters again: one, or all of a destination. They are delivered while [cyan]tidings serve[/] runs.

    [dim]Examples[/]
      tidings destination replay d-3c9a71f0
      tidings destination replay d-3c9a71f0 17
    """
    from tidings.core.text import plural

    with _opened(home, store) as destinations:
        destinations.find(id)
        count = destinations.store.dead_deliveries.replay(id, number)
    if as_json:
        output.print_json({"id": id, "replayed": count})
    elif number is None or count:
        output.print_line((id, "bold cyan"), f"{plural(count, 'dead letter')} to be tried again")
    else:
        hint = f"there is no such dead letter that waits; tidings destination letters {id}"
        output.print_line((f"#{number}", "bold red"), hint, stderr=True)
    if number is not None and not count:
        raise typer.Exit(output.EXIT_WITH_REJECTS)


def _done(id: str, state: str, as_json: bool) -> None:
    if as_json:
        output.print_json({"id": id, "state": state})
    else:
        output.print_line((id, "bold cyan"), state)


def _of(one: Destination) -> str:
    return f"of {one.subscription}" if one.subscription else "of all subscriptions"


def _row(one: Destination, shown: str, health: Health, letters: int) -> tuple[str, ...]:
    state = f"{one.state}: {one.reason}" if one.reason else one.state
    if one.state == "active" and health.consecutive_failures:
        state = f"failing: {health.last_error}"
    of = one.subscription or "all"
    return one.id, one.subscriber, one.kind, shown, of, state, str(health.delivered), str(letters)


def _record(one: Destination, shown: str, health: Health | None = None) -> dict[str, Any]:
    names = ("id", "subscriber", "subscription", "kind", "name", "state", "reason", "made")
    record = {name: getattr(one, name) for name in names} | {"target": shown}
    fields = ("delivered", "last_success", "consecutive_failures", "last_error")
    return record | ({name: getattr(health, name) for name in fields} if health else {})


app.command(help=format_help(add))(add)
app.command("list", help=format_help(list_destinations))(list_destinations)
for command in (remove, test, pause, resume, rotate, letters, replay):
    app.command(help=format_help(command))(command)
