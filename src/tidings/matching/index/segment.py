"""Segments: an immutable index of many subscriptions, as files that are mapped into memory."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from tidings.atoms import Aspect, Atoms, Column, PublicationKind
from tidings.core.atomic_files import sync_all
from tidings.matching.compiler.plan import Compiled
from tidings.matching.index.arrays import flatten, map_arrays, rebuild, write_arrays, write_ids
from tidings.matching.index.builder import SegmentContent, build
from tidings.matching.index.clauses import write_clauses
from tidings.matching.index.matcher import Matcher
from tidings.matching.index.path_match import PathMatch
from tidings.matching.index.paths import Patterns
from tidings.matching.index.shape_checks import Doubles, Pairs
from tidings.matching.kernels.bitmap_filter import Tiles
from tidings.matching.kernels.clusters import Clusters
from tidings.matching.kernels.encode import Codecs
from tidings.matching.kernels.shapes.twig_arrays import Twigs


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """How some of a segment's clauses are reached: for people who want to know why matching costs what it costs.

    `tests` is how many a clause has on average beside key and cut. The last two are what was expected for one event
    when the segment was built: how many clauses are looked at, and how long that takes.
    """

    layout: str
    key: str | None
    second: str | None
    cut: str | None
    tests: float
    clauses: int
    rows_per_event: float
    nanoseconds: float


def write_segment(folder: Path, compiled: Compiled) -> None:
    """Build a segment and put it into `folder`, whole or not at all; the version that lists it makes it last."""
    built = build(compiled)
    unfinished = folder.with_name(folder.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    arrays = (
        flatten(built.codecs, "codecs.")
        | flatten(built.clusters, "clusters.")
        | flatten(built.tiles, "tiles.")
        | flatten(built.twigs, "twigs.")
    )
    write_arrays(unfinished / "arrays.bin", arrays)
    with pa.OSFile(str(unfinished / "subscriptions.arrow"), "wb") as sink:
        table = compiled.subscriptions.combine_chunks()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    write_ids(unfinished, table.column("id").combine_chunks())
    write_clauses(unfinished, compiled)
    about = {
        "columns": [asdict(column) for column in built.columns],
        "clusters": _described(built),
        "hidden": built.hidden,
        "names": compiled.twigs.names,
    }
    (unfinished / "segment.json").write_text(json.dumps(about))
    sync_all((*unfinished.iterdir(), unfinished))
    unfinished.rename(folder)


def _described(built: SegmentContent) -> list[dict[str, Any]]:
    """The ways of a built segment, for people to read."""
    return [
        asdict(
            ClusterDescription(
                layout=way.layout,
                key=built.name_of(way.key),
                second="any" if way.meets else built.name_of(way.second),
                cut=built.name_of(way.cut),
                tests=round(built.tests_of(way), 1),
                clauses=len(way.rows),
                rows_per_event=round(way.estimate.rows, 3),
                nanoseconds=round(way.estimate.cost, 1),
            )
        )
        for way in built.ways
    ]


class Segment:
    """An opened segment. It can be matched by several threads at once."""

    def __init__(self, folder: Path, path_match: PathMatch) -> None:
        self.folder = folder
        arrays = map_arrays(folder / "arrays.bin")
        about = json.loads((folder / "segment.json").read_text())
        self.columns = tuple(
            Column(entry["path"], Aspect(entry["aspect"]), entry["domain"], PublicationKind(entry["of"]))
            for entry in about["columns"]
        )
        self._described = about["clusters"]
        self.array_bytes = (folder / "arrays.bin").stat().st_size
        self._matcher = Matcher(
            self.columns,
            rebuild(Codecs, arrays, "codecs."),
            rebuild(Clusters, arrays, "clusters."),
            rebuild(Tiles, arrays, "tiles."),
            rebuild(Twigs, arrays, "twigs."),
            Patterns(self.columns, about["hidden"], about["names"], path_match),
        )

    @cached_property
    def subscriptions(self) -> pa.Table:
        """The subscriptions (id, subscriber, language, text); row numbers are what `match` answers with."""
        source = pa.memory_map(str(self.folder / "subscriptions.arrow"))
        return pa.ipc.open_file(source).read_all()

    @cached_property
    def ids(self) -> pa.Array:
        return self.subscriptions.column("id").combine_chunks()

    @property
    def nbytes(self) -> int:
        """What matching needs in memory: the arrays and the ids. The texts stay on disk until a reason is asked."""
        return self.array_bytes + int(self.ids.nbytes)

    def match(self, atoms: Atoms, numbers: Doubles) -> Pairs:
        """Pairs of publication (its place in the batch) and subscription (its row), in no particular order.

        Of graphs, a pair that was left undecided has the complement of the row, which is negative. `numbers` are
        those that the atoms' texts name, of documents; of events, nothing.
        """
        return self._matcher.match(atoms, numbers)

    def describe(self) -> list[ClusterDescription]:
        return [ClusterDescription(**entry) for entry in self._described]
