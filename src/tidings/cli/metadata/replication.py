"""`provider follow`, `provider lead` and `provider status`: several providers with the same metadata."""

from __future__ import annotations

import signal
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.cli import output
from tidings.cli.options import DEFAULT_HOME, HomeOption, JsonOption, StoreOption, open_tidings
from tidings.core.text import plural
from tidings.errors import InputError

if TYPE_CHECKING:
    from types import FrameType

    from tidings.metadata.replication.log_follower import FollowWorker
    from tidings.store.store import Store as Stored

INTERRUPTED = 130

FollowOption = Annotated[
    str | None,
    typer.Option(
        "--follow",
        envvar="TIDINGS_FOLLOW",
        metavar="URL",
        help="Follow the provider at an address: have the same metadata, and hand registrations on to it.",
        show_default=False,
    ),
]
LogOption = Annotated[
    str | None,
    typer.Option(
        "--log",
        envvar="TIDINGS_LOG",
        metavar="URL",
        help="A store or a Kafka topic that several providers share as their log: any takes registrations.",
        show_default=False,
    ),
]


@contextmanager
def follow_in_background(
    store: Stored, leader: str | None, shared: str | None, own: Collection[str] = ()
) -> Iterator[FollowWorker | None]:
    """Follow what is named, or what was followed before, while something else is done; nothing if there is nothing.

    `own` are the addresses at which this provider will be served: they are not followed.
    """
    from tidings.metadata.provider.provider import Provider
    from tidings.metadata.replication.log_follower import FollowWorker, check_not_own_address
    from tidings.metadata.replication.routing import open_log

    provider = Provider(store)
    log = open_log(store, provider, leader, shared)
    if log is None:
        yield None
        return
    check_not_own_address(log, own)
    with FollowWorker(store, provider, log) as loop:
        yield loop


def follow(
    url: Annotated[
        str | None,
        typer.Argument(
            metavar="URL",
            help="The provider to follow; without it, the one that was followed before.",
            show_default=False,
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Apply what there is now, and end; otherwise until Ctrl-C.")
    ] = False,
    log: LogOption = None,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Follow another provider: have the same metadata as that one, by applying its log in order.

    What was missed is caught up with, and a new provider begins with a snapshot. From now on, documents are not
    registered here but there: [cyan]tidings serve[/] follows as well, and hands registrations on. Rules stay this
    provider's own.

    [dim]Examples[/]
      tidings provider follow http://leader.example.org:8080
      tidings provider follow http://leader.example.org:8080 --once
    """
    with open_tidings(home, store) as tidings:
        if once:
            _catch_up(tidings.store, url, log, as_json)
            return
        _refuse_circle(tidings.store, url)
        with follow_in_background(tidings.store, url, log) as loop:
            by = _until_signal(_resolve_leader(loop), as_json)
    if by == signal.SIGINT:
        raise typer.Exit(INTERRUPTED)


def _refuse_circle(store: Stored, url: str | None) -> None:
    """At once, and not in a line about what cannot be followed now: by waiting nothing would change."""
    from tidings.metadata.replication.log_follower import check_acyclic_following
    from tidings.metadata.replication.peer import Peer, Unreachable

    if url is not None:
        with Peer(url) as peer, suppress(Unreachable):  # who is away for now is followed later
            check_acyclic_following(store.metadata.identity(), peer)


def _catch_up(store: Stored, url: str | None, shared: str | None, as_json: bool) -> None:
    from tidings.metadata.provider.provider import Provider
    from tidings.metadata.replication.log_follower import LogFollower
    from tidings.metadata.replication.routing import open_log

    provider = Provider(store)
    log = open_log(store, provider, url, shared)
    if log is None:
        raise _no_leader_error()
    with closing(log):
        before = provider.position
        LogFollower(store, provider, log).catch_up()
    if as_json:
        output.print_json({"position": provider.position, "before": before})
    else:
        caught = plural(provider.position - before, "entry")
        output.print_line(("position", "bold"), f"{provider.position:,}: {caught} applied")


def _resolve_leader(loop: FollowWorker | None) -> str:
    if loop is None:
        raise _no_leader_error()
    return loop.log.name


def _no_leader_error() -> InputError:
    return InputError("this provider follows nobody yet", hint="tidings provider follow URL")


def _until_signal(name: str, as_json: bool) -> int:
    """Wait until a signal comes, and say which."""
    came: list[int] = []
    stop = Event()

    def end(number: int, _: FrameType | None) -> None:
        came.append(number)
        stop.set()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    if not as_json:
        output.print_note(f"following {name}; Ctrl-C ends it")
    try:
        stop.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return came[0]


def lead(home: HomeOption = DEFAULT_HOME, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Follow nobody any more: from now on this provider keeps the log that it has, and takes registrations.

    For when the leader is gone for good. Others follow this one then ([cyan]tidings provider follow URL[/]), if they
    are not ahead of it: choose the one with the highest position ([cyan]tidings provider status URL...[/]).

    [dim]Example[/]
      tidings provider lead
    """
    with open_tidings(home, store) as tidings:
        before = tidings.store.replication.leader()
        tidings.store.replication.follow(None)
        position = tidings.store.metadata.position()
    if as_json:
        output.print_json({"followed": before, "position": position})
    else:
        told = f"follows {before} no more" if before else "followed nobody"
        output.print_line(("position", "bold"), f"{position:,}: {told}")


def status(
    urls: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="URL", help="Providers; without one, that of the home folder.", show_default=False
        ),
    ] = None,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show where providers stand: how far each has applied the log, and how far behind the others it is.

    [dim]Examples[/]
      tidings provider status
      tidings provider status http://one.example.org:8080 http://two.example.org:8080
    """
    if not urls:
        with open_tidings(home, store) as tidings:
            found = [asdict(tidings.store.replication.status()) | {"url": None, "problem": None}]
    else:
        found = [_fetch_status(url) for url in urls]
    head = max((each["head"] for each in found if "head" in each), default=0)
    for each in found:
        if "position" in each:
            each["lag"] = max(head - each["position"], each.get("lag", 0))
    _show_status(found, as_json)
    if any("position" not in each for each in found):
        raise typer.Exit(output.EXIT_WITH_REJECTS)


def _fetch_status(url: str) -> dict[str, Any]:
    """The status of another provider, or why there is none."""
    from tidings.metadata.replication.peer import Peer, Unreachable

    with Peer(url) as peer:
        try:
            return {"url": peer.name, **peer.status()}
        except Unreachable as problem:
            return {"url": peer.name, "problem": problem.message()}


_COLUMNS = ("provider", "position", "lag", "documents", "resources", "rules")


def _show_status(found: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        for each in found:
            output.print_json(each)
        return
    rows = [_row(each) for each in found]
    output.print_table(("at", *_COLUMNS, "follows"), rows)
    for each in found:
        if each["problem"]:
            output.print_refusal(each["url"] or "here", each["problem"])


def _row(each: dict[str, Any]) -> tuple[str, ...]:
    at = each["url"] or "here"
    if "position" not in each:
        return (at, "no answer", *("" for _ in _COLUMNS))
    return (at, *(_cell(each[name]) for name in _COLUMNS), each["leader"] or "nobody")


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
