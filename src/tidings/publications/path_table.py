"""The paths somebody asked about, as a table that finds them while a document is read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tidings.kernels import json_lines as kernel

_CLOUD_EVENT = "specversion"


class PathTable:
    """Wanted paths for `json_lines.decode_many`. Build it once per set of paths and use it for many batches.

    A path's number in the atoms is its place in `paths`.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths = tuple(dict.fromkeys(paths))
        self._with_id: dict[str | None, kernel.Paths] = {}

    def with_id(self, id_field: str | None) -> kernel.Paths:
        """The arrays for the kernel; `id_field` is the path of the id, if it is to be found too."""
        if id_field not in self._with_id:
            self._with_id[id_field] = _arrays(self.paths, id_field)
        return self._with_id[id_field]


def _arrays(paths: Sequence[str], id_field: str | None) -> kernel.Paths:
    nodes = _nodes([*paths, _CLOUD_EVENT, *([] if id_field is None else [id_field])])
    wanted = np.full(len(nodes) + 1, -1, np.int32)
    for number, path in enumerate(paths):
        wanted[nodes[path]] = number
    keys = [b"", *(_key(path) for path in nodes)]
    ends = np.cumsum([len(key) for key in keys]).astype(np.int32)
    lengths = np.array([len(key) for key in keys], np.int32)
    arrays = kernel.Paths(
        parent=np.array([-1, *(_parent(path, nodes) for path in nodes)], np.int32),
        key_start=ends - lengths,
        key_length=lengths,
        key_hash=np.zeros(len(keys), np.uint64),
        keys=np.array(list(b"".join(keys)), np.uint8),
        path=wanted,
        slots=np.full(1 << (2 * len(keys)).bit_length(), -1, np.int32),
        id_node=kernel.NO_ID if id_field is None else nodes[id_field],
        cloud_event=nodes[_CLOUD_EVENT],
    )
    kernel.fill_slots(arrays)
    return arrays


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
