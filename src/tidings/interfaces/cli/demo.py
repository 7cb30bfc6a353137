"""`demo`: auctions, people who follow them, a running stream, and notifications as they come.

Everything is real: a store in a temporary folder, the calls the commands make, a Spark stream in a thread.
"""

from __future__ import annotations

import json
import shlex
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.counts import plural
from tidings.errors import TidingsError
from tidings.interfaces.cli import auctions, output
from tidings.interfaces.cli.options import Master, check_master, close_spark, open_spark, open_tidings
from tidings.interfaces.cli.running import Running
from tidings.interfaces.cli.site import serving
from tidings.reasons import because

if TYPE_CHECKING:
    from tidings.service import Tidings

WITHOUT_A_TERMINAL = 12
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
    master: Master = None,
) -> None:
    """Show Tidings at work: auctions, a catalogue, a feed, people, a stream, notifications.

    In a temporary folder that is gone afterwards. On a terminal it goes on
    until Ctrl-C; elsewhere it ends by itself.
    """
    check_master(master)
    watched = sys.stdout.isatty()
    items = islice(auctions.items(seed), events or (None if watched else WITHOUT_A_TERMINAL))
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
    _extend(tidings, auctions.FURNITURE)
    _title("People say what they want to know about")
    for wish in auctions.WISHES:
        _subscribe(tidings, wish)
    _title("Somebody mistypes")
    _subscribe(tidings, auctions.WRONG_WISH)
    _title("A second publisher joins, with things nobody could foresee")
    _extend(tidings, auctions.CURIOSITIES)
    _subscribe(tidings, auctions.LATER_WISH)
    _title("An auction house publishes catalogues in XML; subscriptions to documents are XPaths")
    _subscribe(tidings, auctions.PATH_WISH)
    _title("A journal has a feed; items of feeds are graphs, and subscriptions to graphs are patterns")
    _subscribe(tidings, auctions.FEED_WISH)


def _extend(tidings: Tidings, name: str) -> None:
    from tidings.schema.summary import summary

    _typed("schema", "extend", name)
    output.line(summary(tidings.extend_schema(auctions.schema_text(name)).schema))


def _subscribe(tidings: Tidings, wish: auctions.Wish) -> None:
    language = () if wish.language == "predicates" else ("--language", wish.language)
    _typed("subscribe", "--as", wish.subscriber, *language, wish.text)
    try:
        made = tidings.subscribe(wish.subscriber, wish.text, wish.language)
    except TidingsError as problem:
        output.error(problem, stderr=False)
    else:
        output.subscribed(made, COLOURS[wish.subscriber])


@contextmanager
def _running_stream(tidings: Tidings, master: str | None) -> Iterator[Running]:
    _title("A stream starts; `tidings run` would start it in a second terminal")
    with output.waiting("starting Spark, ten seconds or so ..."):
        session = open_spark(master, log=tidings.home / "spark.log")
    try:
        with Running(session, tidings) as running:
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

    def publish(self, item: auctions.Item) -> int:
        placed = self.tidings.publish(json.dumps(item))
        output.line((placed.id, "bold"), auctions.describe(item))
        return placed.position

    def hold(self, running: Running, items: Iterable[auctions.Item], pace: float) -> None:
        """Item after item, and who asked for it as soon as they are told."""
        with output.waiting("starting the stream ..."):
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
            output.line("")
        counts = ", ".join(f"{count} for {who}" for who, count in self.told.items())
        output.line(f"{plural(sum(self.told.values()), 'notification')}: {counts}")

    def _catalogue(self, running: Running) -> None:
        """One document, through the same journal and the same stream."""
        placed = self.tidings.publish(auctions.CATALOGUE, media_type="application/xml")
        output.line((placed.id, "bold"), "a catalogue in XML, with three lots")
        running.reached(placed.position)
        self._tell("a document")

    def _feed(self, running: Running) -> None:
        """The feed of a site on this machine, read as any other."""
        from tidings.feeds.polling import Poller

        with serving(auctions.FEED.encode()) as url, Poller(self.tidings.store) as poller:
            _typed("feed", "add", url)
            polled = poller.add(url)
        title, items = polled.feed and polled.feed.title, polled.taken.new if polled.taken else 0
        output.line((title or url, "bold"), plural(items, "new item"))
        running.reached(self.tidings.store.journal.head())
        self._tell("an item of a feed")

    def _refused(self) -> None:
        """One item that lacks what antiques and furniture need together: the paper's e2."""
        output.line(("an item without a category", "bold"))
        try:
            self.tidings.publish(json.dumps(auctions.REFUSED_ITEM))
        except TidingsError as problem:
            output.error(problem, stderr=False)

    def _tell(self, after: str) -> None:
        """Show what everybody was told since the last time."""
        new = 0
        for who, sequence in self.told.items():
            for one in self.tidings.notifications(who, after=sequence):
                self.told[who] = one.sequence
                new += 1
                name, reason = (f"{who} #{one.sequence}", COLOURS[who]), because(one.because)
                output.line("   ", name, reason, (after, "dim"))
        if not new:
            output.line("   ", ("nobody asked for it", "dim"))


def _title(words: str) -> None:
    output.line("")
    output.line((words, "bold underline"))


def _typed(*words: str) -> None:
    output.line((f"$ tidings {' '.join(_quoted(word) for word in words)}", "dim"))


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
    output.line(f"{command:<52} # {remark}" if remark else command)
