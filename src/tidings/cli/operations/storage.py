"""`store ...` and `segments`: the store of a home folder for its operator, and the index of the stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import output
from tidings.cli.command import make_group
from tidings.cli.options import DEFAULT_HOME, Home, HomeOption, check_storable
from tidings.cli.output import Output
from tidings.core.text import plural
from tidings.errors import SetupError

if TYPE_CHECKING:
    from tidings.matching.index.index import Index, SegmentDescription
    from tidings.matching.index.segment import ClusterDescription

BackupFile = Annotated[Path, typer.Argument(metavar="FILE", help="A backup, a tar file.")]


def version(home: Home, out: Output) -> None:
    """Print the version of the store, and the version that this release of Tidings needs. Nothing is changed.

    Example:
      tidings store version
    """
    from tidings.service.backup import read_store_version

    current = read_store_version(*home.resolve())
    state = "current" if current.store == current.works_with else "outdated: run tidings store migrate"
    versions = f"version {current.store} of {current.works_with}"
    out.print_record(asdict(current), (current.name, "bold cyan"), versions, state)


def migrate(home: Home, out: Output) -> None:
    """Migrate the store to the version that this release of Tidings needs.

    Example:
      tidings store migrate --store postgresql://tidings@db/tidings

    The service migrates when it starts, unless the setting `migrate = false` leaves it to this command.
    """
    from tidings.service.backup import read_store_version

    previous = read_store_version(*home.resolve())
    with home.open() as tidings:
        tidings.store.check()
    current = read_store_version(*home.resolve())
    record = {"name": current.name, "before": previous.store, "after": current.store}
    out.print_record(record, (current.name, "bold cyan"), f"version {current.store}, was {previous.store}")


def backup(home: Home, out: Output, file: BackupFile) -> None:
    """Write a backup of the home folder: a snapshot of the store, the key of feed addresses, the settings.

    Example:
      tidings store backup /backups/tidings-2026-11-17.tar

    The service may keep running. The index is not included: the stream rebuilds it. The backup contains everything in
    the store; only its owner may read the file. For PostgreSQL use `pg_dump`, as the docs describe.
    """
    from tidings.service.backup import create_backup

    made = create_backup(*home.resolve(), file)
    contents = f"{plural(made.publications, 'publication')}, matched up to {made.matched:,}"
    record = {"file": str(file), **asdict(made)}
    out.print_record(record, (str(file), "bold cyan"), f"version {made.version}", contents)


def restore(out: Output, file: BackupFile, home: HomeOption = DEFAULT_HOME) -> None:
    """Restore a home folder from a backup. The folder must not exist: nothing is overwritten.

    Example:
      tidings store restore /backups/tidings-2026-11-17.tar --home restored

    A stream that is started there continues at the time of the backup: earlier publications are not matched again.
    """
    from tidings.service.backup import restore_backup

    made = restore_backup(file, home)
    contents = f"{plural(made.publications, 'publication')}, matched up to {made.matched:,}"
    record = {"home": str(home), **asdict(made)}
    out.print_record(record, (str(home), "bold cyan"), f"as of {made.taken}", contents)


app = make_group(
    "The store: its version, migration, backup and restore.",
    {"version": version, "migrate": migrate, "backup": backup, "restore": restore},
)


# `segments`.


def segments(
    out: Output,
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR",
            help="An index, a home folder, or the `--segments` folder of a running `tidings match`; by default, the "
            "home folder.",
        ),
    ] = None,
    limit: Annotated[
        int,
        typer.Option(min=0, callback=check_storable, metavar="N", help="At most N clusters of each segment."),
    ] = 10,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Print the segments of an index: subscriptions, bytes, and the access paths of their clauses.

    Examples:
      tidings segments
      tidings segments /shared/tidings --limit 3
      tidings segments --json | jq '.clusters[] | select(.key == null)'

    An event is not compared with every clause. Clauses are grouped in clusters. A cluster is reached through its key,
    an equality on one attribute (or on two of them, key and second): only the clauses for the value of the event are
    read. They are sorted by their cut, and those whose cut does not hold are skipped. The remaining tests are
    evaluated clause by clause.

    Rows per event and nanoseconds are the expected costs of one event; the index chose the cheapest access paths.
    Clusters with many rows per event cost most: one more equality in their subscriptions would help.
    """
    for index in open_indexes(folder or home):
        described = index.describe()
        if out.as_json:
            for segment in described:
                output.print_json({"folder": str(index.folder), "version": index.version, **asdict(segment)})
        else:
            _print_index(index, described, limit)


def open_indexes(folder: Path) -> list[Index]:
    """Open the indexes of a folder; that of a stream at the version which the stream uses."""
    from tidings.matching.index.index import Index
    from tidings.spark.stream.live_index import open_current_index

    for place in (folder, folder / "segments"):
        live = open_current_index(place)
        if live is not None:
            return [live]
    places = [place for place in (folder, *sorted(folder.glob(".segments-*"))) if Index.is_in(place)]
    if not places:
        raise SetupError(
            "no index in this folder",
            where=str(folder),
            hint="tidings run creates one; tidings match has one in its --segments folder while it runs",
        )
    return [Index.open(place) for place in places]


def _print_index(index: Index, described: Sequence[SegmentDescription], limit: int) -> None:
    size = f"{plural(index.size, 'subscription')} in {plural(len(described), 'segment')}"
    output.print_line((str(index.folder), "bold cyan"), f"version {index.version}", size)
    if described:
        header = ("segment", "subscriptions", "removed", "bytes", "clusters")
        output.print_table(header, map(_list_segment_cells, described))
    for segment in described:
        if segment.clusters and limit:
            output.print_line(f"\n{segment.name}")
            _print_clusters(sorted(segment.clusters, key=lambda cluster: -cluster.clauses), limit)


def _print_clusters(by_size: Sequence[ClusterDescription], limit: int) -> None:
    names = [field.name for field in fields(by_size[0])]
    rows = [[_format_value(getattr(cluster, name)) for name in names] for cluster in by_size[:limit]]
    output.print_table([name.replace("_", " ") for name in names], rows)
    hidden = by_size[limit:]
    if hidden:
        clauses = plural(sum(cluster.clauses for cluster in hidden), "clause")
        output.print_note(f"... and {plural(len(hidden), 'cluster')} of {clauses}; --limit N shows more")


def _list_segment_cells(segment: SegmentDescription) -> tuple[str, ...]:
    counts = segment.subscriptions, segment.removed, len(segment.clusters)
    subscriptions, removed, clusters = (f"{count:,}" for count in counts)
    return segment.name, subscriptions, removed, output.format_bytes(segment.nbytes), clusters


def _format_value(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
