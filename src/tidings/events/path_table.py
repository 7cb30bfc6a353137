"""Lookup table of wanted paths for the JSON kernels."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from tidings.matching.kernels.decode import json_objects as kernel
from tidings.matching.kernels.decode.names import Keys, fill_slots

_CLOUD_EVENT = "specversion"


class PathTable:
    """Wanted paths for `json_columns.decode_many`. Build it once per set of paths and use it for many batches.

    A path's number in the atoms is its place in `paths`. The strings of `loose` paths are never read, so one with an
    escape may keep its raw bytes.
    """

    def __init__(self, paths: Iterable[str], loose: Collection[str] = ()) -> None:
        self.paths = tuple(dict.fromkeys(paths))
        self._exact = np.array([path not in loose for path in self.paths], np.bool_)
        self._with_id: dict[str | None, kernel.Paths] = {}

    def with_id(self, id_field: str | None) -> kernel.Paths:
        """Return the kernel's arrays; `id_field` is the path of the id, if that is wanted too."""
        if id_field not in self._with_id:
            self._with_id[id_field] = self._arrays(id_field)
        return self._with_id[id_field]

    def _arrays(self, id_field: str | None) -> kernel.Paths:
        nodes = _nodes([*self.paths, _CLOUD_EVENT, *([] if id_field is None else [id_field])])
        wanted = np.full(len(nodes) + 1, -1, np.int32)
        for number, path in enumerate(self.paths):
            wanted[nodes[path]] = number
        keys = build_key_table([(-1, b""), *((_parent(path, nodes), _key(path)) for path in nodes)])
        id_node = kernel.NO_ID if id_field is None else nodes[id_field]
        return kernel.Paths(*keys, wanted, self._exact, id_node, nodes[_CLOUD_EVENT])


def build_key_table(entries: Sequence[tuple[int, bytes]]) -> Keys:
    """Build a hash table of parents and keys."""
    lengths = np.array([len(key) for _, key in entries], np.int32)
    table = Keys(
        parent=np.array([parent for parent, _ in entries], np.int32),
        key_start=np.cumsum(lengths, dtype=np.int32) - lengths,
        key_length=lengths,
        key_hash=np.zeros(len(entries), np.uint64),
        key_word=np.array([int.from_bytes(key[:8], "little") for _, key in entries], np.uint64),
        keys=np.frombuffer(b"".join(key for _, key in entries), np.uint8),
        slots=np.full(1 << (2 * len(entries)).bit_length(), -1, np.int32),
    )
    fill_slots(table)
    return table


def _nodes(paths: Iterable[str]) -> dict[str, int]:
    """Number each path and each prefix of one from 1, parents first. The document itself is node 0."""
    nodes: dict[str, int] = {}
    for path in paths:
        segments = path.split(".")
        for depth in range(1, len(segments) + 1):
            nodes.setdefault(".".join(segments[:depth]), len(nodes) + 1)
    return nodes


def _parent(path: str, nodes: dict[str, int]) -> int:
    above, dot, _ = path.rpartition(".")
    return nodes[above] if dot else kernel.ROOT


def _key(path: str) -> bytes:
    """Encode the last segment. Half a surrogate pair becomes bytes that are not UTF-8, so it is never found."""
    return path.rpartition(".")[2].encode(errors="surrogatepass")
