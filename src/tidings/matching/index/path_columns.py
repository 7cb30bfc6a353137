"""Path columns: which columns of a segment test which path of a batch."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.atoms import Aspect, AtomShape, Column
from tidings.documents.linear_paths import ANYWHERE
from tidings.documents.model import steps_of
from tidings.matching.index.arrays import starts_of
from tidings.matching.index.path_match import PathMatch
from tidings.matching.kernels.codes import DENSE_NUMBERS
from tidings.matching.kernels.encode import Codecs
from tidings.matching.kernels.small_batch import Paths


class Names(NamedTuple):
    """For each tag path: the kind of its last node, the number of its name and of the wildcard of its namespace."""

    kind: npt.NDArray[np.uint8]
    name: npt.NDArray[np.int32]
    space: npt.NDArray[np.int32]


class PathColumns(NamedTuple):
    """The columns of a list of paths. `lookup` marks paths whose texts are looked up in the shared strings."""

    paths: tuple[str, ...]
    shape: AtomShape
    columns: Paths
    names: Names
    lookup: npt.NDArray[np.bool_]


class PathResolver:
    """The columns of a segment by path; for documents, by the linear paths that match a tag path.

    `hidden` are linear paths without columns of their own, whose values count as values anywhere. `names` are the
    names in the segment's twigs.
    """

    def __init__(
        self, columns: Sequence[Column], hidden: Sequence[str], names: Sequence[str], path_match: PathMatch
    ) -> None:
        self._columns, self._hidden, self._path_match = columns, frozenset(hidden), path_match
        self._numbers = {name: number for number, name in enumerate(names)}
        by_path: dict[AtomShape, dict[str, list[int]]] = {shape: {} for shape in AtomShape}
        for number, column in enumerate(columns):
            by_path[column.shape].setdefault(column.path, []).append(number)
        self._by_path, self._linear = by_path, by_path[AtomShape.TREE]
        self._anywhere = self._linear.pop(ANYWHERE, [])
        used = (*self._linear, *(path for path in hidden if path not in self._linear))
        path_match.use(used)
        weakref.finalize(self, path_match.release, used)

    def resolve(self, paths: tuple[str, ...], shape: AtomShape, codecs: Codecs) -> PathColumns:
        """Find the columns of the paths of a batch."""
        if shape is AtomShape.TREE:
            lists, names = [self._columns_of(path) for path in paths], self._names(paths)
        else:
            lists, names = [self._by_path[shape].get(path, []) for path in paths], _NO_NAMES
        lookup = np.array([bool(codecs.strings.shared[numbers].any()) for numbers in lists], np.bool_)
        return PathColumns(paths, shape, _path_arrays(lists, self._columns, codecs), names, lookup)

    def _columns_of(self, path: str) -> list[int]:
        matching = self._path_match.matching(path)
        numbers = [number for linear in matching for number in self._linear.get(linear, ())]
        return sorted([*numbers, *self._anywhere] if matching & self._hidden else numbers)

    def _names(self, paths: Sequence[str]) -> Names:
        last = [steps_of(path)[-1] for path in paths]
        return Names(
            np.array([step.kind for step in last], np.uint8),
            np.array([self._numbers.get(step.name, -1) for step in last], np.int32),
            np.array([_wildcard_number(step.name, self._numbers) for step in last], np.int32),
        )


def _wildcard_number(name: str, numbers: Mapping[str, int]) -> int:
    """Return the number of the wildcard of a name's namespace. -2 matches nothing: unknown names have -1."""
    uri, brace, _ = name.rpartition("}")
    return numbers.get(f"{uri}}}*", -2) if brace else -2


_NO_NAMES = Names(np.empty(0, np.uint8), np.empty(0, np.int32), np.empty(0, np.int32))


def _path_arrays(lists: Sequence[Sequence[int]], columns: Sequence[Column], codecs: Codecs) -> Paths:
    """Return the arrays of `matching.kernels.encode.AtomArrays` about the paths of a batch."""
    low, count = np.zeros(len(lists), np.int64), np.zeros(len(lists), np.int64)
    for place, numbers in enumerate(lists):
        if len(numbers) == 1 and columns[numbers[0]].aspect == Aspect.VALUE:
            dense = codecs.numbers.mode[numbers[0]] == DENSE_NUMBERS
            low[place] = codecs.numbers.low[numbers[0]]
            count[place] = codecs.numbers.count[numbers[0]] if dense else 0
    flat = np.array([number for numbers in lists for number in numbers], np.uint32)
    return Paths(starts_of([len(numbers) for numbers in lists]), flat, low, count)
