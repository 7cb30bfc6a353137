"""`feed ...` for feeds that are polled, and `feeds` for the addresses of a subscriber's own feeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.cli import output
from tidings.cli.command import make_group, stop_on_signals
from tidings.cli.options import ContactOption, Home, PublicUrlOption, SubscriberOption, find_subscriber
from tidings.cli.output import Output, View, exit_if_rejects
from tidings.core.text import plural
from tidings.errors import InputError

if TYPE_CHECKING:
    from tidings.feeds.inbound.poller import Poller, PollResult
    from tidings.feeds.outbound.personal_feeds import FeedLocation
    from tidings.feeds.sql.polled_feeds import PolledFeed
    from tidings.feeds.sql.polled_items import ItemCounts


FeedUrl = Annotated[str, typer.Argument(metavar="URL", help="The address of the feed.")]

HIDDEN_FIELDS = ("number", "in_private_network", "callback", "secret", "skips", "login")
"""Fields of a feed that only the store needs."""


@dataclass(frozen=True)
class PollOptions:
    """Options for fetching feeds, and the address to which hubs push them."""

    contact: ContactOption = None
    public_url: Annotated[
        str | None,
        typer.Option(
            "--public-url",
            envvar="TIDINGS_PUBLIC_URL",
            metavar="URL",
            help="The address at which hubs reach `tidings serve` to push; without it, feeds are only polled.",
        ),
    ] = None

    @contextmanager
    def open_poller(self, home: Home) -> Iterator[Poller]:
        """Open the poller of a home folder."""
        from tidings.feeds.inbound.feed_client import FetchPolicy
        from tidings.feeds.inbound.poller import Poller
        from tidings.operations.egress_policy import split_host

        if self.public_url is not None:
            split_host(self.public_url)
        policy = FetchPolicy(contact=self.contact)
        with home.open() as tidings, Poller(tidings.store, policy, public_url=self.public_url) as poller:
            yield poller


def add(polling: PollOptions, home: Home, out: Output, url: FeedUrl) -> None:
    """Add a feed: it is fetched now, its items are published, and it is polled from now on.

    Examples:
      tidings feed add https://example.org/feed.xml
      tidings feed add http://127.0.0.1:8081/rss.xml
      tidings feed add https://ann:secret@example.org/members.xml

    A feed that cannot be read is refused. `tidings feed poll --follow` or `tidings serve` polls it later. An address in
    a private network is accepted here because you have typed it; redirects and links to private addresses are not.
    """
    with polling.open_poller(home) as poller, output.show_spinner("fetching ..."):
        result = poller.add(url)
    _print_poll(result, out)
    exit_if_rejects(result.problem is not None)


def _to_record(feed: PolledFeed | None) -> dict[str, Any]:
    record = asdict(feed) if feed else {}
    return {name: value for name, value in record.items() if name not in HIDDEN_FIELDS}


def _format_state(feed: PolledFeed) -> str:
    if feed.problem:
        failures = f" ({plural(feed.failures, 'failure')} in a row)" if feed.failures else ""
        return feed.problem + failures
    state = f"pushed by {feed.hub}" if feed.push == "verified" else "ok" if feed.polled else "not polled yet"
    return f"{state}; left out of the items: {feed.left_out}" if feed.left_out else state


FEEDS: View[PolledFeed] = View(
    "no feeds: tidings feed add URL",
    columns=(
        ("feed", "url"),
        ("title", "title"),
        ("next poll", lambda feed: feed.next_poll or "never"),
        ("state", _format_state),
    ),
    record=_to_record,
)


def list_feeds(home: Home, out: Output) -> None:
    """List the polled feeds, with their next polls and errors.

    Example:
      tidings feed list
    """
    with home.open() as tidings:
        feeds = tidings.store.polled_feeds.load()
    out.print_records(feeds, FEEDS)


def remove(home: Home, out: Output, url: FeedUrl) -> None:
    """Stop polling a feed. Published items stay published.

    Example:
      tidings feed remove https://example.org/feed.xml
    """
    from tidings.feeds.inbound.feed_client import split_login

    url, _ = split_login(url)
    with home.open() as tidings:
        removed = tidings.store.polled_feeds.remove(url)
    out.print_removal({"url": url}, removed, "removed", "there is no such feed")


def poll(
    polling: PollOptions,
    home: Home,
    out: Output,
    follow: Annotated[
        bool,
        typer.Option("--follow/--once", help="Poll feeds as they become due until Ctrl-C, or only once."),
    ] = False,
) -> None:
    """Poll the feeds that are due, and publish new and edited items.

    Examples:
      tidings feed poll
      tidings feed poll --follow --contact mailto:ann@example.org

    A feed that cannot be read is polled again later; `tidings feed list` shows the error.
    """
    with polling.open_poller(home) as poller:
        if follow:
            _follow(poller, out)
            return
        results = [_print_poll(result, out) for result in poller.poll_due()]
        due = poller.next_due()
    out.print_note(f"the next feed is due at {due}" if due else "no feed will be due")
    exit_if_rejects(not all(results))


def _follow(poller: Poller, out: Output) -> None:
    """Poll until a signal. Polls run in separate threads, so an interruption does not abort them halfway."""
    out.print_note("polling feeds; Ctrl-C stops it")
    with stop_on_signals(interrupts=True) as stop:
        try:
            poller.follow(lambda result: _print_poll(result, out))
        except KeyboardInterrupt:
            poller.stop()
    stop.exit_if_interrupted()


def _print_poll(result: PollResult, out: Output) -> bool:
    """Print the result of a poll; return whether it succeeded."""
    feed, counts = result.feed, result.counts
    if out.as_json:
        problem = result.problem.facts() if result.problem else None
        outcome = {"url": result.url, "taken": counts._asdict() if counts else None, "problem": problem}
        output.print_json({**outcome, **_to_record(feed)})
    elif result.problem is not None:
        output.print_refusal(result.url, str(result.problem))
    elif feed is None:
        output.print_line((result.url, "bold cyan"), "removed in the meantime, or moved to another feed")
    else:
        moved = (f"moved to {feed.url}",) if feed.url != result.url else ()
        cells = feed.title or "", *moved, _describe_items(counts), _describe_next(feed)
        output.print_line((result.url, "bold cyan"), *cells)
        if counts is not None and feed.left_out:
            output.print_note(f"left out of the items: {feed.left_out}")
    return result.problem is None


def _describe_items(items: ItemCounts | None) -> str:
    if items is None:
        return "nothing new"
    counts = {"new": items.new, "edited": items.edited, "refused": items.refused}
    shown = [f"{count:,} {what}" for what, count in counts.items() if count or what == "new"]
    return f"{plural(items.items, 'item')}: {', '.join(shown)}"


def _describe_next(feed: PolledFeed) -> str:
    if feed.next_poll is None:
        return "not polled any more"
    left = (datetime.fromisoformat(feed.next_poll) - datetime.now(UTC)).total_seconds()
    return f"next poll in {plural(max(1, round(left / 60)), 'minute')}"


app = make_group(
    "RSS, Atom and JSON feeds that are polled or pushed; their items are published.",
    {"add": add, "list": list_feeds, "remove": remove, "poll": poll},
)


# `feeds`.


NO_RULE_FEEDS = "have no feeds: tidings notifications prints their notifications"
MADE_ELSEWHERE = (
    "created in another home folder; copy its feeds.key here, or create a new address with --revoke"
)


def feeds(
    home: Home,
    out: Output,
    subscriber: SubscriberOption,
    revoke: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Replace the address of this subscription's feed; the old one ends."),
    ] = None,
    revoke_list: Annotated[
        bool, typer.Option("--revoke-list", help="Replace the address of the list of all feeds.")
    ] = False,
    public_url: PublicUrlOption = None,
) -> None:
    """Print the addresses of a subscriber's feeds: one per subscription except rules, and the list of all (OPML).

    Examples:
      tidings feeds --as cy
      tidings feeds --as cy --revoke s-21bd0c4e

    Anyone with an address can read the feed: treat it as a password. Feed readers need a running
    `tidings serve`. An address without an ending offers the format that the reader asks for; with `.atom`, `.rss`,
    `.rdf` or `.json` it has that format.
    """
    from tidings.feeds.outbound.personal_feeds import list_locations, locate_feed, renew_location
    from tidings.operations.settings_sources import load_settings

    reached = public_url or load_settings({"home": home.home}).settings.reached_at()
    with home.open() as tidings:
        subscriber = find_subscriber(tidings.store, subscriber, out)
        personal = tidings.feeds_at(reached)
        for id in revoke or ():
            if personal.find(subscriber, id) is None:
                hint = f"tidings subscriptions --as {subscriber}"
                raise InputError(f"{subscriber} has no subscription '{id}'", hint=hint)
        for id_or_list in [*(revoke or ()), *([None] if revoke_list else [])]:
            renew_location(personal, subscriber, id_or_list)
        locations = list_locations(personal, subscriber)
        locations += [locate_feed(personal, subscriber)] if locations else []
        has_rules = tidings.store.metadata.has_rules(subscriber)
    if has_rules:
        out.print_note(f"the rules of {subscriber} {NO_RULE_FEEDS}")
    elif not locations:
        out.print_note(f"no subscriptions for {subscriber}")
    _print_addresses(locations, out)


def _print_addresses(locations: Sequence[FeedLocation], out: Output) -> None:
    names = [location.subscription or "all" for location in locations]
    name_width = max(map(len, names), default=0)
    address_width = max((len(location.address or "") for location in locations), default=0)
    for name, location in zip(names, locations, strict=True):
        is_list = location.subscription is None
        formats = "OPML" if is_list else "Atom, RSS, JSON"
        shown = (
            [(MADE_ELSEWHERE, "yellow")]
            if location.address is None
            else [location.address.ljust(address_width), (f"({formats})", "dim")]
        )
        record = {
            "kind": "opml" if is_list else "feed",
            **output.select_fields(location, "subscription", "address"),
        }
        out.print_record(record, (name.ljust(name_width), "bold cyan"), *shown)
