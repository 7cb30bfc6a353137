"""Paper 004, section 4: six optional attributes, three of 200 strings and three of 5,000 numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from benchmarks.workloads.events import Attribute, table
from benchmarks.workloads.forms import Workload, conjunctions
from tidings.matching.compiler.plan import Relation

ATTRIBUTES = (
    *(Attribute(f"s{at}", tuple(f"value{code:03d}" for code in range(200))) for at in range(3)),
    *(Attribute(f"n{at}") for at in range(3)),
)
VALUES = np.array([200, 200, 200, 5000, 5000, 5000])


def paper004(subscriptions: int, events: int, p: float = 0.5, seed: int = 4) -> Workload:
    """Each attribute is in a subscription with probability 0.5, and in an event with probability 0.5.

    A number is compared by `=` with probability p, otherwise by `<=` or `>=`. All values are uniform.
    """
    rng = np.random.default_rng(seed)
    present = _never_empty(rng, subscriptions)
    ordered = rng.random((subscriptions, 3)) >= p
    sides = rng.choice(np.array([Relation.LE, Relation.GE], np.int8), (subscriptions, 3))
    relation = np.full((subscriptions, 6), Relation.EQ, np.int8)
    relation[:, 3:][ordered] = sides[ordered]
    bound = rng.integers(0, VALUES, (subscriptions, 6))
    attribute = np.nonzero(present)[1]
    clauses = conjunctions(ATTRIBUTES, present.sum(axis=1), attribute, relation[present], bound[present])
    values = rng.integers(0, VALUES, (events, 6))
    return Workload(
        f"paper 004, p = {p:g}", clauses, table(ATTRIBUTES, values, rng.random((events, 6)) < 0.5)
    )


def _never_empty(rng: np.random.Generator, rows: int) -> npt.NDArray[np.bool_]:
    """Draw the attributes of subscriptions; one without any is drawn again."""
    present = rng.random((rows, 6)) < 0.5
    while len(empty := np.flatnonzero(~present.any(axis=1))):
        present[empty] = rng.random((len(empty), 6)) < 0.5
    return present
