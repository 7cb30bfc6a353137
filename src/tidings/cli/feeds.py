"""`feeds`: where a subscriber's feeds are."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.cli import output
from tidings.cli.options import (
    DEFAULT_HOME,
    ContactOption,
    HomeOption,
    JsonOption,
    PublicUrlOption,
    StoreOption,
    SubscriberOption,
    find_subscriber,
    format_help,
    open_tidings,
)
from tidings.core.text import plural
from tidings.errors import InputError

if TYPE_CHECKING:
    from types import FrameType

    from tidings.feeds.inbound.poller import Poller, PollResult
    from tidings.feeds.outbound.personal_feeds import FeedLocation
    from tidings.feeds.sql.polled_feeds import PolledFeed
    from tidings.feeds.sql.polled_items import ItemCounts


# `feed add`, `feed list`, `feed remove` and `feed poll`: feeds that are read, and whose items are published.


app = typer.Typer(
    no_args_is_help=True,
    help="Feeds that are read: RSS, Atom and JSON Feed, by polling and by pushes. Their items are published.",
)

FeedUrl = Annotated[str, typer.Argument(metavar="URL", help="Where the feed is.", show_default=False)]
CallbackUrlOption = Annotated[
    str | None,
    typer.Option(
        "--public-url",
        envvar="TIDINGS_PUBLIC_URL",
        metavar="URL",
        help="Where hubs reach [cyan]tidings serve[/], so that they can push; without it feeds are only polled.",
        show_default=False,
    ),
]

INTERRUPTED = 130

HIDDEN_FIELDS = ("number", "inside", "callback", "secret", "skips", "login")
"""What of a feed is for the store only."""


@contextmanager
def _poller(home: Path, store: str | None, contact: str | None, public_url: str | None) -> Iterator[Poller]:
    from tidings.feeds.inbound.feed_client import FetchPolicy
    from tidings.feeds.inbound.poller import Poller
    from tidings.operations.egress_policy import split_host

    if public_url is not None:
        split_host(public_url)
    with (
        open_tidings(home, store) as tidings,
        Poller(tidings.store, FetchPolicy(contact=contact), public_url=public_url) as poller,
    ):
        yield poller


def add(
    url: FeedUrl,
    contact: ContactOption = None,
    public_url: CallbackUrlOption = None,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read a feed from now on. It is fetched at once, and what is in it is published.

    A feed that cannot be read is refused. Afterwards [cyan]tidings feed poll --follow[/] keeps reading it. An address
    in a private network is accepted here, because you have typed it; no feed or site can send Tidings to another one.

    [dim]Examples[/]
      tidings feed add https://example.org/feed.xml
      tidings feed add http://127.0.0.1:8081/rss.xml
      tidings feed add https://ann:secret@example.org/members.xml
    """
    with _poller(home, store, contact, public_url) as poller, output.show_spinner("asking ..."):
        polled = poller.add(url)
    _print_poll(polled, as_json)
    if polled.problem is not None:
        raise typer.Exit(output.EXIT_WITH_REJECTS)


