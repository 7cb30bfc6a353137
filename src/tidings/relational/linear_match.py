"""Matching of linear paths with tag paths, and positions of branching points (sections 3.2 and 3.4).

A linear path is cut at its first and its last `//`: `/a//b/p//q/text()` has the prefix `/a`, the middle `b/p` and the
postfix `text()/q`, written backwards, so that both ends are compared from their beginning.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import pairwise

from tidings.documents.model import Axis, LinearStep, NodeKind, is_named, show_node, show_steps, steps_of

Steps = tuple[LinearStep, ...]


@dataclass(frozen=True, slots=True)
class LinearPath:
    """A linear path in three parts. Without `//` it is all prefix, and has no postfix.

    `middle` is a list of pieces, between which any steps may come.
    """

    prefix: Steps
    middle: tuple[Steps, ...] = ()
    postfix: Steps | None = None

    @classmethod
    @lru_cache(maxsize=1 << 16)
    def of(cls, text: str) -> LinearPath:
        first, *rest = _cut(steps_of(text))
        return cls(first, tuple(rest[:-1]), rest[-1][::-1]) if rest else cls(first)

    def show(self) -> tuple[str, str | None, str | None]:
        """Return prefix, postfix and middle in the notation of figure 3.4."""
        postfix = None if self.postfix is None else "/".join(show_node(s.kind, s.name) for s in self.postfix)
        middle = show_steps([step for piece in self.middle for step in piece]).removeprefix("//")
        return show_steps(self.prefix), postfix, middle or None

    def fits(self, tag: Steps) -> bool:
        """Return whether a node with this tag path is at this linear path."""
        if self.postfix is None:
            return len(tag) == len(self.prefix) and _begins(tag, self.prefix)
        rest = tag[len(self.prefix) : len(tag) - len(self.postfix)]
        return (
            len(self.prefix) + len(self.postfix) <= len(tag)
            and _begins(tag, self.prefix)
            and _begins(tag[::-1], self.postfix)
            and _holds(rest, self.middle)
        )


def _cut(steps: Steps) -> list[Steps]:
    """Cut steps at each `//`; the first piece is empty if the path begins with one."""
    starts = [0, *(i for i, step in enumerate(steps) if step.axis is Axis.DESCENDANT), len(steps)]
    return [steps[start:end] for start, end in pairwise(starts)]


def is_step(asked: LinearStep, step: LinearStep) -> bool:
    return asked.kind is step.kind and is_named(asked.name, step.name)


def _begins(tag: Steps, piece: Steps) -> bool:
    return all(is_step(asked, step) for asked, step in zip(piece, tag, strict=False))


def _holds(tag: Steps, pieces: tuple[Steps, ...]) -> bool:
    """Return whether the pieces occur in a tag path in order; choosing each as early as possible misses none."""
    at = 0
    for piece in pieces:
        last = len(tag) - len(piece)
        while at <= last and not _begins(tag[at:], piece):
            at += 1
        if at > last:
            return False
        at += len(piece)
    return True


End = tuple[NodeKind, str]


def _end(step: LinearStep) -> End:
    return step.kind, step.name


@dataclass(slots=True)
class PathMatch:
    """The relation of matching tag paths and linear paths; both sides grow.

    Paths are looked up by their last step, the beginning of the postfix: a tag path meets only linear paths that end in
    its own name or in a wildcard. Section 3.4 uses an index on prefix and postfix instead.
    """

    linear: dict[End, dict[str, LinearPath]] = field(default_factory=lambda: defaultdict(dict))
    tags: dict[End, dict[str, Steps]] = field(default_factory=lambda: defaultdict(dict))

    def add_linear(self, text: str) -> list[str]:
        """Add a linear path; return the known tag paths that match it."""
        path = LinearPath.of(text)
        asked = (path.postfix or path.prefix[::-1])[0]
        self.linear[_end(asked)][text] = path
        ends = [end for end in self.tags if end[0] is asked.kind and is_named(asked.name, end[1])]
        return [name for end in ends for name, steps in self.tags[end].items() if path.fits(steps)]

    def add_tag(self, text: str) -> list[str]:
        """Add a tag path; return the known linear paths that it matches."""
        steps = steps_of(text)
        self.tags[_end(steps[-1])][text] = steps
        return list(self.at(steps))

    def at(self, tag: Steps) -> Iterator[str]:
        """Yield the known linear paths that a tag path matches."""
        kind, name = _end(tag[-1])
        for end in dict.fromkeys([(kind, name), *_wildcards(kind, name)]):
            yield from (text for text, path in self.linear.get(end, {}).items() if path.fits(tag))


def _wildcards(kind: NodeKind, name: str) -> Iterable[End]:
    uri = name[: name.index("}") + 1] if name.startswith("{") else ""
    return ((kind, "*"), (kind, f"{uri}*"))


def positions(linear: str, tag: str, points: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Return all position arrays of branching points in a tag path (section 3.5.1), in order, each once.

    `points` are steps of the linear path, counted from one, and so are the positions in the tag path. Like the paper
    this tries all ways, but ways that differ only between branching points are followed once.
    """
    asked, steps, wanted = steps_of(linear), steps_of(tag), frozenset(points)

    @cache
    def ways(step: int, at: int) -> frozenset[tuple[int, ...]]:
        """Return the arrays of the steps from `step` on, if the first of them is at `at`."""
        if not is_step(asked[step], steps[at]):
            return frozenset()
        own = (at + 1,) if step + 1 in wanted else ()
        if step + 1 == len(asked):
            return frozenset({own}) if at + 1 == len(steps) else frozenset()
        return frozenset(
            own + rest for to in _next(asked[step + 1], at + 1, len(steps)) for rest in ways(step + 1, to)
        )

    return tuple(sorted({way for at in _next(asked[0], 0, len(steps)) for way in ways(0, at)}))


def _next(asked: LinearStep, first: int, end: int) -> range:
    """Return the positions that a step may reach from just before `first`."""
    return range(first, end if asked.axis is Axis.DESCENDANT else min(first + 1, end))
