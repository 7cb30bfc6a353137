"""Which linear paths match which tag paths: paper 003's PathMatch table, computed once for each new path.

Linear paths stand in a trie, so that those with a common beginning are compared with a tag path together. A tag path
that is new is led through the trie; a linear path that is new is compared with the tag paths that are known. What
nobody uses any more is forgotten.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from threading import Lock

from tidings.documents.model import Axis, LinearStep, NodeKind, steps_of

MOST_TAG_PATHS = 100_000
"""If more are known, those that come again are compared again: documents may invent tags without end."""


@dataclass(slots=True)
class _State:
    """A beginning that some linear paths share; `ends` names the one that ends here."""

    children: dict[tuple[NodeKind, str], _State] = field(default_factory=dict)
    descendants: dict[tuple[NodeKind, str], _State] = field(default_factory=dict)
    ends: str | None = None

    def edges(self, axis: Axis) -> dict[tuple[NodeKind, str], _State]:
        return self.children if axis is Axis.CHILD else self.descendants


class PathMatch:
    """Linear paths in use, tag paths that were met, and which match. Several threads may ask at once."""

    def __init__(self) -> None:
        self._root = _State()
        self._used: Counter[str] = Counter()
        self._released: deque[frozenset[str]] = deque()
        self._known: dict[str, frozenset[str]] = {}
        self._lock = Lock()
        self.compared = 0
        """How many tag paths were led through a trie, for whoever wants to know whether that is done once."""

    def use(self, linear: Iterable[str]) -> None:
        """Take linear paths; those that are new are compared with the known tag paths."""
        with self._lock:
            self._forget_released()
            asked = set(linear)
            new = sorted(path for path in asked if path not in self._used)
            self._used.update(asked)
            fresh = _State()
            for path in new:
                _enter(self._root, path)
                _enter(fresh, path)
            if new:
                self._known = {tag: held | self._led(fresh, tag) for tag, held in self._known.items()}

    def release(self, linear: Iterable[str]) -> None:
        """Say that somebody who used linear paths does not any more.

        The garbage collector may call this at any moment, while this thread holds the lock, too: so it is only noted.
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
            self._known = {tag: held - gone for tag, held in self._known.items()}

    def matching(self, tag_path: str) -> frozenset[str]:
        """The linear paths in use that match a tag path."""
        held = self._known.get(tag_path)
        if held is None:
            with self._lock:
                if len(self._known) >= MOST_TAG_PATHS:
                    self._known = {}
                held = self._known[tag_path] = self._led(self._root, tag_path)
        return held

    def forget(self, tag_paths: Iterable[str]) -> None:
        """Forget tag paths that will not come again."""
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

    def _led(self, root: _State, tag_path: str) -> frozenset[str]:
        """The linear paths of a trie that match a tag path."""
        self.compared += 1
        return frozenset(state.ends for state in _lead(root, steps_of(tag_path)) if state.ends is not None)


def _enter(root: _State, path: str) -> None:
    state = root
    for step in steps_of(path):
        state = state.edges(step.axis).setdefault((step.kind, step.name), _State())
    state.ends = path


def _remove(state: _State, steps: Sequence[LinearStep]) -> bool:
    """Take a path out; whether nothing is left of the state."""
    if not steps:
        state.ends = None
    else:
        step, *rest = steps
        edges = state.edges(step.axis)
        if _remove(edges[step.kind, step.name], rest):
            del edges[step.kind, step.name]
    return not state.children and not state.descendants and state.ends is None


def _lead(root: _State, steps: Sequence[LinearStep]) -> list[_State]:
    """The states a tag path ends in. States with `//` ahead stay in play for all steps further down."""
    here, open_ones = [root], dict[int, _State]()
    for step in steps:
        for state in here:
            if state.descendants:
                open_ones[id(state)] = state
        names = _names(step)
        further = [state.children.get(name) for state in here for name in names]
        further += [state.descendants.get(name) for state in open_ones.values() for name in names]
        # Two ways may lead to one state: `//a//b` meets /a/a/b twice.
        here = list({id(state): state for state in further if state is not None}.values())
    return here


def _names(step: LinearStep) -> list[tuple[NodeKind, str]]:
    """What a step may be called in a linear path."""
    if step.kind is NodeKind.TEXT:
        return [(step.kind, step.name)]
    space = step.name.rpartition("}")[0]
    spaces = [(step.kind, f"{space}}}*")] if space else []
    return [(step.kind, step.name), (step.kind, "*"), *spaces]