def list_feeds(
    home: HomeOption = DEFAULT_HOME, store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """List the feeds that are read, when each is asked next, and what is wrong with it.

    [dim]Example[/]
      tidings feed list
    """
    with open_tidings(home, store) as tidings:
        found = tidings.store.polled_feeds.load()
    if as_json:
        for one in found:
            output.print_json(_record(one))
    elif found:
        rows = [(one.url, one.title or "", one.next_poll or "never", _state(one)) for one in found]
        output.print_table(("feed", "title", "next poll", "state"), rows)
    else:
        output.print_note("no feeds: tidings feed add URL")


def remove(
    url: FeedUrl, home: HomeOption = DEFAULT_HOME, store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """Do not read a feed any more. What was published stays published.

    [dim]Example[/]
      tidings feed remove https://example.org/feed.xml
    """
    from tidings.feeds.inbound.feed_client import split_login

    url, _ = split_login(url)
    with open_tidings(home, store) as tidings:
        removed = tidings.store.polled_feeds.remove(url)
    output.print_removal({"url": url}, removed, "removed", "there is no such feed", as_json)


def poll(
    follow: Annotated[
        bool,
        typer.Option("--follow/--once", help="Wait for those that become due until Ctrl-C, or end now."),
    ] = False,
    contact: ContactOption = None,
    public_url: CallbackUrlOption = None,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask the feeds that are due, and publish what is new or edited.

    A feed that cannot be read stops nothing: it is asked again later, and [cyan]tidings feed list[/] shows why.

    [dim]Examples[/]
      tidings feed poll
      tidings feed poll --follow --contact mailto:ann@example.org
    """
    problems = 0
    with _poller(home, store, contact, public_url) as poller:
        if follow:
            _follow(poller, as_json)
            return
        for polled in poller.poll_due():
            _print_poll(polled, as_json)
            problems += polled.problem is not None
        due = poller.next_due()
    if not as_json:
        output.print_note(f"the next feed is due at {due}" if due else "no feed will be due")
    if problems:
        raise typer.Exit(output.EXIT_WITH_REJECTS)


def _follow(poller: Poller, as_json: bool) -> None:
    """Polls run in threads of their own, so an interruption cuts none of them in half."""
    if not as_json:
        output.print_note("reading feeds; Ctrl-C ends it")
    came: list[int] = []

    def interrupt(number: int, _: FrameType | None) -> None:
        came.append(number)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        poller.follow(lambda polled: _print_poll(polled, as_json))
    except KeyboardInterrupt:
        poller.stop()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if signal.SIGINT in came:
        raise typer.Exit(INTERRUPTED)


def _print_poll(polled: PollResult, as_json: bool) -> None:
    feed = polled.feed
    if as_json:
        taken = polled.taken._asdict() if polled.taken else None
        problem = polled.problem.facts() if polled.problem else None
        output.print_json({"url": polled.url, "taken": taken, "problem": problem, **_record(feed)})
    elif polled.problem is not None:
        output.print_refusal(polled.url, str(polled.problem))
    elif feed is None:
        output.print_line((polled.url, "bold cyan"), "removed in the meantime, or moved to another feed")
    else:
        moved = (f"moved to {feed.url}",) if feed.url != polled.url else ()
        output.print_line(
            (polled.url, "bold cyan"), feed.title or "", *moved, _found(polled.taken), _next(feed)
        )
        if polled.taken is not None and feed.left_out:
            output.print_note(f"left out of the items: {feed.left_out}")


def _found(taken: ItemCounts | None) -> str:
    if taken is None:
        return "nothing new"
    counts = {"new": taken.new, "edited": taken.edited, "refused": taken.refused}
    told = [f"{count:,} {what}" for what, count in counts.items() if count or what == "new"]
    return f"{plural(taken.items, 'item')}: {', '.join(told)}"


def _next(feed: PolledFeed) -> str:
    if feed.next_poll is None:
        return "not polled any more"
    left = (datetime.fromisoformat(feed.next_poll) - datetime.now(UTC)).total_seconds()
    return f"next poll in {plural(max(1, round(left / 60)), 'minute')}"


def _state(feed: PolledFeed) -> str:
    if feed.problem:
        often = f" ({plural(feed.failures, 'failure')} in a row)" if feed.failures else ""
        return feed.problem + often
    state = f"pushed by {feed.hub}" if feed.push == "verified" else "fine" if feed.polled else "not asked yet"
    return f"{state}; left out of the items: {feed.left_out}" if feed.left_out else state


def _record(feed: PolledFeed | None) -> dict[str, Any]:
    record = asdict(feed) if feed else {}
    return {name: value for name, value in record.items() if name not in HIDDEN_FIELDS}


app.command(help=format_help(add))(add)
app.command("list", help=format_help(list_feeds))(list_feeds)
app.command(help=format_help(remove))(remove)
app.command(help=format_help(poll))(poll)


NO_RULE_FEEDS = "have no feeds: tidings notifications shows what they find"
MADE_ELSEWHERE = "made in another home folder; copy its feeds.key here, or make a new one with --revoke"


def feeds(
    subscriber: SubscriberOption,
    revoke: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Make a new address for this subscription's feed; the old one ends."),
    ] = None,
    revoke_list: Annotated[
        bool, typer.Option("--revoke-list", help="Make a new address for the list of all feeds.")
    ] = False,
    public_url: PublicUrlOption = None,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show where a subscriber's feeds are: one for each subscription but rules, and the list of all (OPML).

    Whoever knows an address can read the feed, so keep it as you keep a password. [cyan]tidings serve[/] has to run for
    readers to find it. Without an ending an address gives the format that the reader asks for; with [cyan].atom[/],
    [cyan].rss[/], [cyan].rdf[/] or [cyan].json[/] it gives that one.

    [dim]Examples[/]
      tidings feeds --as cy
      tidings feeds --as cy --revoke s-21bd0c4e
    """
    from tidings.feeds.outbound.personal_feeds import list_locations, locate_feed, renew_location
    from tidings.operations.settings_sources import load_settings

    reached = public_url or load_settings({"home": home}).settings.reached_at()
    with open_tidings(home, store) as tidings:
        subscriber = find_subscriber(tidings.store, subscriber, quiet=as_json)
        found = tidings.feeds_at(reached)
        for id in revoke or ():
            if found.find(subscriber, id) is None:
                hint = f"tidings subscriptions --as {subscriber}"
                raise InputError(f"{subscriber} has no subscription '{id}'", hint=hint)
        for each in [*(revoke or ()), *([None] if revoke_list else [])]:
            renew_location(found, subscriber, each)
        listed = list_locations(found, subscriber)
        listed += [locate_feed(found, subscriber)] if listed else []
        has_rules = tidings.store.metadata.has_rules(subscriber)
    if has_rules and not as_json:
        output.print_note(f"the rules of {subscriber} {NO_RULE_FEEDS}")
    elif not listed and not as_json:
        output.print_note(f"no subscriptions for {subscriber}")
    if as_json:
        for one in listed:
            kind = "opml" if one.subscription is None else "feed"
            output.print_json({"kind": kind, "subscription": one.subscription, "address": one.address})
    else:
        _print_addresses(listed)


def _print_addresses(listed: Sequence[FeedLocation]) -> None:
    names = ["all" if one.subscription is None else one.subscription for one in listed]
    wide = max(map(len, names), default=0), max((len(one.address or "") for one in listed), default=0)
    for name, one in zip(names, listed, strict=True):
        called = (name.ljust(wide[0]), "bold cyan")
        if one.address is None:
            output.print_line(called, (MADE_ELSEWHERE, "yellow"))
        else:
            formats = "OPML" if one.subscription is None else "Atom, RSS, JSON"
            output.print_line(called, one.address.ljust(wide[1]), (f"({formats})", "dim"))
