"""PathMatch table of paper 003: which linear paths match which tag paths, computed once for each new path.

Linear paths are in a trie, so that those with a common prefix are compared with a tag path together. A new tag path is
matched against the trie; a new linear path is compared with all known tag paths. Linear paths that no segment uses any
more are removed.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from threading import Lock

from tidings.documents.model import Axis, LinearStep, NodeKind, steps_of

MOST_TAG_PATHS = 100_000
"""Limit of the cache of tag paths, because documents may contain ever new tags. It is cleared when full."""


@dataclass(slots=True)
class _State:
    """A common prefix of linear paths; `ends` is the path that ends current."""

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
        self._known: dict[str, frozenset[str]] = {}
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
                self._known = {tag: old | self._match(new_root, tag) for tag, old in self._known.items()}

    def release(self, linear: Iterable[str]) -> None:
        """Release linear paths that a segment used.

        The garbage collector may call this at any moment, even while this thread holds the lock, so it only queues.
        """
        self._released.append(frozenset(linear))

    def _forget_released(self) -> None:
        while self._released:
            self._used.subtract(self._released.popleft())
        gone = frozenset(path for path, users in self._used.items() if users <= 0)
        for path in gone:
            del self._used[path]
            _remove(self._root, steps_of(path))
        if gone:
            self._known = {tag: linear - gone for tag, linear in self._known.items()}

    def matching(self, tag_path: str) -> frozenset[str]:
        """Return the linear paths in use that match a tag path."""
        matching = self._known.get(tag_path)
        if matching is None:
            with self._lock:
                if len(self._known) >= MOST_TAG_PATHS:
                    self._known = {}
                matching = self._known[tag_path] = self._match(self._root, tag_path)
        return matching

    def forget(self, tag_paths: Iterable[str]) -> None:
        """Remove tag paths that are not expected again."""
        with self._lock:
            for path in tag_paths:
                self._known.pop(path, None)

    @property
    def linear_paths(self) -> int:
        with self._lock:
            self._forget_released()
            return len(self._used)

    @property
    def tag_paths(self) -> int:
        return len(self._known)

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
