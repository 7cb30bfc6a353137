"""`tables ...`: the tables in which the relational engine keeps XPath subscriptions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.cli import output
from tidings.cli.command import make_group
from tidings.cli.options import SparkOptions
from tidings.cli.output import Output, Tally, exit_if_rejects, format_bytes
from tidings.core.text import plural

if TYPE_CHECKING:
    from tidings.relational.table_store import TableStore
    from tidings.relational.tables import Version

TablesFolder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder with the tables.")]
SPARK_FROM = 32 << 20
"""The size of a file from which on Spark's tasks shred it: for a smaller one, Spark takes longer to start."""


def create(
    out: Output,
    spark: SparkOptions,
    folder: TablesFolder,
    subscriptions: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Fill the tables with XPaths: JSON Lines with id, subscriber, language, text. They decide the plan.",
        ),
    ] = None,
    plan: Annotated[
        str | None, typer.Option(metavar="PLAN", help="The joins: share, share-bucket or unroll.")
    ] = None,
    unroll: Annotated[
        int | None, typer.Option(metavar="K", help="The number of predicates per row in the plan unroll.")
    ] = None,
) -> None:
    """Create tables for XPath subscriptions, and fill them.

    Examples:
      tidings tables create /shared/tables --subscriptions subs.jsonl
      tidings tables create /shared/tables --plan unroll --unroll 4
      tidings match --tables /shared/tables --publications documents/ --out matches

    Tables hold more subscriptions than memory does, and are filled once for many jobs. Their plan never changes:
    `share` stores common predicates once, `share-bucket` also groups ranges, `unroll` has a row per subscription. All
    executors must see the folder.
    """
    from tidings.relational.engine_choice import choose_layout
    from tidings.relational.table_store import TableStore

    spark.check()
    layout, why = choose_layout(subscriptions, plan, unroll)
    TableStore.create(folder, layout)
    out.print_note(why)
    if subscriptions is None:
        out.print_record(
            {"folder": str(folder), "plan": layout.plan.value}, (str(folder), "bold cyan"), "no subscriptions"
        )
    else:
        _import(out, spark, folder, subscriptions)


def add(
    out: Output,
    spark: SparkOptions,
    folder: TablesFolder,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="JSON Lines with id, subscriber, language, text.")
    ],
) -> None:
    """Add XPath subscriptions. Rows of other subscriptions are not touched.

    Example:
      tidings tables add /shared/tables more.jsonl

    Lines that cannot be added are listed with the reason (exit code 3): they are invalid, in another language, or their
    id is taken. To change a subscription, remove it first.
    """
    spark.check()
    _import(out, spark, folder, file)


def _import(out: Output, spark: SparkOptions, folder: Path, file: str) -> None:
    from tidings.relational.subscription_import import import_subscriptions
    from tidings.relational.table_store import hold_tables

    tally = Tally(out, "subscription", "added")
    with hold_tables(folder) as store, _open_spark_for(file, spark) as session:
        for added in import_subscriptions(store, session, file):
            tally.new += added.taken
            for reject in added.rejects:
                tally.refuse(reject.id, reject.facts, reject.reason, reject.facts.get("hint"))
        count = store.version.subscriptions
    if out.as_json:
        record = {"folder": str(folder), "added": tally.new, "refused": tally.refused}
        output.print_json(record | {"subscriptions": count})
    tally.end()


@contextmanager
def _open_spark_for(file: str, spark: SparkOptions) -> Iterator[Any]:
    """Open a Spark session if a file is large; yield None if the driver can do the work."""
    from tidings.spark.sources.files import Location

    if (Location.of(file).info().size or 0) < SPARK_FROM:
        yield None
        return
    with spark.open("starting Spark ...") as session:
        yield session


