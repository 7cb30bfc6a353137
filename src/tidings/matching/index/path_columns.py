"""Path columns: which columns of a segment test which path of a batch.

For documents this is the PathMatch table of paper 003: which linear paths match which tag paths, computed
once for each new path. Linear paths are in a trie, so that those with a common prefix are compared with a tag
path together. A new tag path is matched against the trie; a new linear path is compared with all known tag
paths. Linear paths that no segment uses any more are removed.
"""

from __future__ import annotations

import weakref
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.atoms import Aspect, AtomShape, Column
from tidings.documents.linear_paths import ANYWHERE
from tidings.documents.model import Axis, LinearStep, NodeKind, steps_of
from tidings.matching.array_functions import starts_of
from tidings.matching.kernels.codes import DENSE_NUMBERS
from tidings.matching.kernels.encode import Codecs
from tidings.matching.kernels.small_batch import Paths

MOST_TAG_PATHS = 100_000
"""Limit of the cache of tag paths, because documents may contain ever new tags. It is cleared when full."""


@dataclass(slots=True)
class _State:
    """A common prefix of linear paths; `ends` is the path that ends here."""

    children: dict[tuple[NodeKind, str], _State] = field(default_factory=dict)
    descendants: dict[tuple[NodeKind, str], _State] = field(default_factory=dict)
    ends: str | None = None

    def edges(self, axis: Axis) -> dict[tuple[NodeKind, str], _State]:
        return self.children if axis is Axis.CHILD else self.descendants


class PathMatch:
    """Linear paths in use, known tag paths, and which match which. Several threads may use it at once."""

    def __init__(self) -> None:
        self._root = _State()
        self._used: Counter[str] = Counter()
        self._released: deque[frozenset[str]] = deque()
        self._linear_paths: dict[str, frozenset[str]] = {}
        self._lock = Lock()
        self.compared = 0
        """The number of comparisons of a tag path with a trie, for tests that each is made once."""

    def use(self, linear: Iterable[str]) -> None:
        """Add linear paths; new ones are compared with the known tag paths."""
        with self._lock:
            self._forget_released()
            paths = set(linear)
            new = sorted(path for path in paths if path not in self._used)
            self._used.update(paths)
            new_root = _State()
            for path in new:
                _insert(self._root, path)
                _insert(new_root, path)
            if new:
                self._linear_paths = {
                    tag: old | self._match(new_root, tag) for tag, old in self._linear_paths.items()
                }

    def release(self, linear: Iterable[str]) -> None:
        """Release linear paths that a segment used.

        The garbage collector may call this at any moment, even while this thread holds the lock, so it only
        queues.
        """
        self._released.append(frozenset(linear))

    def _forget_released(self) -> None:
        while self._released:
            self._used.subtract(self._released.popleft())
        released = frozenset(path for path, users in self._used.items() if users <= 0)
        for path in released:
            del self._used[path]
            _remove(self._root, steps_of(path))
        if released:
            self._linear_paths = {tag: linear - released for tag, linear in self._linear_paths.items()}

    def matching(self, tag_path: str) -> frozenset[str]:
        """Return the linear paths in use that match a tag path."""
        matching = self._linear_paths.get(tag_path)
        if matching is None:
            with self._lock:
                if len(self._linear_paths) >= MOST_TAG_PATHS:
                    self._linear_paths = {}
                matching = self._linear_paths[tag_path] = self._match(self._root, tag_path)
        return matching

    def forget(self, tag_paths: Iterable[str]) -> None:
        """Remove tag paths that are not expected again."""
        with self._lock:
            for path in tag_paths:
                self._linear_paths.pop(path, None)

    @property
    def linear_paths(self) -> int:
        with self._lock:
            self._forget_released()
            return len(self._used)

    @property
    def tag_paths(self) -> int:
        return len(self._linear_paths)

    def _match(self, root: _State, tag_path: str) -> frozenset[str]:
        """Return the linear paths of a trie that match a tag path."""
        self.compared += 1
        return frozenset(
            state.ends for state in _final_states(root, steps_of(tag_path)) if state.ends is not None
        )


def _insert(root: _State, path: str) -> None:
    state = root
    for step in steps_of(path):
        state = state.edges(step.axis).setdefault((step.kind, step.name), _State())
    state.ends = path


def _remove(state: _State, steps: Sequence[LinearStep]) -> bool:
    """Remove a path; return whether the state is empty afterwards."""
    if not steps:
        state.ends = None
    else:
        step, *rest = steps
        edges = state.edges(step.axis)
        if _remove(edges[step.kind, step.name], rest):
            del edges[step.kind, step.name]
    return not state.children and not state.descendants and state.ends is None


def _final_states(root: _State, steps: Sequence[LinearStep]) -> list[_State]:
    """Return the states in which a tag path ends. States followed by `//` stay active for all further steps."""
    current, descending = [root], dict[int, _State]()
    for step in steps:
        for state in current:
            if state.descendants:
                descending[id(state)] = state
        names = _names(step)
        further = [state.children.get(name) for state in current for name in names]
        further += [state.descendants.get(name) for state in descending.values() for name in names]
        # Two routes may lead to one state: `//a//b` matches /a/a/b twice.
        current = list({id(state): state for state in further if state is not None}.values())
    return current


def _names(step: LinearStep) -> list[tuple[NodeKind, str]]:
    """Return the names by which a linear path can refer to a step."""
    if step.kind is NodeKind.TEXT:
        return [(step.kind, step.name)]
    space = step.name.rpartition("}")[0]
    spaces = [(step.kind, f"{space}}}*")] if space else []
    return [(step.kind, step.name), (step.kind, "*"), *spaces]


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

    `hidden` are linear paths without columns of their own, whose values count as values anywhere. `names` are
    the names in the segment's twigs.
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
