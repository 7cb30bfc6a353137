"""Hierarchies of concepts, and ordered enumerations: which value `is a` kind of which other one.

dining room ──▶ furniture ◀── outdoor
         ▲                     ▲
         └───────  table ──────┘           a table is a dining room, an outdoor and a furniture
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping


class ConceptHierarchy:
    """A directed acyclic graph. `below` maps each value to those directly above it."""

    def __init__(self, below: Mapping[str, Iterable[str]]) -> None:
        self._ancestors = _close(below)

    def is_a(self, concept: str, other: str) -> bool:
        """Return whether a concept is another one or below it."""
        return other in self._ancestors.get(concept, ())

    def ancestors(self, concept: str) -> frozenset[str]:
        """Return a concept and everything above it; empty for an unknown one."""
        return self._ancestors.get(concept, frozenset())


def _close(below: Mapping[str, Iterable[str]]) -> dict[str, frozenset[str]]:
    """Return each value with everything above it, parents first, without recursion."""
    ancestors: dict[str, frozenset[str]] = {}
    pending = list(below)
    while pending:
        value = pending[-1]
        missing = [parent for parent in below[value] if parent not in ancestors]
        if value in ancestors or not missing:
            pending.pop()
            ancestors[value] = frozenset({value}).union(*(ancestors[parent] for parent in below[value]))
        else:
            pending.extend(missing)
    return ancestors


def find_cycle(below: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the values of a cycle, the first one repeated at the end; an empty list for a DAG."""
    done: set[str] = set()
    for start in below:
        path: dict[str, None] = {}
        walk: list[Iterator[str]] = [iter((start,))]
        while walk:
            value = next(walk[-1], None)
            if value is None:
                walk.pop()
                if path:
                    done.add(path.popitem()[0])
            elif value in path:
                return [*list(path)[list(path).index(value) :], value]
            elif value not in done:
                path[value] = None
                walk.append(iter(below[value]))
    return []
