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
"""Subscriptions drawn at once."""


def subscriptions(
    rng: np.random.Generator, table: Table1, cores: Sequence[Core], unused: int
) -> GraphSubscriptions:
    """Draw subscriptions in the paper's four steps. `unused` is the first node that no publication has."""
    generated = _constrained(
        rng, table, _with_variables(rng, table, _without_variables(rng, table, cores, unused))
    )
    return generated.taking(rng.permutation(len(generated)))


def _without_variables(
    rng: np.random.Generator, table: Table1, cores: Sequence[Core], unused: int
) -> GraphSubscriptions:
    """Steps 1 to 3 of the paper: matching, overlapping and other subscriptions."""
    matched = min(table.matches_per_publication * len(cores), table.subscriptions)
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
    return _concatenate(parts)


def _chunks(count: int) -> Iterator[int]:
    return (min(CHUNK, count - at) for at in range(0, count, CHUNK))


def _matching(
    rng: np.random.Generator, table: Table1, cores: Sequence[Core], count: int
) -> GraphSubscriptions:
    size = table.subscription
    nodes, edges = np.zeros((count, size.nodes), np.int64), np.full((3, count, size.edges), NONE)
    inner = [core.inner() for core in cores]
    core_of_row = np.arange(count) % len(cores)
    for row, core in enumerate(core_of_row.tolist()):
        places, subgraph = random_subgraph(rng, inner[core], size)
        nodes[row] = cores[core].nodes(core)[places]
        at = {place: number for number, place in enumerate(places)}
        edges[:, row, : len(subgraph)] = np.array([(at[s], label, at[t]) for s, label, t in subgraph]).T
    return _rows(table, nodes, *edges, core_of_row)


def _overlapping(rng: np.random.Generator, table: Table1, common: Ints, rows: int) -> GraphSubscriptions:
    """Draw subgraphs of the big graph, which has enough edges between any two nodes for a subscription."""
    size = table.subscription
    source, target = size.ends()
    nodes = rng.permuted(chosen(rng, rows, size.nodes, COMMON_NODES), axis=1)
    return _drawn(rng, table, nodes, common[nodes[:, source], nodes[:, target]])


def _others(rng: np.random.Generator, table: Table1, rows: int, unused: int) -> GraphSubscriptions:
    """Draw subscriptions with nodes that occur in no other subscription."""
    size = table.subscription
    nodes = unused + np.arange(rows * size.nodes).reshape(rows, size.nodes)
    return _drawn(rng, table, nodes, rng.integers(0, table.labels, (rows, size.pairs)))


def _drawn(rng: np.random.Generator, table: Table1, nodes: Ints, first: Ints) -> GraphSubscriptions:
    places = random_places(rng, table.subscription, len(nodes))
    source, target = table.subscription.ends()
    labels = places.labels(first, table.labels)
    no_core = np.full(len(nodes), NONE)
    return _rows(table, nodes, source[places.pair], labels, target[places.pair], no_core)


def _rows(
    table: Table1, nodes: Ints, source: Ints, label: Ints, target: Ints, core: Ints
) -> GraphSubscriptions:
    """Build rows without variables, in types that let a million fit into memory."""
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


def _concatenate(parts: Sequence[GraphSubscriptions]) -> GraphSubscriptions:
    columns = [field.name for field in fields(GraphSubscriptions)]
    return GraphSubscriptions(*(np.concatenate([getattr(part, name) for part in parts]) for name in columns))


def _with_variables(
    rng: np.random.Generator, table: Table1, generated: GraphSubscriptions
) -> GraphSubscriptions:
    """Step 4: in some subscriptions, some nodes become variables."""
    counts = np.zeros(len(generated), np.int64)
    counts[rng.permutation(len(generated))[: round(table.with_variables * len(generated))]] = table.variables
    return replace(generated, variable=picked(rng, counts, table.subscription.nodes))


def _constrained(
    rng: np.random.Generator, table: Table1, generated: GraphSubscriptions
) -> GraphSubscriptions:
    """The paper's alternative: the first variable has a minimum value, or must be below a class.

    Subscriptions that are made to match still do: their bounds come from the node that became a variable.
    """
    at = np.where(generated.variable.any(axis=1), generated.variable.argmax(axis=1), NONE)
    node = np.take_along_axis(generated.nodes, np.maximum(at, 0)[:, None], axis=1)[:, 0]
    own = generated.core != NONE
    highest = np.where(own, value_of(node), VALUES - 1)
    number = np.where(own, class_of(node), rng.integers(0, INNER + LEAVES, len(generated)))
    for up in rng.random((3, len(generated))) < 0.5:
        number = np.where(own & up, class_above(number), number)
    return replace(
        generated,
        value_at=np.where(rng.random(len(generated)) < table.values, at, NONE).astype(np.int16),
        bound=rng.integers(0, highest + 1).astype(np.int16),
        class_at=np.where(rng.random(len(generated)) < table.classes, at, NONE).astype(np.int16),
        class_number=number.astype(np.int16),
    )
