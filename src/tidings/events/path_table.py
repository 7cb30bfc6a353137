"""The paths somebody asked about, as a table that finds them while a document is read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from tidings.matching.kernels.decode import json_objects as kernel
from tidings.matching.kernels.decode.names import Keys, fill_slots

_CLOUD_EVENT = "specversion"


class PathTable:
    """Wanted paths for `json_lines.decode_many`. Build it once per set of paths and use it for many batches.

    A path's number in the atoms is its place in `paths`. Of those that are `loose` nobody asks what their strings say:
    the bytes of one with an escape are not what it says.
    """

    def __init__(self, paths: Iterable[str], loose: Collection[str] = ()) -> None:
        self.paths = tuple(dict.fromkeys(paths))
        self._exact = np.array([path not in loose for path in self.paths], np.bool_)
        self._with_id: dict[str | None, kernel.Paths] = {}

    def with_id(self, id_field: str | None) -> kernel.Paths:
        """The arrays for the kernel; `id_field` is the path of the id, if it is to be found too."""
        if id_field not in self._with_id:
            self._with_id[id_field] = self._arrays(id_field)
        return self._with_id[id_field]

    def _arrays(self, id_field: str | None) -> kernel.Paths:
        nodes = _nodes([*self.paths, _CLOUD_EVENT, *([] if id_field is None else [id_field])])
        wanted = np.full(len(nodes) + 1, -1, np.int32)
        for number, path in enumerate(self.paths):
            wanted[nodes[path]] = number
        keys = keyed([(-1, b""), *((_parent(path, nodes), _key(path)) for path in nodes)])
        id_node = kernel.NO_ID if id_field is None else nodes[id_field]
        return kernel.Paths(*keys, wanted, self._exact, id_node, nodes[_CLOUD_EVENT])


def keyed(entries: Sequence[tuple[int, bytes]]) -> Keys:
    """Parents and keys as a table to find them in."""
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
    """Each path and each beginning of one, numbered from 1, parents first. The document itself is node 0."""
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
    """A path with half a surrogate pair gets bytes that no UTF-8 has: it is wanted and never found."""
    return path.rpartition(".")[2].encode(errors="surrogatepass")
