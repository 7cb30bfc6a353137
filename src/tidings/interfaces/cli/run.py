"""`run`: the stream."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from types import FrameType
from typing import Annotated, Any

import typer
from rich.status import Status

from tidings.counts import plural
from tidings.errors import InputError, SetupError
from tidings.interfaces.cli import output
from tidings.interfaces.cli.options import (
    DEFAULT_HOME,
    AsJson,
    Home,
    Master,
    Store,
    check_master,
    close_spark,
    open_spark,
    open_tidings,
)
from tidings.spark.news import (
    Activity,
    Doing,
    HandedOver,
    MetadataProgress,
    News,
    Progress,
    Repaired,
    Started,
)

INTERRUPTED = 130
MOST_METADATA = 100_000
"""What is applied at once is held in memory at once."""


def run(
    folder: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Read files that appear in this folder instead of the journal."),
    ] = None,
    id: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="FIELD",
            help="With --folder: the field that holds an event's id; else [cyan]id[/].",
        ),
    ] = None,
    metadata_batch: Annotated[
        int,
        typer.Option(
            min=1,
            max=MOST_METADATA,
            metavar="N",
            envvar="TIDINGS_METADATA_BATCH",
            help="How many entries of the log of metadata are applied in one transaction.",
        ),
    ] = 1_000,
    once: Annotated[bool, typer.Option("--once", help="Work through what is there now, then end.")] = False,
    master: Master = None,
    home: Home = DEFAULT_HOME,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Run the stream: read, match, notify. Until Ctrl-C.

    Subscriptions added or removed meanwhile count from the next batch on.
    Killed at any moment and started again it loses no event and writes no
    notification twice. Metadata that was registered with [cyan]--later[/] is applied as well.

    [dim]Examples[/]
      tidings run
      tidings run --folder incoming/
      tidings run --once
    """
    from tidings.operating.loading import load
    from tidings.spark import stream
    from tidings.spark.budget import Budget

    limits = load({} if home == DEFAULT_HOME else {"home": home}).settings.stream
    if id is not None and folder is None:
        raise InputError(
            "--id is for events in a folder: those of the journal have their ids",
            hint="name the folder with --folder, or the field when publishing: tidings publish --id-field",
        )
    if folder is not None:
        _check_folder(folder)
    check_master(master)
    with open_tidings(home, store) as tidings:
        tidings.schema()  # a store that cannot be used is refused before Spark is started
    with Teller(as_json) as tell:
        tell.waits("starting Spark ...")
        session = open_spark(master, log=home / "spark.log")
        try:
            with stopped_by_signals() as stop, ended_with_spark(stop, tell):
                tell.last = stream.run(
                    session,
                    home,
                    tidings.store_url,
                    folder=folder,
                    id_field=id or "id",
                    metadata_batch=metadata_batch,
                    once=once,
                    budget=Budget(limits.step_seconds, limits.step_memory),
                    suspend_after=limits.suspend_after,
                    stop=stop,
                    listener=tell,
                )
        finally:
            close_spark(session)
    if not as_json:
        output.line(ended(tell.last))
        if tell.metadata:
            output.line(metadata_ended(tell.metadata))
    if stop.by == signal.SIGINT:
        raise typer.Exit(INTERRUPTED)


def _check_folder(folder: str) -> None:
    """A mistyped folder would be watched for ever, and nothing would ever come."""
    from tidings.spark.locations import Location

    kind = Location.of(folder).info().type.name
    if kind != "Directory":
        what = "there is no such folder" if kind == "NotFound" else "this is no folder"
        raise InputError(
            what, where="--folder", received=f"'{folder}'", hint=f"make it first: mkdir -p {folder}"
        )


class Stop(threading.Event):
    """Set by a signal, and knows by which."""

    by: int | None = None

    def __call__(self, number: int, _: FrameType | None) -> None:
        self.by = number
        self.set()


@contextmanager
def stopped_by_signals() -> Iterator[Stop]:
    """Ctrl-C and SIGTERM ask the stream to end between two batches, where raising would cut a call to Spark in half."""
    stop = Stop()
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def ended_with_spark(stop: Stop, tell: Teller) -> Iterator[None]:
    """A signal may reach Spark's processes as well, as that of a service manager does. What they fail with then is how
    the stream was asked to end: the next run repeats the batch that was under way.
    """
    try:
        yield
    except SetupError as problem:
        if not stop.is_set():
            raise
        tell.hush()
        output.note(
            f"{problem.what} before the stream did; the next run repeats the batch that was under way"
        )


