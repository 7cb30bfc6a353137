"""Tables of the relational engine, named as in the paper (figures 3.4, 3.7, 3.8, 3.11 and 4.1), and their files.

Ids are hashes, not counters: a task knows the ids of paths and chains without asking, and predicates that subscriptions
have in common get the same id (section 4.2). Ids of chains have 128 bits. Ids of paths have 64, and the driver, which
sees all paths, checks them for collisions.

The list of files is replaced atomically, so a change counts completely or not at all. A change only adds files. A crash
leaves files that are not listed; compaction removes them.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from tidings.core.atomic_files import write_atomically
from tidings.errors import InputError

_KEY, _ID, _TEXT, _NUMBER = pa.binary(), pa.int64(), pa.string(), pa.float64()

ROOT = bytes(16)
"""The start of all chains: the `pre_id` 0 of the paper."""


def _schema(**columns: Any) -> Any:
    return pa.schema(list(columns.items()))


TABLES = {
    "query_linear_path": _schema(linearpath=_TEXT, id=_ID, prefix=_TEXT, postfix=_TEXT, middle=_TEXT),
    "query_predicate": _schema(
        pre_id=_KEY, linearpath_id=_ID, op=_TEXT, value=_TEXT, number=_NUMBER, chain_id=_KEY, final=pa.bool_()
    ),
    "linearpath_brinfo": _schema(linearpath=_TEXT, linearpath_id=_ID, brinfo=_TEXT, brinfo_id=_ID),
    "query_branchpoint": _schema(
        sub_id=_KEY, branchpoint_info=_TEXT, subscription=_TEXT, subscriber=_TEXT, text=_TEXT, generation=_ID
    ),
    "query_everywhere": _schema(subscription=_TEXT, subscriber=_TEXT, text=_TEXT, generation=_ID),
    "predicate_bucket": _schema(linearpath_id=_ID, op=_TEXT, bounds=pa.list_(_NUMBER)),
    "tombstone": _schema(subscription=_TEXT, generation=_ID),
    "tagpath_map": _schema(tagpath=_TEXT, inv_tagpath=_TEXT, tagpath_id=_ID),
    "path_match": _schema(tagpath_id=_ID, linearpath_id=_ID),
    "tagpath_brinfo": _schema(tagpath_id=_ID, brinfo_id=_ID, bp_position=_TEXT),
}
"""All tables except `predicate_unroll`, whose columns depend on k.

