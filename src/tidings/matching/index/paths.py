"""Which columns of a segment look at which path of a batch, and what twigs call its nodes."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.atoms import Aspect, Column, PublicationKind
from tidings.documents.linear_paths import ANYWHERE
from tidings.documents.model import steps_of
from tidings.matching.index.arrays import starts_of
from tidings.matching.index.path_match import PathMatch
from tidings.matching.kernels.codes import DENSE_NUMBERS
from tidings.matching.kernels.encode import Codecs
from tidings.matching.kernels.small_batch import Paths


class Names(NamedTuple):
    """Of each tag path: the kind of its last node, the number of its name and that of any name of its namespace."""

    kind: npt.NDArray[np.uint8]
    name: npt.NDArray[np.int32]
    space: npt.NDArray[np.int32]


class KnownPaths(NamedTuple):
    """What a segment makes of a list of paths. `sought` are those whose texts are sought in the shared strings."""

    paths: tuple[str, ...]
    of: PublicationKind
    columns: Paths
    names: Names
    sought: npt.NDArray[np.bool_]


class Patterns:
    """The columns of a segment by path, and for documents by the linear paths that match a tag path.

    `hidden` are linear paths without columns of their own, whose values are looked at anywhere; `names` are those in
    the segment's twigs.
    """

    def __init__(
        self, columns: Sequence[Column], hidden: Sequence[str], names: Sequence[str], path_match: PathMatch
    ) -> None:
        self._columns, self._hidden, self._path_match = columns, frozenset(hidden), path_match
        self._numbers = {name: number for number, name in enumerate(names)}
        by_path: dict[PublicationKind, dict[str, list[int]]] = {of: {} for of in PublicationKind}
        for number, column in enumerate(columns):
            by_path[column.of].setdefault(column.path, []).append(number)
        self._by_path, self._linear = by_path, by_path[PublicationKind.DOCUMENT]
        self._anywhere = self._linear.pop(ANYWHERE, [])
        used = (*self._linear, *(path for path in hidden if path not in self._linear))
        path_match.use(used)
        weakref.finalize(self, path_match.release, used)

    def look_at(self, paths: tuple[str, ...], of: PublicationKind, codecs: Codecs) -> KnownPaths:
        """What the segment makes of the paths of a batch."""
        if of is PublicationKind.DOCUMENT:
            lists, names = [self._of_tag_path(path) for path in paths], self._names(paths)
        else:
            lists, names = [self._by_path[of].get(path, []) for path in paths], _NO_NAMES
        sought = np.array([bool(codecs.strings.shared[numbers].any()) for numbers in lists], np.bool_)
        return KnownPaths(paths, of, _paths(lists, self._columns, codecs), names, sought)

    def _of_tag_path(self, path: str) -> list[int]:
        matching = self._path_match.matching(path)
        found = [number for linear in matching for number in self._linear.get(linear, ())]
        return sorted([*found, *self._anywhere] if matching & self._hidden else found)

    def _names(self, paths: Sequence[str]) -> Names:
        last = [steps_of(path)[-1] for path in paths]
        return Names(
            np.array([step.kind for step in last], np.uint8),
            np.array([self._numbers.get(step.name, -1) for step in last], np.int32),
            np.array([_space(step.name, self._numbers) for step in last], np.int32),
        )


def _space(name: str, numbers: Mapping[str, int]) -> int:
    """The number of any name of a name's namespace. -2 is nobody's: a name that is not known has -1."""
    uri, brace, _ = name.rpartition("}")
    return numbers.get(f"{uri}}}*", -2) if brace else -2


_NO_NAMES = Names(np.empty(0, np.uint8), np.empty(0, np.int32), np.empty(0, np.int32))


def _paths(lists: Sequence[Sequence[int]], columns: Sequence[Column], codecs: Codecs) -> Paths:
    """What `matching.kernels.encode.AtomArrays` says of the paths of a batch."""
    low, count = np.zeros(len(lists), np.int64), np.zeros(len(lists), np.int64)
    for place, numbers in enumerate(lists):
        if len(numbers) == 1 and columns[numbers[0]].aspect == Aspect.VALUE:
            dense = codecs.numbers.mode[numbers[0]] == DENSE_NUMBERS
            low[place] = codecs.numbers.low[numbers[0]]
            count[place] = codecs.numbers.count[numbers[0]] if dense else 0
    flat = np.array([number for numbers in lists for number in numbers], np.uint32)
    return Paths(starts_of([len(numbers) for numbers in lists]), flat, low, count)
