"""What a query answers: whole resources, or rows with a cell for each path that is selected.

search CycleProvider c where c.serverPort = 80            resources
search CycleProvider c select c.serverHost, c.tags?       rows such as ("pirates.uni-passau.de", ("fast", "new"))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidings.languages.rules_shown import show_path
from tidings.languages.rules_tree import Path, Query
from tidings.metadata.resources import Resource, Value

Cell = Value | None | tuple[Value, ...]
"""One value or none; of a path with `?`, all its values."""

Binding = tuple[str, ...]
"""The URIs that the shown variables stand for, in the order of `shown`."""


@dataclass(frozen=True, slots=True)
class Answer:
    """`columns` are the paths as they are written; without `select` there are none, and whole resources instead."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()
    resources: tuple[Resource, ...] = ()

    def __len__(self) -> int:
        return len(self.rows) + len(self.resources)


def shown(query: Query) -> tuple[str, ...]:
    """What is asked for, and the other variables that something is selected of: a row for each binding of these."""
    named = {path.variable for path in query.select}
    others = (each.variable for each in query.searched if each.variable != query.of)
    return (query.of, *(variable for variable in others if variable in named))


def columns(query: Query) -> tuple[str, ...]:
    return tuple(show_path(path) for path in query.select)


def has_several(path: Path) -> bool:
    """Whether a cell of this path is a tuple."""
    return any(step.any for step in path.steps)


def cell(path: Path, values: Iterable[Value]) -> Cell:
    """The values at the end of a path: each once, in order."""
    every: list[Any] = sorted(set(values))  # of one kind, all of them
    if has_several(path):
        return tuple(every)
    return every[0] if every else None


def in_order(
    bindings: Iterable[Binding],
    order: Sequence[tuple[Mapping[Binding, Any], bool]],
    limit: int | None,
) -> list[Binding]:
    """Bindings in the order of values, of which some may be missing: those come last, whichever way it goes.

    Sorted from the last key to the first: each sort leaves what it finds equal as it is. Ties are in the order of
    the URIs.
    """
    found = sorted(bindings)
    for keys, falls in reversed(order):
        there = sorted((each for each in found if each in keys), key=keys.__getitem__, reverse=falls)
        found = there + [each for each in found if each not in keys]
    return found[:limit]
