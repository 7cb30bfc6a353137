"""`run`: the stream of the journal, or of another source."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.status import Status

from tidings.cli import output
from tidings.cli.command import StopSignal, stop_on_signals
from tidings.cli.match import TableOptions
from tidings.cli.options import DEFAULT_HOME, Home, SparkOptions
from tidings.cli.output import Output
from tidings.core.text import plural
from tidings.errors import InputError, SetupError
from tidings.spark.stream.stream_events import (
    Activity,
    ActivityKind,
    DeferredRelease,
    MetadataProgress,
    StreamEvent,
    StreamProgress,
    StreamRepair,
    StreamStart,
    TableProgress,
)

MAX_METADATA_BATCH = 100_000
"""A batch of metadata is held in memory."""


def run(
    home: Home,
    out: Output,
    tables: TableOptions,
    spark: SparkOptions,
    source: Annotated[
        str | None,
        typer.Option(
            metavar="SOURCE",
            help="Read this instead of the journal: `kafka://HOST:PORT/TOPIC`, `table:NAME`, or a folder of JSON "
            "Lines, Parquet, CSV ...",
        ),
    ] = None,
    sink: Annotated[
        str | None,
        typer.Option(
            metavar="SINK",
            help="With --source: write the matches there, `kafka://HOST:PORT/TOPIC`, `table:NAME` or a folder, "
            "instead of publishing into the journal.",
        ),
    ] = None,
    segments: Annotated[
        str | None,
        typer.Option(
            metavar="URI",
            help="With --sink: a location that all executors can read, for the index; by default, in the home folder.",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="ENGINE",
            help="With --sink: index (default), or relational: XML documents by joins, for more XPaths than fit into "
            "memory.",
        ),
    ] = None,
    folder: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Read files that appear in this folder instead of the journal."),
    ] = None,
    id: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="FIELD",
            help="With --folder or --source: the field or column that contains the id of an event (`id`).",
        ),
    ] = None,
    metadata_batch: Annotated[
        int,
        typer.Option(
            min=1,
            max=MAX_METADATA_BATCH,
            metavar="N",
            envvar="TIDINGS_METADATA_BATCH",
            help="How many entries of the metadata log are applied in one transaction.",
        ),
    ] = 1_000,
    once: Annotated[bool, typer.Option("--once", help="Process the existing input, then exit.")] = False,
) -> None:
    """Run the stream until Ctrl-C: read publications, match them, write notifications.

    Examples:
      tidings run
      tidings run --folder incoming/
      tidings run --once
      tidings run --source kafka://broker:9092/orders --sink kafka://broker:9092/matches
      tidings run --source incoming/ --format csv --sink table:shop.matches --explain --keep region
      tidings run --source kafka://broker:9092/quotes --value-format xml --sink matches/ --engine relational
      tidings run --source kafka://broker:9092/orders

    Subscriptions that are added or removed meanwhile take effect with the next batch. You can kill the stream at any
    moment and start it again: no event is lost, and no notification is written twice. Metadata that was registered with
    `--later` is applied as well.

    With `--source` the stream reads any table, topic or folder that Spark reads. It matches its rows and writes the
    matches to `--sink`; rows that are rejected become dead letters (`tidings rejects`). Without `--sink` it publishes
    the rows into the journal, and another `tidings run` or `tidings serve` notifies the subscribers.
    """
    from tidings.cli.operations.run_source import SourceRequest, refuse_options_of_source, run_source
    from tidings.operations.settings_sources import load_settings
    from tidings.spark.stream import runner
    from tidings.spark.stream.budget import Budget

    if source is not None:
        if folder is not None:
            raise InputError(
                "a stream has one source", received="--source and --folder", accepted="one of them"
            )
        request = SourceRequest(source, sink, id or "id", segments, engine, once)
        run_source(home, out, tables, request, spark)
        return
    refuse_options_of_source(tables, sink, segments, engine)
    limits = load_settings({} if home.home == DEFAULT_HOME else {"home": home.home}).settings.stream
    if id is not None and folder is None:
        raise InputError(
            "--id is for events in a folder: those of the journal have their ids",
            hint="name the folder with --folder, or the field when publishing: tidings publish --id-field",
        )
    if folder is not None:
        _check_folder(folder)
    spark.check()
    with home.open() as tidings:
        tidings.schema()  # refuse a store that cannot be used before Spark is started
    with StreamReporter(out.as_json) as reporter:
        reporter.show("starting Spark ...")
        with (
            spark.open(log=home.home / "spark.log") as session,
            stop_on_signals() as stop,
            ignore_errors_after_stop(stop, reporter),
        ):
            reporter.last = runner.run_stream(
                session,
                home.home,
                tidings.store_url,
                folder=folder,
                id_field=id or "id",
                metadata_batch=metadata_batch,
                once=once,
                budget=Budget(limits.step_seconds, limits.step_memory),
                suspend_after=limits.suspend_after,
                stop=stop,
                listener=reporter,
            )
    if not out.as_json:
        assert isinstance(reporter.last, StreamProgress)
        output.print_line(describe_end(reporter.last))
        if reporter.metadata:
            output.print_line(describe_metadata_end(reporter.metadata))
    stop.exit_if_interrupted()


def _check_folder(folder: str) -> None:
    """Refuse a folder that does not exist: a mistyped one would be watched for ever."""
    from tidings.spark.sources.files import Location

    kind = Location.of(folder).info().type.name
    if kind != "Directory":
        message = "there is no such folder" if kind == "NotFound" else "this is not a folder"
        hint = f"create it first: mkdir -p {folder}"
        raise InputError(message, where="--folder", received=f"'{folder}'", hint=hint)


@contextmanager
def ignore_errors_after_stop(stop: StopSignal, reporter: StreamReporter) -> Iterator[None]:
    """Ignore how Spark fails after a signal, which a service manager sends to its processes as well.

    The next run repeats the batch that was interrupted.
    """
    try:
        yield
    except SetupError as problem:
        if not stop.is_set():
            raise
        reporter.hide()
        output.print_note(f"{problem.what} before the stream did; the next run repeats the interrupted batch")


class StreamReporter:
    """Progress of the stream: one changing line on a terminal, one line per batch elsewhere."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.last: StreamProgress | TableProgress = StreamProgress()
        self.metadata: MetadataProgress | None = None
        console = output.make_console(stderr=True)
        self.status = Status("", console=console) if console.is_terminal and not as_json else None

    def __enter__(self) -> StreamReporter:
        return self

    def __exit__(self, *_: object) -> None:
        self.hide()

    def hide(self) -> None:
        if self.status:
            self.status.stop()

    def show(self, text: str) -> None:
        if self.status:
            self.status.update(text)
            self.status.start()

    def __call__(self, news: StreamEvent) -> None:
        if isinstance(news, StreamRepair):
            output.print_note(f"repaired the checkpoint: {news.what}")
        elif isinstance(news, StreamStart):
            self._print_start(news)
        elif isinstance(news, Activity):
            self._activity(news)
        elif isinstance(news, DeferredRelease):
            words = f"{plural(news.notifications, 'deferred notification')} released"
            self._progress({"handed_over": news.notifications}, words, 1)
        elif isinstance(news, MetadataProgress):
            self.metadata = news
            self._progress({"metadata": asdict(news)}, describe_metadata_progress(news), news.entries)
        elif isinstance(news, TableProgress):
            self.last = news
            self._progress(asdict(news), describe_table_progress(news), news.publications)
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

    def _print_start(self, news: StreamStart) -> None:
        if not self.as_json:
            self.hide()
            output.print_line(("stream", "bold"), f"reading the {news.source}; Ctrl-C stops it", stderr=True)
            if news.spark_ui:
                output.print_line(("spark", "bold"), news.spark_ui, stderr=True)

    def _activity(self, news: Activity) -> None:
        """Keep the progress of the last batch while nothing happens."""
        has_begun = isinstance(self.last, StreamProgress) and self.last.total_events
        if news.doing is not ActivityKind.WAITING or not has_begun:
            self.show(show_activity(news))


