"""Subscriptions of many shapes, after BE-Gen (many attributes and predicates) and ads (shared subexpressions)."""

from __future__ import annotations

from itertools import product

from benchmarks.engines import IndexEngine
from benchmarks.harness import Bench
from benchmarks.heart import against, joins
from benchmarks.scale import Scale
from benchmarks.workloads import Workload
from benchmarks.workloads import ads as ads_workload
from benchmarks.workloads import begen as begen_workload

EQUALITY = (0.0, 0.5, 1.0)
PROBABILITY = (0.001, 0.1)


def begen(bench: Bench, scale: Scale) -> None:
    """Measure every combination of attributes, share of equalities and probability of a match."""
    for attributes, equality, probability, size in product(
        scale.begen_attributes, EQUALITY, PROBABILITY, scale.begen
    ):
        compare(bench, scale, begen_workload(size, scale.begen_events, attributes, equality, probability))


def ads(bench: Bench, scale: Scale) -> None:
    for size in scale.ads:
        compare(bench, scale, ads_workload(size, scale.ads_events))


def compare(bench: Bench, scale: Scale, workload: Workload) -> None:
    bench.check(workload)
    bench.measure(IndexEngine(), workload, len(workload.events))
    size = len(workload.subscriptions)
    against(bench, workload, joins() if size in scale.joined else [])
