"""Segments: immutable indexes of many subscriptions, stored as files that are mapped into memory."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from tidings.atoms import Aspect, Atoms, AtomShape, Column
from tidings.core.atomic_files import sync_all
from tidings.matching.compiler.plan import Compiled
from tidings.matching.index.arrays import flatten, map_arrays, rebuild, write_arrays, write_ids
from tidings.matching.index.builder.segment_builder import SegmentContent, build_segment
from tidings.matching.index.clause_file import write_clauses
from tidings.matching.index.matcher import Matcher
from tidings.matching.index.path_columns import PathMatch, PathResolver
from tidings.matching.index.shape_checks import Doubles, Pairs
from tidings.matching.kernels.bitmap_filter import Tiles
from tidings.matching.kernels.clusters import Clusters
from tidings.matching.kernels.encode import Codecs
from tidings.matching.kernels.shapes.twig_arrays import Twigs


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """Access path of a cluster of clauses, which explains the cost of matching.

    `tests` is the mean number of tests of a clause beside its keys and cut. `rows_per_event` (clauses looked
    at) and `nanoseconds` are the builder's estimates for one event.
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
    """Build a segment and write it to `folder` atomically. It is used once a version lists it."""
    built = build_segment(compiled)
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
        "columns": [_column_to_json(column) for column in built.columns],
        "clusters": _describe_clusters(built),
        "hidden": built.hidden,
        "names": compiled.twigs.names,
    }
    (unfinished / "segment.json").write_text(json.dumps(about))
    sync_all((*unfinished.iterdir(), unfinished))
    unfinished.rename(folder)


def _column_to_json(column: Column) -> dict[str, Any]:
    return {"path": column.path, "aspect": column.aspect, "domain": column.domain, "of": column.shape}


def _column_from_json(entry: dict[str, Any]) -> Column:
    return Column(entry["path"], Aspect(entry["aspect"]), entry["domain"], AtomShape(entry["of"]))


def _describe_clusters(built: SegmentContent) -> list[dict[str, Any]]:
    return [
        asdict(
            ClusterDescription(
                layout=path.layout,
                key=built.column_name(path.key),
                second="any" if path.any_second else built.column_name(path.second),
                cut=built.column_name(path.cut),
                tests=round(built.mean_tests(path), 1),
                clauses=len(path.rows),
                rows_per_event=round(path.estimate.rows, 3),
                nanoseconds=round(path.estimate.cost, 1),
            )
        )
        for path in built.access_paths
    ]


class Segment:
    """An open segment. Several threads can match with it at once."""

    def __init__(self, folder: Path, path_match: PathMatch) -> None:
        self.folder = folder
        arrays = map_arrays(folder / "arrays.bin")
        about = json.loads((folder / "segment.json").read_text())
        self.columns = tuple(map(_column_from_json, about["columns"]))
        self._cluster_descriptions = about["clusters"]
        self.array_bytes = (folder / "arrays.bin").stat().st_size
        self._matcher = Matcher(
            self.columns,
            rebuild(Codecs, arrays, "codecs."),
            rebuild(Clusters, arrays, "clusters."),
            rebuild(Tiles, arrays, "tiles."),
            rebuild(Twigs, arrays, "twigs."),
            PathResolver(self.columns, about["hidden"], about["names"], path_match),
        )

    @cached_property
    def subscriptions(self) -> pa.Table:
        """The subscriptions (id, subscriber, language, text), in the order of the row numbers that `match` returns."""
        source = pa.memory_map(str(self.folder / "subscriptions.arrow"))
        return pa.ipc.open_file(source).read_all()

    @cached_property
    def ids(self) -> pa.Array:
        return self.subscriptions.column("id").combine_chunks()

    @property
    def nbytes(self) -> int:
        """The memory that matching needs: arrays and ids. Texts stay on disk until matches are explained."""
        return self.array_bytes + int(self.ids.nbytes)

    def match(self, atoms: Atoms, numbers: Doubles) -> Pairs:
        """Return pairs of publication (its position in the batch) and subscription (its row), in no
        particular order.

        For graphs, an undecided pair has the complement of the row, which is negative. `numbers` comes from
        `shape_checks.read_document_numbers`.
        """
        return self._matcher.match(atoms, numbers)

    def describe(self) -> list[ClusterDescription]:
        return [ClusterDescription(**entry) for entry in self._cluster_descriptions]
