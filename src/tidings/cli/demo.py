"""`demo`: auctions, subscribers, a running stream, and notifications as they arrive.

Everything is real: a store in a temporary folder, the calls that commands make, a Spark stream in a thread.
"""

from __future__ import annotations

import json
import shlex
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import output
from tidings.cli.options import Home, MasterOption, check_master, open_spark
from tidings.cli.subscriptions import print_subscription
from tidings.core.text import plural
from tidings.errors import TidingsError
from tidings.notification_text import format_reasons
from tidings.service import sample_auctions
from tidings.service.stream_worker import BackgroundStream

if TYPE_CHECKING:
    from tidings.service.tidings import Tidings


# A web site on this machine with one feed.


@contextmanager
def serve_feed(feed: bytes, media_type: str = "application/rss+xml") -> Iterator[str]:
    """Serve a feed on a free port; yield its address."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(feed)))
            self.end_headers()
            self.wfile.write(feed)

        def log_message(self, *_: object) -> None:
            """Log nothing: the demo prints its events."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/rss.xml"
        finally:
            server.shutdown()
            thread.join()


ITEMS_WITHOUT_TERMINAL = 12
"""Number of events that are published without a terminal."""

PACE_SECONDS = 1.5
"""Time that a person needs to read an event and its notifications."""

ANTIQUE = {"event_type": "antiques", "price": 80, "quantity": 1, "period": "XVI"}

COLOURS = {"ana": "green", "bo": "magenta", "cy": "yellow", "di": "blue", "ed": "cyan", "fy": "red"}


def demo(
    events: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="End after N events instead of Ctrl-C."),
    ] = None,
    seed: Annotated[
        int, typer.Option(help="The seed of the auctions: the same seed gives the same ones.")
    ] = 7,
    master: MasterOption = None,
) -> None:
    """Show Tidings at work: auctions, a catalogue, a feed, subscribers, a stream, notifications.

    Examples:
      tidings demo
      tidings demo --events 20 --seed 7

    It works in a temporary folder, which is deleted afterwards. On a terminal it continues until Ctrl-C; elsewhere it
    ends by itself.
    """
    check_master(master)
    watched = sys.stdout.isatty()
    items = islice(sample_auctions.items(seed), events or (None if watched else ITEMS_WITHOUT_TERMINAL))
    with (
        tempfile.TemporaryDirectory(prefix="tidings-demo-") as folder,
        Home(Path(folder)).open() as tidings,
    ):
        _prepare(tidings)
        auction = Auction(tidings, until_interrupted=watched and events is None)
        auction.publish(next(items))
        with _running_stream(tidings, master) as running:
            auction.hold(running, items, PACE_SECONDS if watched else 0)
    _print_next_steps()


def _prepare(tidings: Tidings) -> None:
    _print_title("A publisher describes its auctions")
    _extend(tidings, sample_auctions.FURNITURE)
    _print_title("People subscribe to events that interest them")
    for wish in sample_auctions.SUBSCRIPTIONS:
        _subscribe(tidings, wish)
    _print_title("One of them mistypes")
    _subscribe(tidings, sample_auctions.INVALID_SUBSCRIPTION)
    _print_title("A second publisher joins, with other kinds of items")
    _extend(tidings, sample_auctions.CURIOSITIES)
    _subscribe(tidings, sample_auctions.LATER_SUBSCRIPTION)
    _print_title("An auction house publishes catalogues in XML; subscriptions to documents are XPaths")
    _subscribe(tidings, sample_auctions.XPATH_SUBSCRIPTION)
    _print_title("A journal has a feed; items of feeds are graphs, and subscriptions to graphs are patterns")
    _subscribe(tidings, sample_auctions.FEED_SUBSCRIPTION)


def _extend(tidings: Tidings, name: str) -> None:
    from tidings.events.schema.rows import summary

    _print_prompt("schema", "extend", name)
    output.print_line(summary(tidings.extend_schema(sample_auctions.schema_text(name)).schema))


def _subscribe(tidings: Tidings, wish: sample_auctions.SampleSubscription) -> None:
    language = () if wish.language == "predicates" else ("--language", wish.language)
    _print_prompt("subscribe", "--as", wish.subscriber, *language, wish.text)
    try:
        made = tidings.subscribe(wish.subscriber, wish.text, wish.language)
    except TidingsError as problem:
        output.print_error(problem, stderr=False)
    else:
        print_subscription(made, COLOURS[wish.subscriber])


@contextmanager
def _running_stream(tidings: Tidings, master: str | None) -> Iterator[BackgroundStream]:
    _print_title("A stream starts; `tidings run` would start it in a second terminal")
    spinner = "starting Spark, about ten seconds ..."
    with (
        open_spark(master, spinner, log=tidings.home / "spark.log") as session,
        BackgroundStream(session, tidings) as running,
    ):
        yield running


