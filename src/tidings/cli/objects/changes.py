"""`model changes`: whom a log of row changes concerns, found out on Spark for all of it at once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.cli import output
from tidings.cli.objects.triggers import TriggerModelArgument, read_model
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
from tidings.errors import InputError

if TYPE_CHECKING:
    from tidings.objects.cdc.pipeline import ChangeResults

MOST_SHOWN = 5
"""How many rejects are shown."""

BATCH_SIZE = 1_000
"""Changes that are told in one transaction."""


def changes(
    model: TriggerModelArgument,
    log: Annotated[
        str,
        typer.Option("--from", metavar="PATH", help="Debezium's envelopes: a file, or a folder of files."),
    ],
    base: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TABLE=PATH",
            help="A table as it was before: Parquet, or CSV with names; once for each table.",
            show_default=False,
        ),
    ] = None,
    watches: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Who watches what: subscriber_class, subscriber_key, class, key.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Write what is told there, as Parquet.", show_default=False),
    ] = None,
    tell: Annotated[bool, typer.Option("--tell", help="Tell it: as notifications in the store.")] = False,
    source: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What the source is called; else as the log.", show_default=False),
    ] = None,
    most_steps: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="N", help="Follow a change for so many steps only.", show_default="no limit"
        ),
    ] = None,
    most_told: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Tell so many only, the first by class and key; that there were more is noted.",
            show_default="no limit",
        ),
    ] = None,
    master: MasterOption = None,
    home: HomeOption = DEFAULT_HOME,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say whom the changes in a log concern, and why, on Spark: for change-data-capture and nightly loads.

    Without [cyan]--out[/] and [cyan]--tell[/] it is printed. Exit code 3 if something in the log could not be used.

    [dim]Examples[/]
      tidings model changes university.puml --from cdc/ --base attends=attends.parquet
      tidings model changes university.puml --from cdc/ --out told.parquet
      tidings model changes university.puml --from cdc/ --tell
    """
    from tidings.objects.propagation import Limits

    check_master(master)
    placed, tables = read_model(model), _base(base or (), watches)
    _refuse_early(log, out, tell, tables)
    with output.show_spinner("starting Spark ..."):
        session = open_spark(master)
    try:
        with output.show_spinner("following the changes ..."):
            result = _follow(session, placed, log, tables, Limits(most_steps, most_told))
        named = source or Path(log).stem
        if tell:
            _tell(result, named, home, store, as_json)
        else:
            _write(result, named, out, as_json)
        refused = _rejects(result)
    finally:
        close_spark(session)
    if refused:
        raise typer.Exit(output.EXIT_WITH_REJECTS)


def _base(base: Sequence[str], watches: str | None) -> dict[str, str]:
    """Where tables are, by their names."""
    found = {}
    for each in (*base, *([] if watches is None else [f"tidings_watches={watches}"])):
        table, equals, path = each.partition("=")
        if not (table and equals and path):
            raise InputError("which table is where?", where="--base", received=each, accepted="TABLE=PATH")
        found[table] = path
    return found


def _refuse_early(log: str, out: str | None, tell: bool, tables: dict[str, str]) -> None:
    """What is plainly wrong is said before Spark is started, which takes seconds."""
    from tidings.spark.batch.output import check_separate, check_target_free
    from tidings.spark.sources.files import Location, list_publications

    if out is not None and tell:
        raise InputError(
            "these exclude each other", where="model changes", accepted="one of --out and --tell"
        )
    list_publications(log)
    for table, path in tables.items():
        if Location.of(path).info().type.name == "NotFound":
            raise InputError("no such file or folder", where=f"--base {table}", received=f"'{path}'")
    if out is not None:
        check_separate(out, [log, *tables.values()])
        check_target_free(Location.of(out), out, force=False)


def _follow(session: Any, placed: Any, log: str, tables: dict[str, str], limits: Any) -> ChangeResults:
    from tidings.objects.cdc.log_files import LOG_ORDER, read_log, read_table
    from tidings.objects.cdc.pipeline import derive_object_changes

    found = read_log(session, log)
    base = {name: read_table(session, path) for name, path in tables.items()}
    result = derive_object_changes(session, placed, found.changes, LOG_ORDER, base, limits)
    return result.refusing(found.rejects)


def _write(result: ChangeResults, source: str, out: str | None, as_json: bool) -> None:
    """To a folder, or for people and machines to read at once."""
    from tidings.objects.cdc.log_files import resolve_location

    told = result.notices(source)
    if out is not None:
        with output.show_spinner("writing who is told ..."):
            told.drop("change").write.parquet(resolve_location(out))
        return _say(result, result.told.count(), as_json)
    for row in told.orderBy("subscriber", "change").toLocalIterator():
        _print(row.asDict(recursive=True), as_json)


def _print(row: dict[str, Any], as_json: bool) -> None:
    if as_json:
        del row["change"]
        output.print_json({**row, "changed": json.loads(row["changed"])})
        return
    output.print_line((row["subscriber"], "bold cyan"), (row["object"], "dim"), f"{row['kind']}: {_why(row)}")


def _why(row: dict[str, Any]) -> str:
    return "; ".join(each["reason"] for each in row["because"])


def _say(result: ChangeResults, told: int, as_json: bool) -> None:
    counts = {"changes": result.changes.count(), "told": told}
    if as_json:
        output.print_json(counts)
        return
    output.print_line(f"{plural(counts['changes'], 'change')} of objects: {plural(told, 'notification')}")


def _tell(result: ChangeResults, source: str, home: Path, store: str | None, as_json: bool) -> None:
    """Some changes at a time. Who is told already is not told again, so a run that broke off is run again."""
    found, new = result.labelled(), 0
    with open_tidings(home, store) as tidings:
        while some := list(islice(found, BATCH_SIZE)):
            labels = {one: label for _, named in some for one, label in named.items()}
            new += tidings.tell(source, result.model, [noticed for noticed, _ in some], labels).new
    _say(result, new, as_json)


def _rejects(result: ChangeResults) -> int:
    """What could not be used, a few of them one by one."""
    count = int(result.rejects.count())
    for row in result.rejects.orderBy("id").limit(MOST_SHOWN).toLocalIterator():
        output.print_refusal(" ".join(filter(None, (row["id"], row["table"]))), row["reason"])
    if count > MOST_SHOWN:
        output.print_note(f"... and {count - MOST_SHOWN:,} more")
    return count
