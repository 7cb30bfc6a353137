"""`model notify` and `model changes`: notifications about changes of objects, from outboxes or from a log on Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.cli import output
from tidings.cli.command import make_group, stop_on_signals
from tidings.cli.objects.model import (
    ModelReference,
    PropagationLimits,
    check,
    diagram,
    read_model,
    show,
    triggers,
)
from tidings.cli.options import FollowFlag, Home, MasterOption, check_master, check_storable, open_spark
from tidings.cli.output import EXIT_WITH_REJECTS, Output, exit_if_rejects
from tidings.core.text import plural
from tidings.errors import InputError, TidingsError

if TYPE_CHECKING:
    from tidings.objects.cdc.object_changes import ChangeResults
    from tidings.objects.sql.object_store import ObjectSource
    from tidings.service.outbox_worker import DrainResult, OutboxEvent, OutboxOptions
    from tidings.service.tidings import Tidings


def notify(
    home: Home,
    out: Output,
    model: Annotated[
        str | None,
        typer.Argument(metavar="FILE|MODULE:BASE", help="A model, as in `tidings model check`; with --from."),
    ] = None,
    database: Annotated[
        str | None, typer.Option("--from", metavar="URL", help="The database with the triggers.")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="One of the databases that `tidings objects add` has added; by default all of them. With --from, a "
            "name instead of that of the database.",
        ),
    ] = None,
    follow: FollowFlag = False,
    batch: Annotated[
        int,
        typer.Option(
            min=1,
            callback=check_storable,
            metavar="N",
            help="How many changes are processed in one transaction.",
        ),
    ] = 1_000,
    notify_author: Annotated[
        bool, typer.Option("--notify-author", help="Notify the authors of the changes as well.")
    ] = False,
    publish: Annotated[
        bool,
        typer.Option(
            "--publish",
            help="Publish the changes as events as well: subscriptions may use `class`, `kind`, `changed`, "
            "`before.NAME`, `after.NAME` and `now.NAME`.",
        ),
    ] = False,
) -> None:
    """Turn the changes that triggers have recorded in a database into notifications, and empty its outbox.

    Examples:
      tidings model notify
      tidings model notify --source university --follow
      tidings model notify university.puml --from sqlite:///university.db

    Each change is processed once, in order, even if the command is killed or runs twice at the same time.
    """
    from tidings.service.outbox_worker import OutboxOptions

    with home.open() as tidings:
        sources = _choose_sources(tidings, model, database, source)
        options = OutboxOptions(batch, notify_author, publish)
        if follow:
            _follow_outboxes(tidings, sources, options, out)
            return
        codes = [_drain_once(tidings, each, options, out, alone=len(sources) == 1) for each in sources]
    if any(codes):
        raise typer.Exit(min(code for code in codes if code))


def _choose_sources(
    tidings: Tidings, model: str | None, database: str | None, name: str | None
) -> Sequence[ObjectSource]:
    from tidings.objects.sources import SourceRegistry, build_unregistered_source

    if model is not None and database is not None:
        return [build_unregistered_source(model, database, name)]
    if model is not None or database is not None:
        accepted = "MODEL --from URL, or neither: tidings objects add stores them"
        raise InputError("a model and a database belong together", where="model notify", accepted=accepted)
    registry = SourceRegistry(tidings.store)
    return [registry.select(name)] if name is not None else (registry.list_sources() or [registry.select()])


def _drain_once(
    tidings: Tidings, source: ObjectSource, options: OutboxOptions, out: Output, alone: bool
) -> int:
    """Drain an outbox; return the exit code. A database that fails does not stop the others."""
    from tidings.objects.sources import open_source
    from tidings.service.outbox_worker import DrainResult, drain_outbox

    total = DrainResult(source.name, 0, 0, 0)
    try:
        with open_source(source) as opened:
            for drained in drain_outbox(tidings, opened, options):
                total = total + drained
    except TidingsError as problem:
        if alone:
            raise
        out.print_error(problem)
        return problem.exit_code
    _print_event(total, out)
    return EXIT_WITH_REJECTS if total.dead else 0


def _print_event(event: OutboxEvent, out: Output) -> None:
    from tidings.service.outbox_worker import SourceRecovered, SourceUnreachable

    if out.as_json:
        record = {"event": event.label, **asdict(event)}
        problem = {"problem": event.problem.facts()} if isinstance(event, SourceUnreachable) else {}
        output.print_json(record | problem)
    elif isinstance(event, SourceUnreachable):
        output.print_line((event.source, "bold yellow"), event.problem.headline(), "retrying", stderr=True)
    elif isinstance(event, SourceRecovered):
        output.print_line((event.source, "bold green"), "is back", stderr=True)
    else:
        output.print_line((event.source, "bold cyan"), *_list_counts(event))


def _list_counts(drained: DrainResult) -> Iterator[str]:
    yield plural(drained.changes, "change")
    yield plural(drained.new, "notification")
    if drained.repeated:
        yield f"{drained.repeated:,} notified before"
    if drained.published:
        yield plural(drained.published, "event")
    if drained.dead:
        yield plural(drained.dead, "dead letter")


def _follow_outboxes(
    tidings: Tidings, sources: Sequence[ObjectSource], options: OutboxOptions, out: Output
) -> None:
    """Drain outboxes until a signal; the current batch is completed."""
    from tidings.service.outbox_worker import OutboxFollower

    out.print_note(f"following {', '.join(each.name for each in sources)}; Ctrl-C stops it")
    with stop_on_signals() as stop:
        OutboxFollower(tidings, options).follow(sources, lambda event: _print_event(event, out), stop)
    stop.exit_if_interrupted()


# `model changes`.


MAX_SHOWN = 5
"""Maximum number of printed rejects."""

BATCH_SIZE = 1_000
"""Number of changes that are written in one transaction."""


def changes(
    limits: PropagationLimits,
    home: Home,
    out: Output,
    model: ModelReference,
    log: Annotated[
        str, typer.Option("--from", metavar="PATH", help="Debezium envelopes: a file, or a folder of files.")
    ],
    base: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TABLE=PATH",
            help="A table before the changes: Parquet, or CSV with a header; repeat it for each table.",
        ),
    ] = None,
    watches: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Watches: subscriber_class, subscriber_key, class, key."),
    ] = None,
    folder: Annotated[
        str | None, typer.Option("--out", metavar="FOLDER", help="Write the notifications there, as Parquet.")
    ] = None,
    to_store: Annotated[bool, typer.Option("--notify", help="Write the notifications to the store.")] = False,
    source: Annotated[
        str | None, typer.Option(metavar="NAME", help="A name for the source; by default, that of the log.")
    ] = None,
    master: MasterOption = None,
) -> None:
    """Find on Spark the subscribers of the changes in a log, with reasons: for change data capture and nightly loads.

    Examples:
      tidings model changes university.puml --from cdc/ --base attends=attends.parquet
      tidings model changes university.puml --from cdc/ --out notified.parquet
      tidings model changes university.puml --from cdc/ --notify

    Without `--out` and `--notify` the notifications are printed. The exit code is 3 if some entries of the log could
    not be used.
    """
    check_master(master)
    mapped, tables = read_model(model), _parse_tables(base or (), watches)
    _check_paths(log, folder, to_store, tables)
    with open_spark(master, "starting Spark ...") as session:
        with output.show_spinner("following the changes ..."):
            results = _derive(session, mapped, log, tables, limits.build())
        name = source or Path(log).stem
        if to_store:
            _write_notifications(results, name, home, out)
        else:
            _write_results(results, name, folder, out)
        rejects = _print_rejects(results)
    exit_if_rejects(rejects)


def _parse_tables(base: Sequence[str], watches: str | None) -> dict[str, str]:
    """Return the paths of tables by name."""
    paths = {}
    for option in (*base, *([] if watches is None else [f"tidings_watches={watches}"])):
        table, equals, path = option.partition("=")
        if not (table and equals and path):
            raise InputError("this is not a table", where="--base", received=option, accepted="TABLE=PATH")
        paths[table] = path
    return paths


def _check_paths(log: str, folder: str | None, to_store: bool, tables: dict[str, str]) -> None:
    """Refuse obvious mistakes before Spark is started, which takes seconds."""
    from tidings.spark.batch.output import check_separate, check_target_free
    from tidings.spark.sources.files import Location, list_publications

    if folder is not None and to_store:
        accepted = "one of --out and --notify"
        raise InputError("these exclude each other", where="model changes", accepted=accepted)
    list_publications(log)
    for table, path in tables.items():
        if Location.of(path).info().type.name == "NotFound":
            raise InputError("no such file or folder", where=f"--base {table}", received=f"'{path}'")
    if folder is not None:
        check_separate(folder, [log, *tables.values()])
        check_target_free(Location.of(folder), folder, force=False)


def _derive(session: Any, mapped: Any, log: str, tables: dict[str, str], limits: Any) -> ChangeResults:
    from tidings.objects.cdc.change_log_reader import LOG_ORDER, read_log, read_table
    from tidings.objects.cdc.object_changes import derive_object_changes

    entries = read_log(session, log)
    base = {name: read_table(session, path) for name, path in tables.items()}
    results = derive_object_changes(session, mapped, entries.changes, LOG_ORDER, base, limits)
    return results.with_rejects(entries.rejects)


def _write_results(results: ChangeResults, source: str, folder: str | None, out: Output) -> None:
    """Write the notifications to a folder, or print them."""
    from tidings.objects.cdc.change_log_reader import resolve_location

    notices = results.notices(source)
    if folder is not None:
        with output.show_spinner("writing the notifications ..."):
            notices.drop("change").write.parquet(resolve_location(folder))
        return _print_counts(results, results.notified.count(), out)
    for row in notices.orderBy("subscriber", "change").toLocalIterator():
        notice = row.asDict(recursive=True)
        del notice["change"]
        reasons = "; ".join(reason["reason"] for reason in notice["because"])
        out.print_record(
            {**notice, "changed": json.loads(notice["changed"])},
            *((notice["subscriber"], "bold cyan"), (notice["object"], "dim"), f"{notice['kind']}: {reasons}"),
        )


def _print_counts(results: ChangeResults, count: int, out: Output) -> None:
    changes = results.changes.count()
    line = f"{plural(changes, 'change')} of objects: {plural(count, 'notification')}"
    out.print_record({"changes": changes, "notifications": count}, line)


def _write_notifications(results: ChangeResults, source: str, home: Home, out: Output) -> None:
    """Write notifications in batches. Those that exist are skipped, so an interrupted run can be repeated."""
    labelled, new = results.labelled_changes(), 0
    with home.open() as tidings:
        while batch := list(islice(labelled, BATCH_SIZE)):
            labels = {key: label for _, named in batch for key, label in named.items()}
            new += tidings.notify_of_changes(
                source, results.model, [change for change, _ in batch], labels
            ).new
    _print_counts(results, new, out)


def _print_rejects(results: ChangeResults) -> int:
    """Print some entries that could not be used; return how many there are."""
    count = int(results.rejects.count())
    for row in results.rejects.orderBy("id").limit(MAX_SHOWN).toLocalIterator():
        output.print_refusal(" ".join(filter(None, (row["id"], row["table"]))), row["reason"])
    if count > MAX_SHOWN:
        output.print_note(f"... and {count - MAX_SHOWN:,} more")
    return count


app = make_group(
    "Data models that define who is notified of a change: as PlantUML, as XMI, or as SQLAlchemy classes.",
    {
        "check": check,
        "show": show,
        "diagram": diagram,
        "triggers": triggers,
        "notify": notify,
        "changes": changes,
    },
)
