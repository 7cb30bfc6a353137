"""The tables of the relational engine, with the names the paper gives them (figures 3.4, 3.7, 3.8, 3.11 and 4.1).

Ids are made from what they stand for, not counted: whoever takes a subscription apart knows the ids of its paths and
chains without asking anybody, and predicates that subscriptions have in common get the same id by themselves
(section 4.2). Ids of chains have 128 bits. Ids of paths have 64, and the driver, who sees all paths, checks them.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

import pyarrow as pa

_KEY, _ID, _TEXT, _NUMBER = pa.binary(), pa.int64(), pa.string(), pa.float64()

ROOT = bytes(16)
"""Where all chains begin: the `pre_id` 0 of the paper."""


def _schema(**columns: Any) -> Any:
    return pa.schema(list(columns.items()))


TABLES = {
    "query_linear_path": _schema(linearpath=_TEXT, id=_ID, prefix=_TEXT, postfix=_TEXT, middle=_TEXT),
    "query_predicate": _schema(
        pre_id=_KEY, linearpath_id=_ID, op=_TEXT, value=_TEXT, number=_NUMBER, chain_id=_KEY, final=pa.bool_()
    ),
    "linearpath_brinfo": _schema(linearpath=_TEXT, linearpath_id=_ID, brinfo=_TEXT, brinfo_id=_ID),
    "query_branchpoint": _schema(
        sub_id=_KEY, branchpoint_info=_TEXT, subscription=_TEXT, text=_TEXT, generation=_ID
    ),
    "query_everywhere": _schema(subscription=_TEXT, text=_TEXT, generation=_ID),
    "predicate_bucket": _schema(linearpath_id=_ID, op=_TEXT, bounds=pa.list_(_NUMBER)),
    "tombstone": _schema(subscription=_TEXT, generation=_ID),
    "tagpath_map": _schema(tagpath=_TEXT, inv_tagpath=_TEXT, tagpath_id=_ID),
    "path_match": _schema(tagpath_id=_ID, linearpath_id=_ID),
    "tagpath_brinfo": _schema(tagpath_id=_ID, brinfo_id=_ID, bp_position=_TEXT),
}
"""All tables but `predicate_unroll`, whose columns depend on k.

A predicate's `value` is its literal; `number` is set if that is a number. `text` is set if what the joins find must be
verified; `query_everywhere` has what the joins have no hold on. `branchpoint_info` is null if branches meet anyway.
A row of a subscription is dead if a tombstone of a later generation names it.
"""

UNROLLED = ("path", "op", "value", "number")
"""The columns that `predicate_unroll` has k times."""


class Plan(StrEnum):
    """How predicates are laid out and joined (section 4)."""

    SHARE = "share"
    SHARE_BUCKET = "share-bucket"
    UNROLL = "unroll"


@dataclass(frozen=True, slots=True)
class Layout:
    """The plan that tables are laid out for; how many predicates a row has in `unroll`, how many buckets there are."""

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
    """The id of a linear path or a tag path."""
    return _number(text.encode())


@lru_cache(maxsize=1 << 16)
def brinfo_id(linear: str, info: str) -> int:
    """The id of a linear path with its branching information."""
    return _number(f"{linear} {info}".encode())


def _number(data: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big", signed=True)


def sub_id(subscription: str, generation: int, alternative: int) -> bytes:
    """The id of an alternative: each is a subscription of its own in the tables (section 3.1)."""
    return _key(f"{generation} {alternative} {subscription}".encode())


def chain_id(pre_id: bytes, linearpath_id: int, op: str, value: str, numeric: bool) -> bytes:
    """Where a chain leads to from `pre_id` if a predicate holds."""
    return _key(pre_id + struct.pack(">q?", linearpath_id, numeric) + f"{op} {value}".encode())


def _key(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
