"""`feed add`, `feed list`, `feed remove` and `feed poll`: feeds that are read, and whose items are published."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.counts import plural
from tidings.interfaces.cli import output
from tidings.interfaces.cli.options import DEFAULT_HOME, AsJson, Contact, Home, Store, open_tidings, prose

if TYPE_CHECKING:
    from types import FrameType

    from tidings.feeds.polling import Polled, Poller
    from tidings.store import PolledFeed, Taken

app = typer.Typer(
    no_args_is_help=True,
    help="Feeds that are read: RSS, Atom and JSON Feed, by polling and by pushes. Their items are published.",
)

Url = Annotated[str, typer.Argument(metavar="URL", help="Where the feed is.", show_default=False)]
PublicUrl = Annotated[
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

SECRET = ("number", "inside", "callback", "secret", "skips", "login")
"""What of a feed is for the store only."""


@contextmanager
def _poller(home: Path, store: str | None, contact: str | None, public_url: str | None) -> Iterator[Poller]:
    from tidings.feeds.fetching import Manners
    from tidings.feeds.polling import Poller
    from tidings.web.network import host_of

    if public_url is not None:
        host_of(public_url)
    with (
        open_tidings(home, store) as tidings,
        Poller(tidings.store, Manners(contact=contact), public_url=public_url) as poller,
    ):
        yield poller


def add(
    url: Url,
    contact: Contact = None,
    public_url: PublicUrl = None,
    home: Home = DEFAULT_HOME,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Read a feed from now on. It is fetched at once, and what is in it is published.

    A feed that cannot be read is refused. Afterwards [cyan]tidings feed poll --follow[/] keeps reading it. An address
    in a private network is accepted here, because you have typed it; no feed or site can send Tidings to another one.

    [dim]Examples[/]
      tidings feed add https://example.org/feed.xml
      tidings feed add http://127.0.0.1:8081/rss.xml
      tidings feed add https://ann:secret@example.org/members.xml
    """
    with _poller(home, store, contact, public_url) as poller, output.waiting("asking ..."):
        polled = poller.add(url)
    _tell(polled, as_json)
    if polled.problem is not None:
        raise typer.Exit(output.WITH_REJECTS)


def list_feeds(home: Home = DEFAULT_HOME, store: Store = None, as_json: AsJson = False) -> None:
    """List the feeds that are read, when each is asked next, and what is wrong with it.

    [dim]Example[/]
      tidings feed list
    """
    with open_tidings(home, store) as tidings:
        found = tidings.store.feeds.load()
    if as_json:
        for one in found:
            output.json_line(_record(one))
    elif found:
        rows = [(one.url, one.title or "", one.next_poll or "never", _state(one)) for one in found]
        output.table(("feed", "title", "next poll", "state"), rows)
    else:
        output.note("no feeds: tidings feed add URL")


def remove(url: Url, home: Home = DEFAULT_HOME, store: Store = None, as_json: AsJson = False) -> None:
    """Do not read a feed any more. What was published stays published.

    [dim]Example[/]
      tidings feed remove https://example.org/feed.xml
    """
    from tidings.feeds.logins import login_of

    url, _ = login_of(url)
    with open_tidings(home, store) as tidings:
        removed = tidings.store.feeds.remove(url)
    output.removed({"url": url}, removed, "removed", "there is no such feed", as_json)


def poll(
    follow: Annotated[
        bool,
        typer.Option("--follow/--once", help="Wait for those that become due until Ctrl-C, or end now."),
    ] = False,
    contact: Contact = None,
    public_url: PublicUrl = None,
    home: Home = DEFAULT_HOME,
    store: Store = None,
    as_json: AsJson = False,
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
            _tell(polled, as_json)
            problems += polled.problem is not None
        due = poller.next_due()
    if not as_json:
        output.note(f"the next feed is due at {due}" if due else "no feed will be due")
    if problems:
        raise typer.Exit(output.WITH_REJECTS)


def _follow(poller: Poller, as_json: bool) -> None:
    """Polls run in threads of their own, so an interruption cuts none of them in half."""
    if not as_json:
        output.note("reading feeds; Ctrl-C ends it")
    came: list[int] = []

    def interrupt(number: int, _: FrameType | None) -> None:
        came.append(number)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        poller.follow(lambda polled: _tell(polled, as_json))
    except KeyboardInterrupt:
        poller.stop()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if signal.SIGINT in came:
        raise typer.Exit(INTERRUPTED)


def _tell(polled: Polled, as_json: bool) -> None:
    feed = polled.feed
    if as_json:
        taken = polled.taken._asdict() if polled.taken else None
        problem = polled.problem.facts() if polled.problem else None
        output.json_line({"url": polled.url, "taken": taken, "problem": problem, **_record(feed)})
    elif polled.problem is not None:
        output.refused(polled.url, str(polled.problem))
    elif feed is None:
        output.line((polled.url, "bold cyan"), "removed in the meantime, or moved to another feed")
    else:
        moved = (f"moved to {feed.url}",) if feed.url != polled.url else ()
        output.line((polled.url, "bold cyan"), feed.title or "", *moved, _found(polled.taken), _next(feed))
        if polled.taken is not None and feed.left_out:
            output.note(f"left out of the items: {feed.left_out}")


def _found(taken: Taken | None) -> str:
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
    return {name: value for name, value in record.items() if name not in SECRET}


app.command(help=prose(add))(add)
app.command("list", help=prose(list_feeds))(list_feeds)
app.command(help=prose(remove))(remove)
app.command(help=prose(poll))(poll)
