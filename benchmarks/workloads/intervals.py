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
ASKED = 10
DOMAIN = 1_000_000
WIDTH = 300_000
CELLS = 1000
"""Skewed positions fall into so many cells of the domain, some of them far more popular than others."""


def intervals(subscriptions: int, events: int, skewed: bool = False, seed: int = 8) -> Workload:
    """Ten intervals; events give all twenty attributes. An interval holds with probability 0.3.

        x01 between 311004 and 611004 and x04 between 27 and 300027 and ...

    `skewed` gives each attribute popular positions, which values take and intervals lie around by Zipf's law.
    """
    rng = np.random.default_rng(seed)
    attribute = chosen(rng, subscriptions, ASKED, len(ATTRIBUTES))
    popular = np.array([rng.permutation(CELLS) for _ in ATTRIBUTES])
    if skewed:
        centre = _positions(rng, popular, attribute)
        low = np.clip(centre - WIDTH // 2, 0, DOMAIN - WIDTH)
        value = _positions(rng, popular, np.tile(np.arange(len(ATTRIBUTES), dtype=np.int16), (events, 1)))
    else:
        low = rng.integers(0, DOMAIN - WIDTH, attribute.shape)
        value = rng.integers(0, DOMAIN, (events, len(ATTRIBUTES)))
    relation = np.full(attribute.shape, Relation.BETWEEN, np.int8)
    lengths = np.full(subscriptions, ASKED)
    asked = conjunctions(ATTRIBUTES, lengths, attribute, relation, low, low + WIDTH)
    return Workload("intervals, Zipf" if skewed else "intervals", asked, table(ATTRIBUTES, value))


def _positions(rng: np.random.Generator, popular: Integers, attribute: npt.NDArray[np.int16]) -> Integers:
    """A value for each of these attributes: in a popular cell more often, anywhere within it."""
    cell = popular[attribute, zipf(rng, CELLS, attribute.shape)]
    return cell * (DOMAIN // CELLS) + rng.integers(0, DOMAIN // CELLS, attribute.shape)