`value` is the literal of a predicate; `number` is set if it is a number. `text` is set if matches of the joins must be
verified; `query_everywhere` has the subscriptions that joins cannot select. `branchpoint_info` is null if branches meet
in any case. A row is dead if a tombstone of its generation or of a later one names its subscription.
"""

CLUSTERED_BY = {
    "query_predicate": ("pre_id", "linearpath_id", "value"),
    "predicate_unroll": ("path1", "value1"),
    "query_branchpoint": ("sub_id",),
}
"""The columns by which large tables are looked up: the rows of each file are in their order."""

ROW_GROUP = 2_000
"""Rows of a row group, the least that a look-up reads of a file."""

UNROLLED = ("path", "op", "value", "number")
"""The columns that `predicate_unroll` has k times."""


class Plan(StrEnum):
    """Layouts of predicates and their joins (section 4)."""

    SHARE = "share"
    SHARE_BUCKET = "share-bucket"
    UNROLL = "unroll"


@dataclass(frozen=True, slots=True)
class Layout:
    """The plan of the tables, the predicates per row of `unroll`, and the number of buckets."""

    plan: Plan = Plan.SHARE
    unroll: int = 5
    buckets: int = 20

    @property
    def schemas(self) -> dict[str, Any]:
        return TABLES | {"predicate_unroll": self._unrolled()}

    def _unrolled(self) -> Any:
        types = dict(zip(UNROLLED, (_ID, _TEXT, _TEXT, _NUMBER), strict=True))
        columns = [(f"{name}{n}", types[name]) for n in range(1, self.unroll + 1) for name in UNROLLED]
        return pa.schema([("sub_id", _KEY), *columns, ("final", pa.bool_())])


@lru_cache(maxsize=1 << 16)
def path_id(text: str) -> int:
    """Return the id of a linear path or a tag path."""
    return _number(text.encode())


@lru_cache(maxsize=1 << 16)
def brinfo_id(linear: str, info: str) -> int:
    """Return the id of a linear path with its branching information."""
    return _number(f"{linear} {info}".encode())


def _number(data: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big", signed=True)


def sub_id(subscription: str, generation: int, alternative: int) -> bytes:
    """Return the id of an alternative, which is a subscription of its own in the tables (section 3.1)."""
    return _key(f"{generation} {alternative} {subscription}".encode())


def chain_id(pre_id: bytes, linearpath_id: int, op: str, value: str, numeric: bool) -> bytes:
    """Return the id that a chain reaches from `pre_id` if a predicate holds."""
    return _key(pre_id + struct.pack(">q?", linearpath_id, numeric) + f"{op} {value}".encode())


def _key(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


LIST = "tables.json"

Files = Mapping[str, Mapping[str, int]]
"""The number of rows of each file, by table and by name."""


@dataclass(frozen=True, slots=True)
class StorePosition:
    """A store of subscriptions, and its version."""

    store: str
    version: int


@dataclass(frozen=True, slots=True)
class Version:
    """The files of each table, relative to `folder`. The generation counts changes, so it tells versions apart.

    `subscriptions` is the number of live ones. Tables that follow a store have its position in `follows`.
    """

    folder: str
    layout: Layout
    generation: int = 0
    files: Files = field(default_factory=dict, compare=False)
    subscriptions: int = field(default=0, compare=False)
    follows: StorePosition | None = None

    @classmethod
    def read(cls, folder: str | Path) -> Version:
        path = Path(folder) / LIST
        if not path.exists():
            raise InputError("the folder has no tables of subscriptions", where=str(folder))
        stored = json.loads(path.read_text())
        layout = Layout(Plan(stored["layout"].pop("plan")), **stored.pop("layout"))
        follows = stored.pop("follows")
        return cls(str(path.parent), layout, follows=follows and StorePosition(**follows), **stored)

    def commit(self) -> None:
        """Make this the current version of the tables."""
        text = json.dumps({name: part for name, part in asdict(self).items() if name != "folder"}, indent=1)
        write_atomically(Path(self.folder) / LIST, text)

    def next(self, *more: Files) -> Version:
        """Return the next generation, with more files."""
        files = dict(self.files)
        for each in more:
            files |= {name: {**files.get(name, {}), **listed} for name, listed in each.items()}
        return replace(self, generation=self.generation + 1, files=files)

    def count(self, table: str) -> int:
        """Count the rows of a table, dead ones included."""
        return sum(self.files.get(table, {}).values())

    def paths(self, table: str) -> list[str]:
        return [f"{self.folder}/{file}" for file in self.files.get(table, ())]

    def rows(self, table: str, columns: list[str] | None = None, where: Any = None) -> Any:
        """Read a table, or a part of it, into memory."""
        schema, paths = self.layout.schemas[table], self.paths(table)
        if not paths:
            return schema.empty_table().select(columns or schema.names)
        return ds.dataset(paths, schema, format="parquet").to_table(columns, where)

    def alive(
        self, table: str, columns: Sequence[str] = (), ids: Sequence[str] | None = None
    ) -> list[tuple[str, ...]]:
        """Return live subscriptions of a table, optionally only `ids`, each with some columns."""
        wanted = None if ids is None else pc.field("subscription").isin(pa.array(ids, pa.string()))
        dead: dict[str, int] = {}
        for id, generation in _tuples(self.rows("tombstone", None, wanted)):
            dead[id] = max(generation, dead.get(id, 0))
        rows = self.rows(table, ["subscription", "generation", *columns], wanted)
        return [(id, *rest) for id, generation, *rest in _tuples(rows) if generation > dead.get(id, 0)]


def _tuples(table: Any) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def write_tables(folder: str | Path, tables: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Write a new file with a unique name for each table that has rows."""
    return {
        name: {_write(Path(folder), f"{name}/{uuid4().hex}.parquet", rows): rows.num_rows}
        for name, rows in tables.items()
        if rows.num_rows
    }


def _write(folder: Path, name: str, rows: pa.Table) -> str:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    if keys := CLUSTERED_BY.get(name.partition("/")[0]):
        rows = rows.sort_by([(key, "ascending") for key in keys])
    pq.write_table(rows, folder / name, row_group_size=ROW_GROUP)
    return name
