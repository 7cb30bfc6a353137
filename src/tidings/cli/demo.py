"""`demo`: auctions, people who follow them, a running stream, and notifications as they come.

Everything is real: a store in a temporary folder, the calls the commands make, a Spark stream in a thread.
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
from tidings.cli.options import MasterOption, check_master, close_spark, open_spark, open_tidings
from tidings.core.text import plural
from tidings.errors import TidingsError
from tidings.notification_text import format_reasons
from tidings.service import sample_auctions
from tidings.service.stream_worker import BackgroundStream

if TYPE_CHECKING:
    from tidings.service.tidings import Tidings


# A web site on this machine, for the demo: one feed, served until nobody needs it any more.


@contextmanager
def serve_feed(feed: bytes, media_type: str = "application/rss+xml") -> Iterator[str]:
    """The address of a feed, on a port that is free."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(feed)))
            self.end_headers()
            self.wfile.write(feed)

        def log_message(self, *_: object) -> None:
            """The demo tells what happens."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/rss.xml"
        finally:
            server.shutdown()
            thread.join()


ITEMS_WITHOUT_TERMINAL = 12
"""How many events are enough for somebody who does not watch."""

PACE_SECONDS = 1.5
"""How long somebody who watches needs to read an event and who was told."""

ANTIQUE = {"event_type": "antiques", "price": 80, "quantity": 1, "period": "XVI"}

COLOURS = {"ana": "green", "bo": "magenta", "cy": "yellow", "di": "blue", "ed": "cyan", "fy": "red"}


def demo(
    events: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="End after N events, instead of going on until Ctrl-C."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Which auctions: the same seed gives the same ones.")] = 7,
    master: MasterOption = None,
) -> None:
    """Show Tidings at work: auctions, a catalogue, a feed, people, a stream, notifications.

    In a temporary folder that is gone afterwards. On a terminal it goes on
    until Ctrl-C; elsewhere it ends by itself.
    """
    check_master(master)
    watched = sys.stdout.isatty()
    items = islice(sample_auctions.items(seed), events or (None if watched else ITEMS_WITHOUT_TERMINAL))
    with (
        tempfile.TemporaryDirectory(prefix="tidings-demo-") as folder,
        open_tidings(Path(folder), None) as tidings,
    ):
        _set_the_scene(tidings)
        auction = Auction(tidings, until_interrupted=watched and events is None)
        auction.publish(next(items))
        with _running_stream(tidings, master) as running:
            auction.hold(running, items, PACE_SECONDS if watched else 0)
    _goodbye()


def _set_the_scene(tidings: Tidings) -> None:
    _title("A publisher says what its auctions look like")
    _extend(tidings, sample_auctions.FURNITURE)
    _title("People say what they want to know about")
    for wish in sample_auctions.SUBSCRIPTIONS:
        _subscribe(tidings, wish)
    _title("Somebody mistypes")
    _subscribe(tidings, sample_auctions.INVALID_SUBSCRIPTION)
    _title("A second publisher joins, with things nobody could foresee")
    _extend(tidings, sample_auctions.CURIOSITIES)
    _subscribe(tidings, sample_auctions.LATER_SUBSCRIPTION)
    _title("An auction house publishes catalogues in XML; subscriptions to documents are XPaths")
    _subscribe(tidings, sample_auctions.XPATH_SUBSCRIPTION)
    _title("A journal has a feed; items of feeds are graphs, and subscriptions to graphs are patterns")
    _subscribe(tidings, sample_auctions.FEED_SUBSCRIPTION)


def _extend(tidings: Tidings, name: str) -> None:
    from tidings.events.schema.rows import summary

    _typed("schema", "extend", name)
    output.print_line(summary(tidings.extend_schema(sample_auctions.schema_text(name)).schema))


def _subscribe(tidings: Tidings, wish: sample_auctions.SampleSubscription) -> None:
    language = () if wish.language == "predicates" else ("--language", wish.language)
    _typed("subscribe", "--as", wish.subscriber, *language, wish.text)
    try:
        made = tidings.subscribe(wish.subscriber, wish.text, wish.language)
    except TidingsError as problem:
        output.print_error(problem, stderr=False)
    else:
        output.print_subscription(made, COLOURS[wish.subscriber])


@contextmanager
def _running_stream(tidings: Tidings, master: str | None) -> Iterator[BackgroundStream]:
    _title("A stream starts; `tidings run` would start it in a second terminal")
    with output.show_spinner("starting Spark, ten seconds or so ..."):
        session = open_spark(master, log=tidings.home / "spark.log")
    try:
        with BackgroundStream(session, tidings) as running:
            yield running
    finally:
        close_spark(session)


class Auction:
    """Publishes items, and shows who is told."""

    def __init__(self, tidings: Tidings, until_interrupted: bool) -> None:
        self.tidings = tidings
        self.ending = "; Ctrl-C ends it" if until_interrupted else ""
        self.told = dict.fromkeys(COLOURS, 0)
        _title("Something is put up for auction; nothing runs yet, so it waits in the journal")

    def publish(self, item: sample_auctions.Item) -> int:
        placed = self.tidings.publish(json.dumps(item))
        output.print_line((placed.id, "bold"), sample_auctions.describe(item))
        return placed.position

    def hold(self, running: BackgroundStream, items: Iterable[sample_auctions.Item], pace: float) -> None:
        """Item after item, and who asked for it as soon as they are told."""
        with output.show_spinner("starting the stream ..."):
            running.reached(1)
        self._tell("waited for the stream")
        _title(f"More items, and those who asked are told{self.ending}")
        self._refused()
        self._catalogue(running)
        self._feed(running)
        try:
            for item in items:
                began = time.monotonic()
                running.reached(self.publish(item))
                self._tell(f"{time.monotonic() - began:.1f} s")
                time.sleep(pace)
        except KeyboardInterrupt:
            output.print_line("")
        counts = ", ".join(f"{count} for {who}" for who, count in self.told.items())
        output.print_line(f"{plural(sum(self.told.values()), 'notification')}: {counts}")

    def _catalogue(self, running: BackgroundStream) -> None:
        """One document, through the same journal and the same stream."""
        placed = self.tidings.publish(sample_auctions.CATALOGUE, media_type="application/xml")
        output.print_line((placed.id, "bold"), "a catalogue in XML, with three lots")
        running.reached(placed.position)
        self._tell("a document")

    def _feed(self, running: BackgroundStream) -> None:
        """The feed of a site on this machine, read as any other."""
        from tidings.feeds.inbound.poller import Poller

        with serve_feed(sample_auctions.FEED.encode()) as url, Poller(self.tidings.store) as poller:
            _typed("feed", "add", url)
            polled = poller.add(url)
        title, items = polled.feed and polled.feed.title, polled.taken.new if polled.taken else 0
        output.print_line((title or url, "bold"), plural(items, "new item"))
        running.reached(self.tidings.store.journal.head())
        self._tell("an item of a feed")

    def _refused(self) -> None:
        """One item that lacks what antiques and furniture need together: the paper's e2."""
        output.print_line(("an item without a category", "bold"))
        try:
            self.tidings.publish(json.dumps(sample_auctions.REFUSED_ITEM))
        except TidingsError as problem:
            output.print_error(problem, stderr=False)

    def _tell(self, after: str) -> None:
        """Show what everybody was told since the last time."""
        new = 0
        for who, sequence in self.told.items():
            for one in self.tidings.notifications(who, after=sequence):
                self.told[who] = one.sequence
                new += 1
                name, reason = (f"{who} #{one.sequence}", COLOURS[who]), format_reasons(one.because)
                output.print_line("   ", name, reason, (after, "dim"))
        if not new:
            output.print_line("   ", ("nobody asked for it", "dim"))


def _title(words: str) -> None:
    output.print_line("")
    output.print_line((words, "bold underline"))


def _typed(*words: str) -> None:
    output.print_line((f"$ tidings {' '.join(_quoted(word) for word in words)}", "dim"))


def _quoted(word: str) -> str:
    """As a person would quote it in a shell."""
    return f'"{word}"' if "'" in word and not set(word) & set('"$`\\!') else shlex.quote(word)


def _goodbye() -> None:
    """Words that work without a schema and with that of the README's tour."""
    _title("Now you")
    if sys.prefix != sys.base_prefix:
        _try(f"source {shlex.quote(_activate())}", "here, and in a second terminal in this folder")
    _try("tidings run", "in the second terminal")
    _try('tidings subscribe --as me "price < 100"')
    _try(f"tidings publish '{json.dumps(ANTIQUE)}'")
    _try("tidings notifications --as me --follow", "docs/getting-started.md goes on from here")


def _activate() -> str:
    script = Path(sys.prefix, "bin", "activate")
    return str(script.relative_to(Path.cwd()) if script.is_relative_to(Path.cwd()) else script)


def _try(command: str, remark: str = "") -> None:
    output.print_line(f"{command:<52} # {remark}" if remark else command)
