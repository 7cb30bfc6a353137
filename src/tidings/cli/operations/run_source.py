"""`run --source`: the stream from any source to any sink, or into the journal."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tidings.cli import output
from tidings.cli.command import stop_on_signals
from tidings.cli.match import TableOptions
from tidings.cli.operations.run import StreamReporter, describe_table_end, ignore_errors_after_stop
from tidings.cli.options import Home, SparkOptions
from tidings.cli.output import Output
from tidings.errors import InputError
from tidings.spark.stream.stream_events import TableProgress

if TYPE_CHECKING:
    from tidings.spark.stream.table_stream.definition import TableStream
    from tidings.spark.stream.table_stream.processor import BatchMatcher


@dataclass(frozen=True, slots=True)
class SourceRequest:
    """Source and sink of a stream, as typed."""

    source: str
    sink: str | None
    id: str
    segments: str | None
    engine: str | None
    once: bool


def run_source(
    home: Home, out: Output, tables: TableOptions, request: SourceRequest, spark: SparkOptions
) -> None:
    """Run the stream from a source to a sink, or into the journal."""
    from tidings.spark.stream.table_stream import table_runner

    spark.check()
    from tidings.spark.stream.table_stream.subscription_publisher import reject_references

    with home.open() as tidings:
        tidings.schema()  # refuse a store that cannot be used before Spark is started
        if request.sink is not None:
            reject_references(tidings.store)
    stream = _build_table_stream(home.home, tidings.store_url, tables, request)
    stream.check()
    with StreamReporter(out.as_json) as reporter:
        reporter.show("starting Spark ...")
        with (
            spark.open(log=home.home / "spark.log") as session,
            stop_on_signals() as stop,
            ignore_errors_after_stop(stop, reporter),
        ):
            done = table_runner.run_table_stream(
                session, stream, once=request.once, stop=stop, listener=reporter
            )
            reporter.last = done
    if not out.as_json and isinstance(reporter.last, TableProgress):
        output.print_line(describe_table_end(reporter.last, has_sink=request.sink is not None))
    stop.exit_if_interrupted()


def _build_table_stream(
    home: Path, store_url: str, tables: TableOptions, request: SourceRequest
) -> TableStream:
    from tidings.spark.stream.table_stream.definition import TableStream

    unused = tables.find_given("explain", "keep", "write_format", "out_option")
    unused = unused or (request.segments and "--segments") or (request.engine and "--engine")
    if request.sink is None and unused:
        raise InputError(
            f"{unused} is for matches that are written to a sink",
            hint="name the sink with --sink; without one, publications go into the journal",
        )
    return TableStream(
        home,
        store_url,
        tables.build_source(request.source),
        None if request.sink is None else tables.build_sink(request.sink),
        id=request.id,
        value=tables.value,
        value_format=tables.value_format,
        explain=tables.explain,
        keep=tuple(tables.keep or ()),
        segments=request.segments,
        matcher=_choose_matcher(request.engine),
    ).resolve()


def _choose_matcher(engine: str | None) -> type[BatchMatcher]:
    from tidings.relational.engine_choice import Engine, parse_name
    from tidings.relational.stream_matcher import RelationalMatcher
    from tidings.spark.stream.table_stream.index_matcher import IndexMatcher

    return RelationalMatcher if parse_name(Engine, engine) is Engine.RELATIONAL else IndexMatcher


def refuse_options_of_source(
    tables: TableOptions, sink: str | None, segments: str | None, engine: str | None
) -> None:
    """Refuse options that need a source where there is none."""
    options = {"--sink": sink, "--segments": segments, "--engine": engine}
    option = next((name for name, value in options.items() if value), None) or tables.find_given()
    if option:
        raise InputError(
            f"{option} needs a source: the journal has publications with ids, and the store is its sink",
            hint="name the source with --source",
        )
