"""`segments`: what stands in the index, and how its clauses are reached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import output
from tidings.cli.options import DEFAULT_HOME, HomeOption, JsonOption, check_storable
from tidings.core.text import plural
from tidings.errors import SetupError

if TYPE_CHECKING:
    from tidings.matching.index.index import Index, SegmentDescription
    from tidings.matching.index.segment import ClusterDescription

UNITS = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))


def segments(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR",
            help="An index, a home folder, or the [cyan]--segments[/] folder of a [cyan]tidings match[/] "
            "that is running; else the home folder.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int,
        typer.Option(min=0, callback=check_storable, metavar="N", help="At most N clusters of each segment."),
    ] = 10,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Show the segments of an index: how many subscriptions and bytes they have, and how their clauses are reached.

    An event does not look at every clause. Clauses stand in clusters. A cluster is reached through its key, an
    equality on one attribute (or through two of them, key and second): only the clauses for the event's value are
    looked at. Among them, those whose cut does not hold are skipped, for they are sorted by it. What tests are left
    is tried clause by clause.

    Rows per event and nanoseconds are what the index expects of one event; it chose what should take the least.
    Clusters that many rows are looked at in cost most: an equality more in those subscriptions would help.

    [dim]Examples[/]
      tidings segments
      tidings segments /shared/tidings --limit 3
      tidings segments --json | jq '.clusters[] | select(.key == null)'
    """
    for index in open_indexes(folder or home):
        described = index.describe()
        if as_json:
            for one in described:
                output.print_json({"folder": str(index.folder), "version": index.version, **asdict(one)})
        else:
            _show(index, described, limit)


def open_indexes(folder: Path) -> list[Index]:
    """The indexes of a folder. A stream's is opened at the version the stream uses."""
    from tidings.matching.index.index import Index
    from tidings.spark.stream.live_index import open_current_index

    for place in (folder, folder / "segments"):
        live = open_current_index(place)
        if live is not None:
            return [live]
    found = [place for place in (folder, *sorted(folder.glob(".segments-*"))) if Index.is_in(place)]
    if not found:
        raise SetupError(
            "no index in this folder",
            where=str(folder),
            hint="tidings run creates one; tidings match has one in its --segments folder while it runs",
        )
    return [Index.open(place) for place in found]


def _show(index: Index, described: Sequence[SegmentDescription], limit: int) -> None:
    held = f"{plural(index.size, 'subscription')} in {plural(len(described), 'segment')}"
    output.print_line((str(index.folder), "bold cyan"), f"version {index.version}", held)
    if described:
        output.print_table(
            ("segment", "subscriptions", "removed", "bytes", "clusters"), map(_segment, described)
        )
    for one in described:
        if one.clusters and limit:
            output.print_line(f"\n{one.name}")
            _clusters(sorted(one.clusters, key=lambda cluster: -cluster.clauses), limit)


def _clusters(by_size: Sequence[ClusterDescription], limit: int) -> None:
    """Whatever the index says of its clusters, field by field."""
    names = [each.name for each in fields(by_size[0])]
    rows = [[_shown(getattr(cluster, name)) for name in names] for cluster in by_size[:limit]]
    output.print_table([name.replace("_", " ") for name in names], rows)
    left = by_size[limit:]
    if left:
        clauses = plural(sum(cluster.clauses for cluster in left), "clause")
        output.print_note(f"... and {plural(len(left), 'cluster')} of {clauses}; --limit N shows more")


def _segment(one: SegmentDescription) -> tuple[str, ...]:
    return one.name, f"{one.subscriptions:,}", f"{one.removed:,}", _size(one.nbytes), f"{len(one.clusters):,}"


def _shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _size(count: int) -> str:
    for unit, size in UNITS:
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"
