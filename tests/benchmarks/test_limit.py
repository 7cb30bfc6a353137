"""The hand-written programs agree with the definition, with and without the widest vectors."""

from __future__ import annotations

import shutil

import pytest

from benchmarks.definition import matches
from benchmarks.harness import Bench
from benchmarks.heart import FAMILIES, Family
from benchmarks.limit import engine as limit
from benchmarks.limit.engine import FLAGS, LimitEngine
from tests.support.packages import Unavailable

PLAIN = (*FLAGS, "-mno-avx512f")

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="the limit is compiled with gcc")


@needs_gcc
@pytest.mark.parametrize("flags", [FLAGS, PLAIN], ids=["this machine's vectors", "no AVX-512"])
@pytest.mark.parametrize("skewed", [False, True], ids=["uniform", "Zipf"])
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.program)
def test_limit_engine_agrees_with_definition(family: Family, skewed: bool, flags: tuple[str, ...]) -> None:
    workload = family.make(5000, 1100, skewed=skewed)  # more than a tile, more than a batch
    engine = LimitEngine(family.program, flags)
    try:
        engine.prepare(workload.subscriptions)
        engine.build()
        engine.give(workload.events)
        counts = engine.counts(engine.match())
    finally:
        engine.close()
    assert counts.tolist() == matches(workload.subscriptions, workload.events).tolist()
    assert counts.sum() > 0


@needs_gcc
def test_limit_engine_event_without_subscription_matches_nothing() -> None:
    few = FAMILIES[0].make(3, 500)  # three symbols of five thousand
    bench = Bench(1, say=lambda _: None)
    assert bench.measure(LimitEngine("stock"), few, 500).matches_per_event == 0


def test_limit_engine_without_gcc_gives_row_with_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    limit.compiled.cache_clear()
    monkeypatch.setattr(limit.shutil, "which", lambda _: None)
    bench, workload = Bench(1, say=lambda _: None), FAMILIES[1].make(100, 10)
    row = bench.measure(LimitEngine("equalities"), workload, 10)
    assert (row.note, row.events_per_cpu_second) == ("not available: no gcc", None)
    with pytest.raises(Unavailable):
        limit.compiled("equalities")