def remove(
    out: Output,
    folder: TablesFolder,
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of subscriptions.")],
) -> None:
    """Remove subscriptions. Their rows stay in the files until `tidings tables compact`, but no longer match.

    Example:
      tidings tables remove /shared/tables s-7f3a9c01 s-0be4412d
    """
    from tidings.relational.table_store import hold_tables

    with hold_tables(folder) as store:
        removed = set(store.remove(dict.fromkeys(ids)))
    for id in dict.fromkeys(ids):
        if out.as_json:
            output.print_json({"id": id, "removed": id in removed})
        elif id in removed:
            output.print_line((id, "bold cyan"), "removed")
        else:
            output.print_line((id, "bold red"), "there is no such subscription", stderr=True)
    exit_if_rejects(len(set(ids) - removed))


def compact(out: Output, spark: SparkOptions, folder: TablesFolder) -> None:
    """Rewrite the tables without removed subscriptions, in few files, in the order in which they are looked up.

    Example:
      tidings tables compact /shared/tables

    It takes a Spark job over all rows, and for a while twice the space. Run it after many removals or small additions.
    """
    from tidings.relational.table_store import compact as compact_tables
    from tidings.relational.table_store import hold_tables

    spark.check()
    with hold_tables(folder) as store, spark.open("starting Spark ...") as session:
        before, files = store.nbytes, _count_files(store.version)
        compact_tables(session, store)
        after, fewer = store.nbytes, _count_files(store.version)
    record = {"folder": str(folder), "bytes_before": before, "bytes": after}
    record |= {"files_before": files, "files": fewer}
    sizes = f"{format_bytes(after)} in {plural(fewer, 'file')}"
    out.print_record(
        record,
        (str(folder), "bold cyan"),
        sizes,
        f"before: {format_bytes(before)} in {plural(files, 'file')}",
    )


@dataclass(frozen=True, slots=True)
class TableSize:
    """The size of a table. Rows of removed subscriptions count until compaction."""

    name: str
    rows: int
    files: int
    bytes: int


def show(out: Output, folder: TablesFolder) -> None:
    """Print the plan, the number of subscriptions, and the size of each table.

    Example:
      tidings tables show /shared/tables

    `tombstone` has a row for each removed subscription since the last compaction.
    """
    from tidings.relational.table_store import TableStore

    store = TableStore.open(folder)
    version, sizes = store.version, _list_sizes(store)
    if out.as_json:
        layout = asdict(version.layout)
        follows = version.follows and asdict(version.follows)
        record = {"folder": str(folder), **layout, "generation": version.generation, "follows": follows}
        record |= {"subscriptions": version.subscriptions, "removed": version.count("tombstone")}
        output.print_json(record | {"bytes": store.nbytes, "tables": [asdict(each) for each in sizes]})
        return
    removed = f"{version.count('tombstone'):,} removed since compaction"
    counts = f"{plural(version.subscriptions, 'subscription')}, {removed}"
    output.print_line(
        (str(folder), "bold cyan"), _describe_layout(version), counts, format_bytes(store.nbytes)
    )
    if version.follows is not None:
        output.print_note(f"follows the store {version.follows.store}, version {version.follows.version:,}")
    if sizes:
        rows = ((each.name, f"{each.rows:,}", f"{each.files:,}", format_bytes(each.bytes)) for each in sizes)
        output.print_table(("table", "rows", "files", "bytes"), rows)


def _list_sizes(store: TableStore) -> list[TableSize]:
    return [
        TableSize(
            name,
            store.version.count(name),
            len(files),
            sum((store.folder / file).stat().st_size for file in files),
        )
        for name, files in sorted(store.version.files.items())
    ]


def _describe_layout(version: Version) -> str:
    layout = version.layout
    details = {"unroll": f", {plural(layout.unroll, 'predicate')} per row"}
    details["share-bucket"] = f", {layout.buckets} buckets"
    return f"plan {layout.plan.value}{details.get(layout.plan.value, '')}"


def _count_files(version: Version) -> int:
    return sum(map(len, version.files.values()))


app = make_group(
    "Tables of XPath subscriptions, for sets that are larger than memory. `tidings match --tables` matches with them.",
    {"create": create, "add": add, "remove": remove, "compact": compact, "show": show},
)