class Teller:
    """Shows how the stream is doing: one changing line on a terminal, a line a batch elsewhere."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.last = Progress()
        self.metadata: MetadataProgress | None = None
        console = output.console(stderr=True)
        self.status = Status("", console=console) if console.is_terminal and not as_json else None

    def __enter__(self) -> Teller:
        return self

    def __exit__(self, *_: object) -> None:
        self.hush()

    def hush(self) -> None:
        if self.status:
            self.status.stop()

    def waits(self, what: str) -> None:
        if self.status:
            self.status.update(what)
            self.status.start()

    def __call__(self, news: News) -> None:
        if isinstance(news, Repaired):
            output.note(f"mended the checkpoint: {news.what}")
        elif isinstance(news, Started):
            self._started(news)
        elif isinstance(news, Activity):
            self._activity(news)
        elif isinstance(news, HandedOver):
            self._handed_over(news)
        elif isinstance(news, MetadataProgress):
            self.metadata = news
            self._progress({"metadata": asdict(news)}, metadata_progress(news), news.entries)
        else:
            self.last = news
            self._progress(asdict(news), progress(news), news.events)

    def _progress(self, record: dict[str, Any], words: str, count: int) -> None:
        if self.as_json:
            output.json_line(record)
        elif self.status:
            self.status.update(words)
        elif count:
            output.line(words)

    def _handed_over(self, news: HandedOver) -> None:
        words = f"{plural(news.notifications, 'held notification')} handed over"
        if self.as_json:
            output.json_line({"handed_over": news.notifications})
        elif self.status:
            self.status.update(words)
        else:
            output.line(words)

    def _started(self, news: Started) -> None:
        if not self.as_json:
            self.hush()
            output.line(("stream", "bold"), f"reading the {news.source}; Ctrl-C ends it", stderr=True)

    def _activity(self, news: Activity) -> None:
        """Progress stays in view while nothing happens: the last batch says more than that there is none."""
        if news.doing is not Doing.WAITING or not self.last.total_events:
            self.waits(activity(news))


def activity(now: Activity) -> str:
    if now.doing is Doing.STARTING:
        return "starting Spark's workers ..."
    if now.doing is Doing.WAITING:
        return "waiting for publications ..."
    return f"matching {plural(now.publications, 'publication') if now.publications else 'publications'} ..."


def progress(now: Progress) -> str:
    return (
        f"position {now.position:,}, lag {now.lag:,}   {plural(now.total_events, 'publication')}, "
        f"{plural(now.total_notifications, 'notification')}{_held(now)}   "
        f"{plural(now.subscriptions, 'subscription')} in {plural(now.segments, 'segment')}"
    )


def _held(now: Progress) -> str:
    return f", {now.total_held:,} held" if now.total_held else ""


def ended(done: Progress) -> str:
    dead = f", {plural(done.total_dead_letters, 'dead letter')}" if done.total_dead_letters else ""
    return (
        f"{plural(done.total_events, 'publication')}, "
        f"{plural(done.total_notifications, 'notification')}{_held(done)}{dead}"
    )


def metadata_progress(now: MetadataProgress) -> str:
    return (
        f"metadata {now.position:,}, lag {now.lag:,}   {plural(now.total_entries, 'entry')}, "
        f"{moves(now)}   {plural(now.rules, 'triggering rule')} in {plural(now.segments, 'segment')}"
    )


def moves(now: MetadataProgress) -> str:
    told = (now.total_entered, "entered"), (now.total_changed, "changed"), (now.total_left, "left")
    return ", ".join(f"{count:,} {what}" for count, what in told if count) or "nothing moved"


def metadata_ended(done: MetadataProgress) -> str:
    dead = f", {plural(done.total_dead_letters, 'dead letter')}" if done.total_dead_letters else ""
    return f"metadata: {plural(done.total_entries, 'entry')}, {moves(done)}{dead}"
