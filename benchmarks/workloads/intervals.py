"""H, intervals: ten of twenty attributes, each interval 0.3 of the domain wide (the defaults of HEM's evaluation)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from benchmarks.workloads.draws import chosen, zipf
from benchmarks.workloads.events import Attribute, table
from benchmarks.workloads.forms import Workload, conjunctions
from benchmarks.workloads.runs import Integers
from tidings.matching.compiler.plan import Relation

ATTRIBUTES = tuple(Attribute(f"x{at:02d}") for at in range(20))
TESTS = 10
DOMAIN = 1_000_000
WIDTH = 300_000
CELLS = 1000
"""Cells of the domain for skewed positions, some far more popular than others."""


def intervals(subscriptions: int, events: int, skewed: bool = False, seed: int = 8) -> Workload:
    """Generate subscriptions with ten intervals, each with probability 0.3; events have all twenty attributes.

        x01 between 311004 and 611004 and x04 between 27 and 300027 and ...

    With `skewed`, values and the centres of intervals follow Zipf's law over the positions of each attribute.
    """
    rng = np.random.default_rng(seed)
    attribute = chosen(rng, subscriptions, TESTS, len(ATTRIBUTES))
    popular = np.array([rng.permutation(CELLS) for _ in ATTRIBUTES])
    if skewed:
        centre = _positions(rng, popular, attribute)
        low = np.clip(centre - WIDTH // 2, 0, DOMAIN - WIDTH)
        value = _positions(rng, popular, np.tile(np.arange(len(ATTRIBUTES), dtype=np.int16), (events, 1)))
    else:
        low = rng.integers(0, DOMAIN - WIDTH, attribute.shape)
        value = rng.integers(0, DOMAIN, (events, len(ATTRIBUTES)))
    relation = np.full(attribute.shape, Relation.BETWEEN, np.int8)
    lengths = np.full(subscriptions, TESTS)
    clauses = conjunctions(ATTRIBUTES, lengths, attribute, relation, low, low + WIDTH)
    return Workload("intervals, Zipf" if skewed else "intervals", clauses, table(ATTRIBUTES, value))


def _positions(rng: np.random.Generator, popular: Integers, attribute: npt.NDArray[np.int16]) -> Integers:
    """Draw a value for each attribute, in popular cells more often, uniform within a cell."""
    cell = popular[attribute, zipf(rng, CELLS, attribute.shape)]
    return cell * (DOMAIN // CELLS) + rng.integers(0, DOMAIN // CELLS, attribute.shape)
