"""E, equalities: five of ten attributes with 200 values each."""

from __future__ import annotations

import numpy as np

from benchmarks.workloads.draws import chosen, drawn
from benchmarks.workloads.events import Attribute, table
from benchmarks.workloads.forms import Workload, conjunctions
from tidings.matching.compiler.plan import Relation

ATTRIBUTES = tuple(Attribute(f"a{at}") for at in range(10))
TESTS = 5
VALUES = 200
PLANTED = 10_000


def equalities(subscriptions: int, events: int, skewed: bool = False, seed: int = 7) -> Workload:
    """Generate subscriptions with five equalities; events have all ten attributes.

        a0 = 17 and a3 = 199 and a4 = 5 and a7 = 0 and a9 = 121

    Five values agree by chance once in 3 * 10^11, so every other event is planted: it copies the five values of one
    of the first 10,000 subscriptions. `skewed` draws values by Zipf's law instead of uniformly.
    """
    rng = np.random.default_rng(seed)
    attribute = chosen(rng, subscriptions, TESTS, len(ATTRIBUTES))
    value = drawn(rng, VALUES, (subscriptions, TESTS), skewed)
    relation = np.full(attribute.shape, Relation.EQ, np.int8)
    clauses = conjunctions(ATTRIBUTES, np.full(subscriptions, TESTS), attribute, relation, value)
    values = drawn(rng, VALUES, (events, len(ATTRIBUTES)), skewed)
    planted = np.arange(0, events, 2)
    model = rng.integers(0, min(PLANTED, subscriptions), len(planted))
    values[planted[:, None], attribute[model]] = value[model]
    name = "equalities, Zipf" if skewed else "equalities"
    return Workload(name, clauses, table(ATTRIBUTES, values))
