"""Which files the tables consist of: a list that is replaced in one step, so that a change counts whole or not at all.

A change only adds files. What a crash leaves behind is in no list; collecting garbage removes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from tidings.core.atomic_files import write_atomically
from tidings.errors import InputError
from tidings.relational.tables import Layout, Plan

LIST = "tables.json"

Files = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Version:
    """The files of each table, relative to `folder`. The generation counts changes, so it tells versions apart."""

    folder: str
    layout: Layout
    generation: int = 0
    files: Files = field(default_factory=dict, compare=False)

    @classmethod
    def read(cls, folder: str | Path) -> Version:
        path = Path(folder) / LIST
        if not path.exists():
            raise InputError("there are no tables of subscriptions here", where=str(folder))
        held = json.loads(path.read_text())
        layout = Layout(Plan(held["layout"].pop("plan")), **held["layout"])
        files = {name: tuple(listed) for name, listed in held["files"].items()}
        return cls(str(path.parent), layout, held["generation"], files)

    def commit(self) -> None:
        """From now on these are the tables."""
        text = json.dumps({name: part for name, part in asdict(self).items() if name != "folder"}, indent=1)
        write_atomically(Path(self.folder) / LIST, text)

    def next(self, *more: Files) -> Version:
        """The next generation, with more files."""
        files = dict(self.files)
        for each in more:
            files |= {name: (*files.get(name, ()), *listed) for name, listed in each.items()}
        return replace(self, generation=self.generation + 1, files=files)

    def paths(self, table: str) -> list[str]:
        return [f"{self.folder}/{file}" for file in self.files.get(table, ())]

    def rows(self, table: str, columns: list[str] | None = None, where: Any = None) -> Any:
        """A table, or a part of it, in memory."""
        schema, paths = self.layout.schemas[table], self.paths(table)
        if not paths:
            return schema.empty_table().select(columns or schema.names)
        return ds.dataset(paths, schema, format="parquet").to_table(columns, where)

    def alive(self, table: str, column: str, ids: Sequence[str] | None = None) -> list[tuple[str, str]]:
        """Subscriptions of a table, those of `ids` if they are given, that no tombstone names; each with a column."""
        wanted = None if ids is None else pc.field("subscription").isin(list(ids))
        dead: dict[str, int] = {}
        for id, generation in _tuples(self.rows("tombstone", None, wanted)):
            dead[id] = max(generation, dead.get(id, 0))
        rows = self.rows(table, ["subscription", column, "generation"], wanted)
        return [(id, value) for id, value, generation in _tuples(rows) if generation > dead.get(id, 0)]


def _tuples(table: Any) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def write_tables(folder: str | Path, tables: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """A new file for each table that has rows, under names that nobody else uses."""
    return {
        name: (_write(Path(folder), f"{name}/{uuid4().hex}.parquet", rows),)
        for name, rows in tables.items()
        if rows.num_rows
    }


def _write(folder: Path, name: str, rows: pa.Table) -> str:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, folder / name)
    return name
