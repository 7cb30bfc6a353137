"""What stands below what, as a list with depths: domains and taxonomies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tidings.taxonomies import SUBCLASS, Taxonomy

MOST = 2_000
"""Lines of a tree that are shown."""
DEEPEST = 8
"""Lines are moved in so far at most."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A line of a tree; `beside` is what is said of it."""

    depth: int
    name: str
    beside: str = ""

    @property
    def indent(self) -> int:
        return min(self.depth, DEEPEST)


def tree(parents: Mapping[str, Iterable[str]]) -> Iterator[tuple[int, str]]:
    """Names below those above them. With several above it, a name stands below each, and what is below it only once."""
    below: dict[str, list[str]] = {name: [] for name in parents}
    for name, above in parents.items():
        for one in above:
            below.setdefault(one, []).append(name)
    waiting = [(0, name) for name in sorted(below, reverse=True) if not parents.get(name)]
    while waiting:
        depth, name = waiting.pop()
        yield depth, name
        waiting += ((depth + 1, one) for one in sorted(below.pop(name, []), reverse=True))


def classes_of(taxonomy: Taxonomy) -> list[Branch]:
    """The classes of a taxonomy with how many instances it knows of each."""
    parents: dict[str, list[str]] = {term.text: [] for term in taxonomy.classes}
    for edge in taxonomy.statements:
        if edge.property.text == SUBCLASS:
            parents[edge.subject.text].append(edge.object.text)
    counts: dict[str, int] = {}
    for classes in taxonomy.types.values():
        for one in classes:
            counts[one.text] = counts.get(one.text, 0) + 1
    found = (Branch(depth, name, str(counts.get(name, ""))) for depth, name in tree(parents))
    return [branch for branch, _ in zip(found, range(MOST), strict=False)]
