"""`match`: match a file of subscriptions with files of publications, in one Spark job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from tidings.cli import output
from tidings.cli.options import SparkOptions, parse_pairs
from tidings.cli.output import Output, exit_if_rejects
from tidings.core.text import plural
from tidings.errors import InputError

if TYPE_CHECKING:
    from tidings.events.schema.event_schema import EventSchema
    from tidings.reference_data.declarations import Reference
    from tidings.spark.batch import job
    from tidings.spark.batch.spark_table import Table

MAX_SHOWN = 5
"""Maximum number of rejects that are printed without a file for them."""

MIN_RATED = 10_000
"""The least number of events or subscriptions for a rate: with fewer, the start of Spark takes most of the time."""


@dataclass(frozen=True)
class TableOptions:
    """Options for publications that Spark reads, such as tables, Parquet, CSV or Kafka, and for where matches go."""

    format: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT",
            help="How Spark reads the publications: parquet, csv, json, text, orc, delta, iceberg, kafka, jdbc ... "
            "By default chosen by the names of the files.",
        ),
    ] = None
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="An option of that format, such as `header=true`; repeatable."
        ),
    ] = None
    value: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The column that holds each publication as text or bytes; by default `value` if there is such a "
            "column, else all columns are the event.",
        ),
    ] = None
    value_format: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT", help="What that column holds: json (default), xml, rdf or a media type."
        ),
    ] = None
    explain: Annotated[bool, typer.Option("--explain", help="Add the reasons for each match.")] = False
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column of the publications to pass through; repeatable."),
    ] = None
    write_format: Annotated[
        str | None,
        typer.Option(
            "--out-format", metavar="FORMAT", help="How Spark writes the matches; `parquet` by default."
        ),
    ] = None
    out_option: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="An option of that format; repeatable.")
    ] = None

    def are_meant(self, subscriptions: str, publications: str, out: str) -> bool:
        """Return whether Spark reads or writes a table here, rather than the reader of publication files."""
        from tidings.spark.batch.spark_table import TABLE_PREFIX, is_table

        return (
            any(getattr(self, each.name) for each in fields(self))
            or out.startswith(TABLE_PREFIX)
            or is_table(publications, None)
            or is_table(subscriptions, None)
        )

    def refuse(self, options: Mapping[str, object]) -> None:
        """Refuse options that only the reader of publication files has."""
        names = [name for name, value in options.items() if value is not None]
        if names:
            raise InputError(
                f"{names[0]} does not apply to tables that Spark reads",
                hint="join tables with Spark first; the index travels with the job",
            )

    def build_tables(self, subscriptions: str, publications: str, out: str) -> tuple[Table, Table, Table]:
        """Build the tables of subscriptions, publications and matches."""
        from tidings.spark.batch.spark_table import Table

        read = Table(publications, self.format, parse_pairs("--option", self.option))
        written = Table(out, self.write_format, parse_pairs("--out-option", self.out_option))
        return Table(subscriptions), read, written

    def build_source(self, address: str) -> Table:
        """Build the table that a stream reads, which may be a Kafka topic."""
        from tidings.spark.batch.spark_table import SOURCE, Table

        return Table.at(address, SOURCE, self.format, parse_pairs("--option", self.option))

    def build_sink(self, address: str) -> Table:
        """Build the table that a stream writes, which may be a Kafka topic."""
        from tidings.spark.batch.spark_table import SINK, Table

        return Table.at(address, SINK, self.write_format, parse_pairs("--out-option", self.out_option))

    def find_given(self, *names: str) -> str | None:
        """Return the first option that was given, of those with these names or of all."""
        given_names = (each.name for each in fields(self) if getattr(self, each.name))
        option = next((option for option in given_names if not names or option in names), None)
        renamed = {"write_format": "out_format"}
        return option and "--" + renamed.get(option, option).replace("_", "-")


def match(
    out_format: Output,
    tables: TableOptions,
    spark: SparkOptions,
    publications: Annotated[
        str,
        typer.Option(
            metavar="PATH",
            help="A file or a folder of events, XML documents and graphs; or a table: `table:NAME`, Parquet, CSV, ...",
        ),
    ],
    out: Annotated[str, typer.Option(metavar="FOLDER", help="The result, as Parquet; or `table:NAME`.")],
    subscriptions: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="JSON Lines with id, subscriber, language, text; or a table: `table:NAME`, a Parquet or CSV file.",
        ),
    ] = None,
    kept_tables: Annotated[
        str | None,
        typer.Option(
            "--tables",
            metavar="FOLDER",
            help="Instead of --subscriptions: tables of XPaths that `tidings tables create` has made.",
        ),
    ] = None,
    rejects: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file for the rejects, with reasons.")
    ] = None,
    id: Annotated[
        str, typer.Option("--id", metavar="FIELD", help="The field that contains the id of an event.")
    ] = "id",
    schema: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="Check both sides against this event schema; repeat it for extensions."
        ),
    ] = None,
    references: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Join publications with the reference tables of this YAML file first."
        ),
    ] = None,
    taxonomy: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="A taxonomy for subscriptions to graphs, as RDFS; may be repeated."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing result.")] = False,
    segments: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            file_okay=False,
            help="A folder that all executors can read, for the index of the job; by default, beside the result.",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="ENGINE",
            help="index, or relational: joins, for more XPaths than fit into memory. By default chosen by size.",
        ),
    ] = None,
    plan: Annotated[
        str | None,
        typer.Option(
            metavar="PLAN",
            help="The joins of the relational engine: share, share-bucket or unroll. By default chosen by size.",
        ),
    ] = None,
    unroll: Annotated[
        int | None, typer.Option(metavar="K", help="The number of predicates per row in the plan unroll.")
    ] = None,
) -> None:
    """Match subscriptions with files of events, documents and graphs, or with tables, on Spark and without a store.

    Examples:
      tidings match --subscriptions subs.jsonl --publications events/ --out matches.parquet
      tidings match --subscriptions subs.jsonl --publications day.jsonl --id lot --out day.parquet --rejects bad.jsonl
      tidings match --subscriptions table:subs --publications table:shop.orders --out table:shop.matches
      tidings match --subscriptions subs.csv --publications orders.parquet --out matches --explain --keep region
      tidings match ... --format kafka --option kafka.bootstrap.servers=localhost:9092 --option subscribe=orders
      tidings match ... --references tables.yaml
      tidings match ... --engine relational --plan unroll --unroll 4
      tidings match --tables /shared/tables --publications documents/ --out matches.parquet
      tidings match ... --master spark://cluster:7077 --segments /shared/tidings

    The exit code is 3 if some subscriptions or publications were refused; the others are matched.
    """
    spark.check()
    checked, taxonomies = _load_schema(schema or ()), tuple(taxonomy or ())
    subscriptions = _choose_subscriptions(subscriptions, kept_tables, engine, plan, unroll)
    if tables.are_meant(subscriptions, publications, out):
        unused = {"--references": references, "--segments": segments, "--engine": engine, "--plan": plan}
        tables.refuse(unused | {"--unroll": unroll, "--tables": kept_tables})
        places = subscriptions, publications, out
        summary = _match_tables(places, tables, rejects, id, checked, taxonomies, force, spark, out_format)
    else:
        from tidings.relational import engine_choice
        from tidings.spark.batch import job

        loaded = _load_references(references)
        request = job.BatchRequest(
            subscriptions, publications, out, rejects, id, checked, force, segments, loaded, taxonomies
        )
        _check_request(request, "--subscriptions" if kept_tables is None else "--tables")
        if kept_tables is not None:
            summary = _match_kept_tables(request, spark)
        else:
            choice = engine_choice.asked_for(request, engine, plan, unroll)
            if choice.is_news:
                out_format.print_note(choice.why)
            with spark.open("starting Spark ...") as session, ProgressBar(out_format.as_json) as bar:
                summary = engine_choice.match(session, request, choice, bar)
    _print_summary(summary, rejects, out_format)
    exit_if_rejects(summary.rejects)


def _choose_subscriptions(
    subscriptions: str | None,
    kept_tables: str | None,
    engine: str | None,
    plan: str | None,
    unroll: int | None,
) -> str:
    """Return the file or the folder with the subscriptions; refuse options that contradict it."""
    if (subscriptions is None) == (kept_tables is None):
        received = "neither" if subscriptions is None else "both"
        raise InputError(
            "where are the subscriptions?",
            received=received,
            accepted="--subscriptions FILE or --tables FOLDER",
        )
    if kept_tables is None:
        assert subscriptions is not None
        return subscriptions
    if engine not in (None, "relational"):
        raise InputError(
            "tables are matched by the relational engine",
            received=f"--engine {engine}",
            hint="leave out --engine, or name a file: --subscriptions FILE",
        )
    given = "--plan" if plan is not None else "--unroll" if unroll is not None else None
    if given:
        raise InputError(
            f"{given} does not apply to tables, whose plan is settled",
            hint=f"tidings tables show {kept_tables}",
        )
    return kept_tables


def _match_kept_tables(request: job.BatchRequest, spark: SparkOptions) -> job.BatchSummary:
    from tidings.relational import job as relational_job
    from tidings.relational.tables import Version

    Version.read(request.subscriptions)  # refuse a folder without tables before Spark is started
    with spark.open("starting Spark ...") as session:
        return relational_job.run_with_tables(session, request)


def _match_tables(
    places: tuple[str, str, str],
    tables: TableOptions,
    rejects: Path | None,
    id: str,
    schema: EventSchema | None,
    taxonomies: tuple[Path, ...],
    force: bool,
    spark: SparkOptions,
    out_format: Output,
) -> job.BatchSummary:
    """Match tables that Spark reads, and write a table."""
    from tidings.spark.batch import table_job

    request = table_job.TableRequest(
        *tables.build_tables(*places),
        rejects=rejects,
        id=id,
        value=tables.value,
        value_format=tables.value_format,
        explain=tables.explain,
        keep=tuple(tables.keep or ()),
        schema=schema,
        taxonomies=taxonomies,
        force=force,
    )
    table_job.check_table_request(request)
    with spark.open("starting Spark ...") as session, ProgressBar(out_format.as_json) as bar:
        return table_job.run_table_job(session, request, bar)


def _check_request(request: job.BatchRequest, option: str) -> None:
    """Refuse obvious mistakes before Spark is started, which takes seconds; `option` names the subscriptions."""
    from tidings.spark.batch import job
    from tidings.spark.sources.files import Location

    for name, path in ((option, request.subscriptions), ("--publications", request.publications)):
        if Location.of(path).info().type.name == "NotFound":
            raise InputError(f"{name}: no such file or folder", received=f"'{path}'")
    job.check_request(request)


def _load_schema(paths: Sequence[Path]) -> EventSchema | None:
    """Return the schema of all files together; None without files."""
    from tidings.events.schema.event_schema import EventSchema
    from tidings.events.schema.extension import extend
    from tidings.events.schema.files import load_parts

    schema = EventSchema()
    for path in paths:
        schema = extend(schema, load_parts(path)).schema
    return schema if paths else None


def _load_references(path: Path | None) -> tuple[Reference, ...]:
    """Return the reference tables that a file declares."""
    from tidings.reference_data.declarations import load

    return () if path is None else load(path)


class ProgressBar:
    """Progress of the job on a terminal, with a line when the index is built."""

    def __init__(self, as_json: bool) -> None:
        self.quiet = as_json
        console = output.make_console(stderr=True)
        columns = (TextColumn("publications"), BarColumn(20), TextColumn("{task.fields[counts]}"))
        self.progress = Progress(
            *columns, console=console, transient=True, disable=not console.is_terminal or as_json
        )
        self.task: TaskID = self.progress.add_task("publications", total=None, counts="")

    def __enter__(self) -> ProgressBar:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def __call__(self, news: job.IndexBuilt | job.BatchProgress) -> None:
        from tidings.spark.batch.job import IndexBuilt

        if isinstance(news, IndexBuilt):
            if not self.quiet:
                self.progress.console.print(_describe_index(news), markup=False)
        else:
            counts = _describe_counts(news.events, news.seconds, news.matches, news.rejects)
            self.progress.update(self.task, completed=news.done, total=news.total, counts=counts)


def _describe_index(built: job.IndexBuilt) -> str:
    segments = plural(built.segments, "segment")
    subscriptions = plural(built.subscriptions, "subscription")
    size = f" ({built.bytes_each:.0f} bytes each)" if built.subscriptions >= MIN_RATED else ""
    return f"{subscriptions} -> {segments} in {built.seconds:.1f} s{size}"


def _describe_counts(events: int, seconds: float, matches: int, rejects: int) -> str:
    rate = f"  {events / seconds:,.0f}/s" if events >= MIN_RATED and seconds else ""
    return f"{events:,}{rate}   {plural(matches, 'match')}   {plural(rejects, 'reject')}"


def _describe_rejects(summary: job.BatchSummary) -> str:
    """Return how many were refused on each side: ` (1 subscription, 7 publications)`."""
    counts = (
        (summary.rejected_subscriptions, "subscription"),
        (summary.rejected_publications, "publication"),
    )
    shown = ", ".join(plural(count, what) for count, what in counts if count)
    return f" ({shown})" if shown else ""


def _print_summary(summary: job.BatchSummary, rejects: Path | None, out: Output) -> None:
    counts = _describe_counts(summary.events, summary.match_seconds, summary.matches, summary.rejects)
    line = f"publications ████████████████████ {counts}{_describe_rejects(summary)}"
    out.print_record(asdict(summary), line)
    if out.as_json:
        return
    if rejects is not None and summary.rejects:
        output.print_line(f"{rejects} lists the rejects", stderr=True)
        return
    for reject in summary.examples[:MAX_SHOWN]:
        output.print_refusal(f"{reject.what} {reject.id}", reject.reason, reject.facts.get("hint"))
    if summary.rejects > MAX_SHOWN:
        output.print_note(f"... and {summary.rejects - MAX_SHOWN:,} more; --rejects FILE lists them all")
