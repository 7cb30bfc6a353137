"""`match`: match a file of subscriptions with files of publications, in one Spark job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from tidings.cli import output
from tidings.cli.options import MasterOption, check_master, open_spark
from tidings.cli.output import Output, exit_if_rejects
from tidings.core.text import plural
from tidings.errors import InputError

if TYPE_CHECKING:
    from tidings.events.schema.event_schema import EventSchema
    from tidings.reference_data.declarations import Reference
    from tidings.spark.batch import job

MAX_SHOWN = 5
"""How many rejects are printed if no file lists them."""

MIN_RATED = 10_000
"""The least number of events or subscriptions for a rate: with fewer, the start of Spark takes most of the time."""


def match(
    out_format: Output,
    subscriptions: Annotated[
        str, typer.Option(metavar="FILE", help="One JSON object per line: id, subscriber, language, text.")
    ],
    publications: Annotated[
        str, typer.Option(metavar="PATH", help="A file or a folder of events, XML documents and graphs.")
    ],
    out: Annotated[
        str, typer.Option(metavar="FOLDER", help="The result: Parquet with publication and subscription.")
    ],
    rejects: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file that lists what was refused, with reasons.")
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
    master: MasterOption = None,
) -> None:
    """Match a file of subscriptions with files of events, documents and graphs, on Spark and without a store.

    Examples:
      tidings match --subscriptions subs.jsonl --publications events/ --out matches.parquet
      tidings match --subscriptions subs.jsonl --publications day.jsonl --id lot --out day.parquet --rejects bad.jsonl
      tidings match ... --references tables.yaml
      tidings match ... --engine relational --plan unroll --unroll 4
      tidings match ... --master spark://cluster:7077 --segments /shared/tidings

    The exit code is 3 if some subscriptions or publications were refused; the others are matched.
    """
    from tidings.relational import engine_choice
    from tidings.spark.batch import job

    check_master(master)
    checked = _load_schema(schema or ())
    tables = _load_references(references)
    request = job.BatchRequest(
        subscriptions, publications, out, rejects, id, checked, force, segments, tables, tuple(taxonomy or ())
    )
    _check_request(request)
    choice = engine_choice.asked_for(request, engine, plan, unroll)
    if choice.is_news:
        out_format.print_note(choice.why)
    with open_spark(master, "starting Spark ...") as session, ProgressBar(out_format.as_json) as bar:
        summary = engine_choice.match(session, request, choice, bar)
    _print_summary(summary, rejects, out_format)
    exit_if_rejects(summary.rejects)


def _check_request(request: job.BatchRequest) -> None:
    """Refuse obvious mistakes before Spark is started, which takes seconds."""
    from tidings.spark.batch import job
    from tidings.spark.sources.files import Location

    for option, path in (
        ("--subscriptions", request.subscriptions),
        ("--publications", request.publications),
    ):
        if Location.of(path).info().type.name == "NotFound":
            raise InputError(f"{option}: no such file or folder", received=f"'{path}'")
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
            self.progress.update(self.task, completed=news.bytes_done, total=news.bytes_total, counts=counts)


def _describe_index(built: job.IndexBuilt) -> str:
    segments = plural(built.segments, "segment")
    subscriptions = plural(built.subscriptions, "subscription")
    each = f" ({built.bytes_each:.0f} bytes each)" if built.subscriptions >= MIN_RATED else ""
    return f"{subscriptions} -> {segments} in {built.seconds:.1f} s{each}"


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
        output.print_line(f"{rejects} lists what was refused", stderr=True)
        return
    for reject in summary.examples[:MAX_SHOWN]:
        output.print_refusal(f"{reject.what} {reject.id}", reject.reason, reject.facts.get("hint"))
    if summary.rejects > MAX_SHOWN:
        output.print_note(f"... and {summary.rejects - MAX_SHOWN:,} more; --rejects FILE lists them all")
