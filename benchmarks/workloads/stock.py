"""S, stock quotes: paper 003, section 5.1, as events."""

from __future__ import annotations

import numpy as np

from benchmarks.workloads.events import Attribute, Events, Integers, table
from benchmarks.workloads.forms import Subscriptions, Workload, conjunctions
from tidings.compiler.plan import Relation

FIELDS = ("symbol", "price", "open", "high", "low", "close", "volume")
TESTS = {0: Relation.EQ, 1: Relation.GT, 2: Relation.LT, 3: Relation.GT, 6: Relation.GT}
"""The fields a subscription speaks of, and how."""

VOLUMES = 1_000_000
SPREAD = 0.02


def stock(
    subscriptions: int,
    events: int,
    symbols: int = 5000,
    ease: float = 0.0,
    seed: int = 3,
    name: str = "stock",
) -> Workload:
    """One equality of 5,000 symbols and four ranges; quotes of seven fields.

        symbol = 'S0017' and price > 20133 and open < 19876 and high > 20210 and volume > 431187

    Prices (in cents) spread by two percent around each symbol's own. `ease` moves all bounds by so many spreads
    towards matching: 0 lets 9% of a symbol's subscriptions match, higher values more.
    """
    rng = np.random.default_rng(seed)
    names = tuple(f"S{code:04d}" for code in range(symbols))
    attributes = (Attribute("symbol", names), *(Attribute(name) for name in FIELDS[1:]))
    level = rng.integers(1000, 50000, symbols)
    asked = _asked(attributes, _bounds(rng, level, subscriptions, ease))
    return Workload(name, asked, _quotes(rng, attributes, level, events))


def _asked(attributes: tuple[Attribute, ...], bounds: Integers) -> Subscriptions:
    rows = len(bounds)
    attribute, relation = np.tile(list(TESTS), (rows, 1)), np.tile(list(TESTS.values()), (rows, 1))
    return conjunctions(attributes, np.full(rows, len(TESTS)), attribute, relation, bounds)


def _around(rng: np.random.Generator, level: Integers, shift: float = 0.0) -> Integers:
    moved = level * (1 + SPREAD * (shift + rng.standard_normal(len(level))))
    return np.maximum(1, moved.astype(np.int64))


def _bounds(rng: np.random.Generator, level: Integers, rows: int, ease: float) -> Integers:
    symbol = rng.integers(0, len(level), rows)
    mine = level[symbol]
    price, opening, high = _around(rng, mine, -ease), _around(rng, mine, ease), _around(rng, mine, -ease)
    volume = (rng.integers(1, VOLUMES, rows) * 2.0**-ease).astype(np.int64)
    return np.column_stack([symbol, price, opening, high, volume])


def _quotes(
    rng: np.random.Generator, attributes: tuple[Attribute, ...], level: Integers, rows: int
) -> Events:
    symbol = rng.integers(0, len(level), rows)
    price, opening, close = (_around(rng, level[symbol]) for _ in range(3))
    high = np.maximum(price, opening) + rng.integers(0, 50, rows)
    low = np.maximum(1, np.minimum(price, opening) - rng.integers(0, 50, rows))
    volume = rng.integers(1, VOLUMES, rows)
    return table(attributes, np.column_stack([symbol, price, opening, high, low, close, volume]))
