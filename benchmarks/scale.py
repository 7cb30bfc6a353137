"""How big the benchmarks are: tiny for the tests, quick for a coffee, full for the record."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Numbers of subscriptions and events. An algorithm is measured up to where it stays sensible."""

    runs: int
    gough: int
    """The single-path tree refuses more than this few."""
    small: int
    """Every other algorithm, the naive one included."""
    plain: tuple[int, ...]
    """The algorithms in plain Python that do not slow down with the square of the subscriptions."""
    index: tuple[int, ...]
    """The index alone."""
    mixed_plain: int
    mixed_index: int
    """Subscriptions while the share of equalities varies (figure 10)."""
    plain_events: int
    index_events: int
    stock: int
    stock_events: int
    job_events: int
    """Events of the whole Spark job; its subscriptions are those of `stock`."""


TINY = Scale(
    runs=1,
    gough=20,
    small=200,
    plain=(300,),
    index=(1000,),
    mixed_plain=100,
    mixed_index=500,
    plain_events=20,
    index_events=50,
    stock=2000,
    stock_events=200,
    job_events=200,
)

QUICK = Scale(
    runs=5,
    gough=60,
    small=10_000,
    plain=(100_000,),
    index=(200_000, 400_000, 800_000, 1_600_000, 3_200_000),
    mixed_plain=20_000,
    mixed_index=800_000,
    plain_events=20,
    index_events=500,
    stock=1_000_000,
    stock_events=100_000,
    job_events=1_000_000,
)

FULL = Scale(
    runs=7,
    gough=60,
    small=10_000,
    plain=(25_000, 50_000, 100_000, 200_000, 400_000),
    index=(800_000, 1_600_000, 3_200_000),
    mixed_plain=100_000,
    mixed_index=800_000,
    plain_events=50,
    index_events=1000,
    stock=1_000_000,
    stock_events=100_000,
    job_events=4_000_000,
)
