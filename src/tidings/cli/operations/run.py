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

from tidings.cli import output
from tidings.cli.options import (
    DEFAULT_HOME,
    HomeOption,
    JsonOption,
    MasterOption,
    StoreOption,
    check_master,
    close_spark,
    open_spark,
    open_tidings,
)
from tidings.core.text import plural
from tidings.errors import InputError, SetupError
from tidings.spark.stream.progress import (
    Activity,
    ActivityKind,
    DeferredRelease,
    MetadataProgress,
    StreamEvent,
    StreamProgress,
    StreamRepair,
    StreamStart,
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
    master: MasterOption = None,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
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
    from tidings.operations.settings_sources import load_settings
    from tidings.spark.stream import runner
    from tidings.spark.stream.budget import Budget

    limits = load_settings({} if home == DEFAULT_HOME else {"home": home}).settings.stream
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
    with StreamReporter(as_json) as tell:
        tell.waits("starting Spark ...")
        session = open_spark(master, log=home / "spark.log")
        try:
            with stop_on_signals() as stop, ignore_errors_after_stop(stop, tell):
                tell.last = runner.run_stream(
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
        output.print_line(describe_end(tell.last))
        if tell.metadata:
            output.print_line(describe_metadata_end(tell.metadata))
    if stop.by == signal.SIGINT:
        raise typer.Exit(INTERRUPTED)


def _check_folder(folder: str) -> None:
    """A mistyped folder would be watched for ever, and nothing would ever come."""
    from tidings.spark.sources.files import Location

    kind = Location.of(folder).info().type.name
    if kind != "Directory":
        what = "there is no such folder" if kind == "NotFound" else "this is no folder"
        raise InputError(
            what, where="--folder", received=f"'{folder}'", hint=f"make it first: mkdir -p {folder}"
        )


class StopSignal(threading.Event):
    """Set by a signal, and knows by which."""

    by: int | None = None

    def __call__(self, number: int, _: FrameType | None) -> None:
        self.by = number
        self.set()


@contextmanager
def stop_on_signals() -> Iterator[StopSignal]:
    """Ctrl-C and SIGTERM ask the stream to end between two batches, where raising would cut a call to Spark in half."""
    stop = StopSignal()
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def ignore_errors_after_stop(stop: StopSignal, tell: StreamReporter) -> Iterator[None]:
    """A signal may reach Spark's processes as well, as that of a service manager does. What they fail with then is how
    the stream was asked to end: the next run repeats the batch that was under way.
    """
    try:
        yield
    except SetupError as problem:
        if not stop.is_set():
            raise
        tell.hush()
        output.print_note(
            f"{problem.what} before the stream did; the next run repeats the batch that was under way"
        )


class StreamReporter:
    """Shows how the stream is doing: one changing line on a terminal, a line a batch elsewhere."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.last = StreamProgress()
        self.metadata: MetadataProgress | None = None
        console = output.make_console(stderr=True)
        self.status = Status("", console=console) if console.is_terminal and not as_json else None

    def __enter__(self) -> StreamReporter:
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

    def __call__(self, news: StreamEvent) -> None:
        if isinstance(news, StreamRepair):
            output.print_note(f"mended the checkpoint: {news.what}")
        elif isinstance(news, StreamStart):
            self._started(news)
        elif isinstance(news, Activity):
            self._activity(news)
        elif isinstance(news, DeferredRelease):
            self._handed_over(news)
        elif isinstance(news, MetadataProgress):
            self.metadata = news
            self._progress({"metadata": asdict(news)}, describe_metadata_progress(news), news.entries)
        else:
            self.last = news
            self._progress(asdict(news), describe_progress(news), news.events)

    def _progress(self, record: dict[str, Any], words: str, count: int) -> None:
        if self.as_json:
            output.print_json(record)
        elif self.status:
            self.status.update(words)
        elif count:
            output.print_line(words)

    def _handed_over(self, news: DeferredRelease) -> None:
        words = f"{plural(news.notifications, 'held notification')} handed over"
        if self.as_json:
            output.print_json({"handed_over": news.notifications})
        elif self.status:
            self.status.update(words)
        else:
            output.print_line(words)

    def _started(self, news: StreamStart) -> None:
        if not self.as_json:
            self.hush()
            output.print_line(("stream", "bold"), f"reading the {news.source}; Ctrl-C ends it", stderr=True)

    def _activity(self, news: Activity) -> None:
        """Progress stays in view while nothing happens: the last batch says more than that there is none."""
        if news.doing is not ActivityKind.WAITING or not self.last.total_events:
            self.waits(show_activity(news))


def show_activity(now: Activity) -> str:
    if now.doing is ActivityKind.STARTING:
        return "starting Spark's workers ..."
    if now.doing is ActivityKind.WAITING:
        return "waiting for publications ..."
    return f"matching {plural(now.publications, 'publication') if now.publications else 'publications'} ..."


def describe_progress(now: StreamProgress) -> str:
    return (
        f"position {now.position:,}, lag {now.lag:,}   {plural(now.total_events, 'publication')}, "
        f"{plural(now.total_notifications, 'notification')}{_held(now)}   "
        f"{plural(now.subscriptions, 'subscription')} in {plural(now.segments, 'segment')}"
    )


def _held(now: StreamProgress) -> str:
    return f", {now.total_held:,} held" if now.total_held else ""


def describe_end(done: StreamProgress) -> str:
    dead = f", {plural(done.total_dead_letters, 'dead letter')}" if done.total_dead_letters else ""
    return (
        f"{plural(done.total_events, 'publication')}, "
        f"{plural(done.total_notifications, 'notification')}{_held(done)}{dead}"
    )


def describe_metadata_progress(now: MetadataProgress) -> str:
    return (
        f"metadata {now.position:,}, lag {now.lag:,}   {plural(now.total_entries, 'entry')}, "
        f"{describe_result_changes(now)}   {plural(now.rules, 'triggering rule')} in {plural(now.segments, 'segment')}"
    )


def describe_result_changes(now: MetadataProgress) -> str:
    told = (now.total_entered, "entered"), (now.total_changed, "changed"), (now.total_left, "left")
    return ", ".join(f"{count:,} {what}" for count, what in told if count) or "nothing moved"


def describe_metadata_end(done: MetadataProgress) -> str:
    dead = f", {plural(done.total_dead_letters, 'dead letter')}" if done.total_dead_letters else ""
    return f"metadata: {plural(done.total_entries, 'entry')}, {describe_result_changes(done)}{dead}"
