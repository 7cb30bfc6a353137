"""Segments: an immutable index of many subscriptions, as files that are mapped into memory."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.atoms import Aspect, Atoms, Column
from tidings.compiler.plan import Compiled
from tidings.durable import sync_all
from tidings.kernels import encode as encoding
from tidings.kernels import match as matching
from tidings.matching.index.arrays import flatten, map_arrays, rebuild, starts_of, write_arrays
from tidings.matching.index.builder import build
from tidings.matching.index.clauses import write_clauses
from tidings.matching.index.ids import write_ids

_WORTH_SORTING = 256
Pairs = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """How some of a segment's clauses are reached: for people who want to know why matching costs what it costs."""

    layout: str
    key: str | None
    cut: str | None
    tests: int
    clauses: int


def write_segment(folder: Path, compiled: Compiled) -> None:
    """Build a segment and put it into `folder`, whole or not at all; the version that lists it makes it last."""
    built = build(compiled)
    unfinished = folder.with_name(folder.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    arrays = flatten(built.codecs, "codecs.") | flatten(built.clusters, "clusters.")
    write_arrays(unfinished / "arrays.bin", arrays)
    with pa.OSFile(str(unfinished / "subscriptions.arrow"), "wb") as sink:
        table = compiled.subscriptions.combine_chunks()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    write_ids(unfinished, table.column("id").combine_chunks())
    write_clauses(unfinished, compiled)
    columns = [asdict(column) for column in built.columns]
    (unfinished / "columns.json").write_text(json.dumps(columns))
    sync_all((*unfinished.iterdir(), unfinished))
    unfinished.rename(folder)


class Segment:
    """An opened segment. It can be matched by several threads at once: what a call needs, the call allocates."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        arrays = map_arrays(folder / "arrays.bin")
        self._codecs = rebuild(encoding.Codecs, arrays, "codecs.")
        self._clusters = rebuild(matching.Clusters, arrays, "clusters.")
        columns = json.loads((folder / "columns.json").read_text())
        self.columns = tuple(
            Column(entry["path"], Aspect(entry["aspect"]), entry["domain"]) for entry in columns
        )
        self.array_bytes = (folder / "arrays.bin").stat().st_size
        self._ways: dict[tuple[str, ...], tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]] = {}

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

    def match(self, atoms: Atoms) -> Pairs:
        """Pairs of publication (its place in the batch) and subscription (its row), in no particular order."""
        coded = self._encode(atoms)
        return self._join(coded)

    def describe(self) -> list[ClusterDescription]:
        c = self._clusters
        return [
            ClusterDescription(
                layout="uniform" if c.list_start[i] < 0 else "general",
                key=self._name(c.key_column[i]) if c.key_mode[i] != matching.NO_KEY else None,
                cut=self._name(c.cut_column[i]) if c.cut_op[i] != matching.NO_CUT else None,
                tests=int(c.test_start[i + 1] - c.test_start[i]),
                clauses=int(c.row_start[i + 1] - c.row_start[i]),
            )
            for i in range(len(c.key_column))
        ]

    def _name(self, number: int) -> str:
        column = self.columns[number]
        return (
            column.path if column.aspect == Aspect.VALUE else f"{column.path} ({column.aspect.name.lower()})"
        )

    def _ways_of(self, paths: tuple[str, ...]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """For each path of a batch, the columns that look at it."""
        known = self._ways.get(paths)
        if known is None:
            by_path: dict[str, list[int]] = {}
            for number, column in enumerate(self.columns):
                by_path.setdefault(column.path, []).append(number)
            lists = [by_path.get(path, []) for path in paths]
            starts = starts_of([len(numbers) for numbers in lists])
            known = starts, np.array([n for numbers in lists for n in numbers], np.int32)
            self._ways = {paths: known}
        return known

    def _encode(self, atoms: Atoms) -> encoding.Coded:
        column_start, columns = self._ways_of(atoms.paths)
        arrays = encoding.AtomArrays(
            atoms.starts,
            atoms.path,
            atoms.kind,
            atoms.payload,
            atoms.payload.view(np.float64),
            atoms.length,
            atoms.text,
            column_start,
            columns,
        )
        room = int(np.diff(column_start)[atoms.path].sum()) + 64 if len(atoms.path) else 64
        out = encoding.Coded(
            np.zeros(atoms.count + 1, np.int64), np.empty(room, np.int32), np.empty(room, np.int32)
        )
        seen = np.full(len(self._codecs.trie.first), -1, np.int32)
        done = encoding.encode(arrays, self._codecs, seen, out, 0)
        while done < atoms.count:
            used = out.starts[done]
            out = encoding.Coded(out.starts, _grown(out.column, used), _grown(out.code, used))
            seen.fill(-1)
            done = encoding.encode(arrays, self._codecs, seen, out, done)
        return self._tidied(out)

    def _tidied(self, coded: encoding.Coded) -> encoding.Coded:
        """The same codes, but those of a column together, in order, and each once; most publications are so already."""
        count = len(coded.starts) - 1
        marks = np.zeros(count, np.uint8)
        if not encoding.mark_several(coded, np.full(len(self.columns), -1, np.int64), marks):
            return coded
        size = int(coded.starts[-1])
        column, code = coded.column[:size], coded.code[:size]
        row = np.repeat(np.arange(count), np.diff(coded.starts))
        moved = np.flatnonzero(marks[row])
        order = moved[np.lexsort((code[moved], column[moved], row[moved]))]
        column[moved], code[moved] = column[order], code[order]
        again = (row[1:] == row[:-1]) & (column[1:] == column[:-1]) & (code[1:] == code[:-1])
        kept = np.concatenate(([True], ~again))
        starts = starts_of(np.bincount(row[kept], minlength=count))
        return encoding.Coded(starts, column[kept], code[kept])

    def _join(self, coded: encoding.Coded) -> Pairs:
        order = self._order(coded)
        count = len(order)
        scratch = self._scratch()
        room, done, total, parts = max(1024, 32 * count), 0, 0, []
        while True:
            out = matching.Found(np.empty(room, np.int32), np.empty(room, np.int32))
            done, found = matching.match(coded, order, self._clusters, scratch, out, done)
            parts.append((out.publication[:found], out.subscription[:found]))
            if done == count:
                break
            # Room for as many matches as the rest is likely to have; twice as much if not even one event fitted.
            total += found
            room = max(2 * room if found == 0 else room, int(1.1 * total / max(1, done) * (count - done)))
            scratch.stamp.fill(-1)
            scratch.seen.fill(-1)
        if len(parts) == 1:
            return parts[0]
        return np.concatenate([p for p, _ in parts]), np.concatenate([s for _, s in parts])

    def _order(self, coded: encoding.Coded) -> npt.NDArray[np.int64]:
        """The order in which to match a batch: publications that lead to the same bucket one after the other.

        What the first of them brings into the processor's cache serves the others.
        """
        count, c = len(coded.starts) - 1, self._clusters
        keyed = np.where(c.key_mode != matching.NO_KEY, np.diff(c.row_start), 0)
        if count < _WORTH_SORTING or not keyed.any():
            return np.arange(count)
        codes = np.full(count, -1, np.int32)
        matching.fill_codes(coded, c.key_column[np.argmax(keyed)], codes)
        return np.argsort(codes)

    def _scratch(self) -> matching.Scratch:
        columns = len(self.columns)
        mask = np.zeros(matching.TILE, np.uint8)
        several = self._clusters.several
        return matching.Scratch(
            stamp=np.full(columns, -1, np.int64),
            code=np.zeros(columns, np.int32),
            head=np.zeros(columns, np.int64),
            tail=np.zeros(columns, np.int64),
            mask=mask,
            words=mask.view(np.uint64),
            seen=np.full(int(several.max()) + 1 if len(several) else 0, -1, np.int64),
        )


def _grown(array: npt.NDArray[Any], used: int) -> npt.NDArray[Any]:
    bigger = np.empty(2 * len(array) + 64, array.dtype)
    bigger[:used] = array[:used]
    return bigger
