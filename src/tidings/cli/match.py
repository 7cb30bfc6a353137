"""`match`: millions of subscriptions against files of publications, in one Spark job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from tidings.cli import output
from tidings.cli.options import JsonOption, MasterOption, check_master, close_spark, open_spark
from tidings.core.text import plural
from tidings.errors import InputError

if TYPE_CHECKING:
    from tidings.events.schema.event_schema import EventSchema
    from tidings.reference_data.declarations import Reference
    from tidings.spark.batch import job

MOST_SHOWN = 5
"""How many rejects are shown when no file takes them all."""

PROGRESS_STEP = 10_000
"""Of fewer events or subscriptions, what one costs says only how long Spark takes to start."""


def match(
    subscriptions: Annotated[
        str, typer.Option(metavar="FILE", help="A JSON object a line: id, subscriber, language, text.")
    ],
    publications: Annotated[
        str, typer.Option(metavar="PATH", help="A file or a folder of events, XML documents and graphs.")
    ],
    out: Annotated[
        str, typer.Option(metavar="FOLDER", help="The result: Parquet with publication and subscription.")
    ],
    rejects: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to list what was refused, with reasons.")
    ] = None,
    id: Annotated[
        str, typer.Option("--id", metavar="FIELD", help="The field that holds an event's id.")
    ] = "id",
    schema: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="Check both sides against this event schema; several extend it in turn."
        ),
    ] = None,
    references: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Join publications with the reference tables in this YAML file first."
        ),
    ] = None,
    taxonomy: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="A taxonomy for subscriptions to graphs, as RDFS; may be repeated."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a result that is there.")] = False,
    segments: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            file_okay=False,
            help="A folder that every executor sees, for the index while the job runs; else beside the result.",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="ENGINE",
            help="index, or relational: joins, for more XPaths than memory holds; else chosen by size.",
            show_default=False,
        ),
    ] = None,
    plan: Annotated[
        str | None,
        typer.Option(
            metavar="PLAN",
            help="How the relational engine joins: share, share-bucket or unroll; else chosen by size.",
            show_default=False,
        ),
    ] = None,
    unroll: Annotated[
        int | None,
        typer.Option(
            metavar="K", help="How many predicates a row has in the plan unroll.", show_default=False
        ),
    ] = None,
    master: MasterOption = None,
    as_json: JsonOption = False,
) -> None:
    """Match a file of subscriptions against files of events, documents and graphs, on Spark, without a store.

    Exit code 3 if some subscriptions or publications were refused; the rest is done.

    [dim]Examples[/]
      tidings match --subscriptions subs.jsonl --publications events/ --out matches.parquet
      tidings match --subscriptions subs.jsonl --publications day.jsonl --id lot --out day.parquet --rejects bad.jsonl
      tidings match ... --references tables.yaml
      tidings match ... --engine relational --plan unroll --unroll 4
      tidings match ... --master spark://cluster:7077 --segments /shared/tidings
    """
    from tidings.relational import engine_choice
    from tidings.spark.batch import job

    check_master(master)
    checked = _schema(schema or ())
    tables = _references(references)
    request = job.BatchRequest(
        subscriptions, publications, out, rejects, id, checked, force, segments, tables, tuple(taxonomy or ())
    )
    _refuse_early(request)
    choice = engine_choice.asked_for(request, engine, plan, unroll)
    if not as_json and choice.is_news:
        output.print_note(choice.why)
    with output.show_spinner("starting Spark ..."):
        session = open_spark(master)
    try:
        with ProgressBar(as_json) as bar:
            summary = engine_choice.match(session, request, choice, bar)
    finally:
        close_spark(session)
    _show(summary, rejects, as_json)
    if summary.rejects:
        raise typer.Exit(output.EXIT_WITH_REJECTS)


def _refuse_early(request: job.BatchRequest) -> None:
    """What is plainly wrong is said before Spark is started, which takes seconds."""
    from tidings.spark.batch import job
    from tidings.spark.sources.files import Location

    for option, path in (
        ("--subscriptions", request.subscriptions),
        ("--publications", request.publications),
    ):
        if Location.of(path).info().type.name == "NotFound":
            raise InputError(f"{option}: no such file or folder", received=f"'{path}'")
    job.check_request(request)


def _schema(paths: Sequence[Path]) -> EventSchema | None:
    """The schema that the files make together; none without files."""
    from tidings.events.schema.event_schema import EventSchema
    from tidings.events.schema.extension import extend
    from tidings.events.schema.files import load_parts

    schema = EventSchema()
    for path in paths:
        schema = extend(schema, load_parts(path)).schema
    return schema if paths else None


def _references(path: Path | None) -> tuple[Reference, ...]:
    """The reference tables that a file declares; none without a file."""
    from tidings.reference_data.declarations import load

    return () if path is None else load(path)


class ProgressBar:
    """Draws how far the job is, on terminals; says when the index is built."""

    def __init__(self, as_json: bool) -> None:
        self.quiet = as_json
        console = output.make_console(stderr=True)
        columns = (TextColumn("publications"), BarColumn(20), TextColumn("{task.fields[told]}"))
        self.progress = Progress(
            *columns, console=console, transient=True, disable=not console.is_terminal or as_json
        )
        self.task: TaskID = self.progress.add_task("publications", total=None, told="")

    def __enter__(self) -> ProgressBar:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def __call__(self, news: job.IndexBuilt | job.BatchProgress) -> None:
        from tidings.spark.batch.job import IndexBuilt

        if isinstance(news, IndexBuilt):
            if not self.quiet:
                self.progress.console.print(_built(news), markup=False)
        else:
            told = _told(news.events, news.seconds, news.matches, news.rejects)
            self.progress.update(self.task, completed=news.bytes_done, total=news.bytes_total, told=told)


def _built(built: job.IndexBuilt) -> str:
    segments = plural(built.segments, "segment")
    subscriptions = plural(built.subscriptions, "subscription")
    each = f" ({built.bytes_each:.0f} bytes each)" if built.subscriptions >= PROGRESS_STEP else ""
    return f"{subscriptions} -> {segments} in {built.seconds:.1f} s{each}"


def _told(events: int, seconds: float, matches: int, rejects: int) -> str:
    rate = f"  {events / seconds:,.0f}/s" if events >= PROGRESS_STEP and seconds else ""
    return f"{events:,}{rate}   {plural(matches, 'match')}   {plural(rejects, 'reject')}"


def _rejected(summary: job.BatchSummary) -> str:
    """`(1 subscription, 7 publications)`: who has to mend something."""
    counts = (
        (summary.rejected_subscriptions, "subscription"),
        (summary.rejected_publications, "publication"),
    )
    said = ", ".join(plural(count, what) for count, what in counts if count)
    return f" ({said})" if said else ""


def _show(summary: job.BatchSummary, rejects: Path | None, as_json: bool) -> None:
    if as_json:
        output.print_json(asdict(summary))
        return
    told = _told(summary.events, summary.match_seconds, summary.matches, summary.rejects)
    output.print_line(f"publications ████████████████████ {told}{_rejected(summary)}")
    if rejects is not None and summary.rejects:
        output.print_line(f"what was refused is in {rejects}", stderr=True)
        return
    for reject in summary.examples[:MOST_SHOWN]:
        output.print_refusal(f"{reject.what} {reject.id}", reject.reason, reject.facts.get("hint"))
    if summary.rejects > MOST_SHOWN:
        output.print_note(f"... and {summary.rejects - MOST_SHOWN:,} more; --rejects FILE lists them all")