def show_activity(now: Activity) -> str:
    if now.doing is ActivityKind.STARTING:
        return "starting Spark's workers ..."
    if now.doing is ActivityKind.WAITING:
        return "waiting for publications ..."
    return f"matching {plural(now.publications, 'publication') if now.publications else 'publications'} ..."


def describe_progress(now: StreamProgress) -> str:
    return (
        f"position {now.position:,}, lag {now.lag:,}   {plural(now.total_events, 'publication')}, "
        f"{plural(now.total_notifications, 'notification')}{_describe_deferred(now)}   "
        f"{plural(now.subscriptions, 'subscription')} in {plural(now.segments, 'segment')}"
    )


def _describe_deferred(now: StreamProgress) -> str:
    return f", {now.total_deferred:,} deferred" if now.total_deferred else ""


def describe_end(done: StreamProgress) -> str:
    dead = f", {plural(done.total_dead_letters, 'dead letter')}" if done.total_dead_letters else ""
    return (
        f"{plural(done.total_events, 'publication')}, "
        f"{plural(done.total_notifications, 'notification')}{_describe_deferred(done)}{dead}"
    )


def describe_table_progress(now: TableProgress) -> str:
    lag = "" if now.lag is None else f"lag {now.lag:,}   "
    segments = f" in {plural(now.segments, 'segment')}" if now.segments else ""
    index = f"   {plural(now.subscriptions, 'subscription')}{segments}"
    return f"{lag}{_describe_table_counts(now, has_sink=now.version > 0)}{index if now.version else ''}"


def describe_table_end(done: TableProgress, *, has_sink: bool) -> str:
    listed = "; tidings rejects lists them" if done.total_rejects else ""
    return _describe_table_counts(done, has_sink) + listed


def _describe_table_counts(now: TableProgress, has_sink: bool) -> str:
    if not has_sink:
        return f"{plural(now.total_publications, 'publication')} offered to the journal"
    rejects = f", {plural(now.total_rejects, 'reject')}" if now.total_rejects else ""
    return f"{plural(now.total_publications, 'publication')}, {plural(now.total_matches, 'match')}{rejects}"


def describe_metadata_progress(now: MetadataProgress) -> str:
    return (
        f"metadata {now.position:,}, lag {now.lag:,}   {plural(now.total_entries, 'entry')}, "
        f"{describe_result_changes(now)}   {plural(now.rules, 'triggering rule')} in {plural(now.segments, 'segment')}"
    )


def describe_result_changes(now: MetadataProgress) -> str:
    counts = (now.total_entered, "entered"), (now.total_changed, "changed"), (now.total_left, "left")
    return ", ".join(f"{count:,} {what}" for count, what in counts if count) or "no results changed"


def describe_metadata_end(done: MetadataProgress) -> str:
    dead = f", {plural(done.total_dead_letters, 'dead letter')}" if done.total_dead_letters else ""
    return f"metadata: {plural(done.total_entries, 'entry')}, {describe_result_changes(done)}{dead}"