class Auction:
    """Items that are published, and the notifications that they cause."""

    def __init__(self, tidings: Tidings, until_interrupted: bool) -> None:
        self.tidings = tidings
        self.ending = "; Ctrl-C stops it" if until_interrupted else ""
        self.sequences = dict.fromkeys(COLOURS, 0)
        _print_title("An item is put up for auction; the stream does not run yet, so it waits in the journal")

    def publish(self, item: sample_auctions.Item) -> int:
        placed = self.tidings.publish(json.dumps(item))
        output.print_line((placed.id, "bold"), sample_auctions.describe(item))
        return placed.position

    def hold(self, running: BackgroundStream, items: Iterable[sample_auctions.Item], pace: float) -> None:
        """Publish item after item, and print the notifications as soon as they exist."""
        with output.show_spinner("starting the stream ..."):
            running.wait_for(1)
        self._print_new("waited for the stream")
        _print_title(f"More items, and notifications for those who asked{self.ending}")
        self._publish_invalid_item()
        self._catalogue(running)
        self._feed(running)
        try:
            for item in items:
                began = time.monotonic()
                running.wait_for(self.publish(item))
                self._print_new(f"{time.monotonic() - began:.1f} s")
                time.sleep(pace)
        except KeyboardInterrupt:
            output.print_line("")
        counts = ", ".join(f"{count} for {who}" for who, count in self.sequences.items())
        output.print_line(f"{plural(sum(self.sequences.values()), 'notification')}: {counts}")

    def _catalogue(self, running: BackgroundStream) -> None:
        """Publish a document, through the same journal and the same stream."""
        placed = self.tidings.publish(sample_auctions.CATALOGUE, media_type="application/xml")
        output.print_line((placed.id, "bold"), "a catalogue in XML, with three lots")
        running.wait_for(placed.position)
        self._print_new("a document")

    def _feed(self, running: BackgroundStream) -> None:
        """Poll the feed of a site on this machine."""
        from tidings.feeds.inbound.poller import Poller

        with serve_feed(sample_auctions.FEED.encode()) as url, Poller(self.tidings.store) as poller:
            _print_prompt("feed", "add", url)
            polled = poller.add(url)
        title, items = polled.feed and polled.feed.title, polled.counts.new if polled.counts else 0
        output.print_line((title or url, "bold"), plural(items, "new item"))
        running.wait_for(self.tidings.store.journal.head())
        self._print_new("an item of a feed")

    def _publish_invalid_item(self) -> None:
        """Publish an item without an attribute that furniture needs: the paper's e2."""
        output.print_line(("an item without a category", "bold"))
        try:
            self.tidings.publish(json.dumps(sample_auctions.REFUSED_ITEM))
        except TidingsError as problem:
            output.print_error(problem, stderr=False)

    def _print_new(self, after: str) -> None:
        """Print the notifications of everybody since the last time."""
        new = 0
        for subscriber, sequence in self.sequences.items():
            for notification in self.tidings.notifications(subscriber, after=sequence):
                self.sequences[subscriber] = notification.sequence
                new += 1
                name, reason = (
                    (f"{subscriber} #{notification.sequence}", COLOURS[subscriber]),
                    format_reasons(notification.because),
                )
                output.print_line("   ", name, reason, (after, "dim"))
        if not new:
            output.print_line("   ", ("no subscription matches", "dim"))


def _print_title(words: str) -> None:
    output.print_line("")
    output.print_line((words, "bold underline"))


def _print_prompt(*words: str) -> None:
    output.print_line((f"$ tidings {' '.join(_quote(word) for word in words)}", "dim"))


def _quote(word: str) -> str:
    """Quote a word as a person would in a shell."""
    return f'"{word}"' if "'" in word and not set(word) & set('"$`\\!') else shlex.quote(word)


def _print_next_steps() -> None:
    """Print commands that work without a schema and with that of the README's tour."""
    _print_title("Your turn")
    if sys.prefix != sys.base_prefix:
        _print_command(
            f"source {shlex.quote(_locate_activate())}", "here, and in a second terminal in this folder"
        )
    _print_command("tidings run", "in the second terminal")
    _print_command('tidings subscribe --as me "price < 100"')
    _print_command(f"tidings publish '{json.dumps(ANTIQUE)}'")
    _print_command("tidings notifications --as me --follow", "docs/getting-started.md goes on from here")


def _locate_activate() -> str:
    script = Path(sys.prefix, "bin", "activate")
    return str(script.relative_to(Path.cwd()) if script.is_relative_to(Path.cwd()) else script)


def _print_command(command: str, remark: str = "") -> None:
    output.print_line(f"{command:<52} # {remark}" if remark else command)
