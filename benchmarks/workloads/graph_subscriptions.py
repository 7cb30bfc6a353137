"""Subscriptions of the workload of graphs, in the four steps of paper 002, section 5."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace

import numpy as np

from benchmarks.workloads.draws import chosen, picked
from benchmarks.workloads.graph_draws import random_places, random_subgraph
from benchmarks.workloads.graph_patterns import NONE, GraphSubscriptions, Ints
from benchmarks.workloads.graph_publications import (
    INNER,
    LEAVES,
    VALUES,
    Core,
    class_above,
    class_of,
    value_of,
)
from benchmarks.workloads.graph_table import COMMON_NODES, Table1

CHUNK = 100_000
"""Drawn at once."""


def subscriptions(
    rng: np.random.Generator, table: Table1, cores: Sequence[Core], unused: int
) -> GraphSubscriptions:
    """The paper's four steps. `unused` is the first node that no publication has."""
    made = _constrained(rng, table, _with_variables(rng, table, _named(rng, table, cores, unused)))
    return made.taking(rng.permutation(len(made)))


def _named(rng: np.random.Generator, table: Table1, cores: Sequence[Core], unused: int) -> GraphSubscriptions:
    """Steps 1 to 3 of the paper: those that match, those that overlap, and the others."""
    matched = min(table.for_each * len(cores), table.subscriptions)
    overlapping = max(0, round(table.overlap * table.subscriptions) - matched)
    others = table.subscriptions - matched - overlapping
    common = rng.integers(0, table.labels, (COMMON_NODES, COMMON_NODES))
    parts = [
        _matching(rng, table, cores, matched),
        *(_overlapping(rng, table, common, rows) for rows in _chunks(overlapping)),
        *(
            _others(rng, table, rows, unused + at * CHUNK * table.subscription.nodes)
            for at, rows in enumerate(_chunks(others))
        ),
    ]
    return _together(parts)


def _chunks(count: int) -> Iterator[int]:
    return (min(CHUNK, count - at) for at in range(0, count, CHUNK))


def _matching(
    rng: np.random.Generator, table: Table1, cores: Sequence[Core], count: int
) -> GraphSubscriptions:
    size = table.subscription
    nodes, edges = np.zeros((count, size.nodes), np.int64), np.full((3, count, size.edges), NONE)
    inner = [core.inner() for core in cores]
    made_for = np.arange(count) % len(cores)
    for row, core in enumerate(made_for.tolist()):
        places, found = random_subgraph(rng, inner[core], size)
        nodes[row] = cores[core].nodes(core)[places]
        at = {place: number for number, place in enumerate(places)}
        edges[:, row, : len(found)] = np.array([(at[s], label, at[t]) for s, label, t in found]).T
    return _rows(table, nodes, *edges, made_for)


def _overlapping(rng: np.random.Generator, table: Table1, common: Ints, rows: int) -> GraphSubscriptions:
    """Subgraphs of the big graph: between any two of its nodes it has as many edges as a subscription may have."""
    size = table.subscription
    source, target = size.ends()
    nodes = rng.permuted(chosen(rng, rows, size.nodes, COMMON_NODES), axis=1)
    return _drawn(rng, table, nodes, common[nodes[:, source], nodes[:, target]])


def _others(rng: np.random.Generator, table: Table1, rows: int, unused: int) -> GraphSubscriptions:
    """Subscriptions whose nodes nobody else names."""
    size = table.subscription
    nodes = unused + np.arange(rows * size.nodes).reshape(rows, size.nodes)
    return _drawn(rng, table, nodes, rng.integers(0, table.labels, (rows, size.pairs)))


def _drawn(rng: np.random.Generator, table: Table1, nodes: Ints, first: Ints) -> GraphSubscriptions:
    places = random_places(rng, table.subscription, len(nodes))
    source, target = table.subscription.ends()
    labels = places.labels(first, table.labels)
    nobody = np.full(len(nodes), NONE)
    return _rows(table, nodes, source[places.pair], labels, target[places.pair], nobody)


def _rows(
    table: Table1, nodes: Ints, source: Ints, label: Ints, target: Ints, core: Ints
) -> GraphSubscriptions:
    """Without variables yet, and in types that let a million fit into memory."""
    place, short = np.min_scalar_type(-table.subscription.nodes), np.int16
    none = np.full(len(nodes), NONE, short)
    return GraphSubscriptions(
        nodes,
        np.zeros(nodes.shape, np.bool_),
        source.astype(place),
        label.astype(np.min_scalar_type(-table.labels)),
        target.astype(place),
        core.astype(short),
        *(none,) * 4,
    )


def _together(parts: Sequence[GraphSubscriptions]) -> GraphSubscriptions:
    columns = [field.name for field in fields(GraphSubscriptions)]
    return GraphSubscriptions(*(np.concatenate([getattr(part, name) for part in parts]) for name in columns))


def _with_variables(rng: np.random.Generator, table: Table1, made: GraphSubscriptions) -> GraphSubscriptions:
    """Step 4: in so many subscriptions so many nodes become variables."""
    counts = np.zeros(len(made), np.int64)
    counts[rng.permutation(len(made))[: round(table.with_variables * len(made))]] = table.variables
    return replace(made, variable=picked(rng, counts, table.subscription.nodes))


def _constrained(rng: np.random.Generator, table: Table1, made: GraphSubscriptions) -> GraphSubscriptions:
    """The paper's "alternatively": the first variable must have so great a number, or stand below a class.

    What was made to match still does: there the number and the class are those of the node that became a variable.
    """
    at = np.where(made.variable.any(axis=1), made.variable.argmax(axis=1), NONE)
    node = np.take_along_axis(made.nodes, np.maximum(at, 0)[:, None], axis=1)[:, 0]
    own = made.core != NONE
    highest = np.where(own, value_of(node), VALUES - 1)
    number = np.where(own, class_of(node), rng.integers(0, INNER + LEAVES, len(made)))
    for up in rng.random((3, len(made))) < 0.5:
        number = np.where(own & up, class_above(number), number)
    return replace(
        made,
        value_at=np.where(rng.random(len(made)) < table.values, at, NONE).astype(np.int16),
        bound=rng.integers(0, highest + 1).astype(np.int16),
        class_at=np.where(rng.random(len(made)) < table.classes, at, NONE).astype(np.int16),
        class_number=number.astype(np.int16),
    )
