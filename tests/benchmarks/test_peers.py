"""Peers agree with the definition, and a missing peer is reported.

Peers in other languages are downloaded and compiled, so they are tested on request: `PEERS=1 make test`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from benchmarks.definition import matches
from benchmarks.engine import Engine
from benchmarks.harness import Bench
from benchmarks.peers import toolchain
from benchmarks.peers.catalogue import JOINS, PROGRAMS, RULES, peers
from benchmarks.peers.clips_rules import Clips
from benchmarks.peers.intervals import UNBOUNDED, Intervals, to_intervals
from benchmarks.peers.programs import EventRuler, LuceneMonitor, Program, Quamina
from benchmarks.peers.relations import Counting, Wide, to_relations
from benchmarks.peers.spark_join import Spark
from benchmarks.workloads import (
    Attribute,
    Subscriptions,
    Workload,
    ads,
    begen,
    equalities,
    intervals,
    paper004,
    stock,
)
from benchmarks.workloads.events import table
from benchmarks.workloads.forms import conjunctions
from benchmarks.workloads.runs import starts_of
from tests.support import packages
from tests.support.packages import Unavailable
from tidings.matching.compiler.plan import Relation

RELATIONS = (Relation.EQ, Relation.LT, Relation.LE, Relation.GT, Relation.GE, Relation.BETWEEN)
IN_PROCESS = tuple(peer for peer in JOINS + RULES if peer is not Spark)
STAND_IN = Path(__file__).parent / "quamina_stand_in"

fetches = pytest.mark.skipif("PEERS" not in os.environ, reason="fetched and compiled when PEERS is set")


def mixed(subscriptions: int = 60, events: int = 40, seed: int = 1) -> Workload:
    """Return a workload with every relation, one to three clauses of one to three tests, and events that lack
    attributes.
    """
    rng = np.random.default_rng(seed)
    names = tuple(f"value{code}" for code in range(10))
    attributes = (*(Attribute(f"n{at}") for at in range(3)), Attribute("s0", names), Attribute("s1", names))
    owner = np.repeat(np.arange(subscriptions), rng.integers(1, 4, subscriptions)).astype(np.int32)
    lengths = rng.integers(1, 4, len(owner))
    attribute = np.concatenate([rng.permutation(5)[:length] for length in lengths]).astype(np.int32)
    relation = np.where(attribute < 3, rng.choice(RELATIONS, len(attribute)), Relation.EQ).astype(np.int8)
    low = rng.integers(0, 10, len(attribute))
    high = np.where(relation == Relation.BETWEEN, low + rng.integers(0, 4, len(attribute)), low)
    mixed_subscriptions = Subscriptions(
        attributes, starts_of(lengths), attribute, relation, low, high, owner, subscriptions
    )
    present = rng.random((events, 5)) < 0.7
    return Workload(
        "mixed", mixed_subscriptions, table(attributes, rng.integers(0, 10, (events, 5)), present)
    )


WORKLOADS = (
    mixed(),
    stock(300, 40, symbols=10, ease=1.0),
    equalities(300, 40),
    intervals(3000, 40),
    paper004(300, 40),
    begen(100, 20, 100, 0.5, 0.1),
    ads(150, 20),
)

SMALL = (*(each for each in WORKLOADS if each.name != "intervals"), intervals(100, 40))
"""Some programs take minutes for thousands of intervals."""


def match_counts(engine: Engine, workload: Workload) -> list[int]:
    try:
        engine.prepare(workload.subscriptions)
        engine.build()
        engine.give(workload.events.first(3))
        engine.match()
        engine.give(workload.events)
        return engine.counts(engine.match()).tolist()
    finally:
        engine.close()


def check(engine: Engine, workload: Workload) -> None:
    assert match_counts(engine, workload) == matches(workload.subscriptions, workload.events).tolist()


def test_workloads_have_matches() -> None:
    assert all(matches(each.subscriptions, each.events).any() for each in WORKLOADS)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
@pytest.mark.parametrize("peer", IN_PROCESS, ids=lambda peer: peer.name)
def test_peer_in_process_agrees_with_definition(peer: type[Engine], workload: Workload) -> None:
    if peer is Clips and workload.name.startswith("ads"):
        pytest.skip("too many shapes: each needs a rule")
    check(peer(), workload)


@pytest.mark.long
@pytest.mark.spark
def test_peer_spark_agrees_with_definition() -> None:
    check(Spark(), mixed())


@fetches
@pytest.mark.xdist_group("peers")
@pytest.mark.parametrize("workload", SMALL, ids=lambda workload: workload.name)
@pytest.mark.parametrize("peer", PROGRAMS, ids=lambda peer: peer.name)
def test_peer_in_other_language_agrees_with_definition(peer: type[Engine], workload: Workload) -> None:
    try:
        check(peer(), workload)
    except Unavailable as missing:
        pytest.skip(str(missing))


@fetches
@pytest.mark.skipif(shutil.which("go") is None, reason="no go on the PATH")
@pytest.mark.parametrize("workload", (stock(300, 40, symbols=10, ease=1.0), equalities(300, 40)))
def test_quamina_driver_with_stand_in_agrees_with_definition(workload: Workload, tmp_path: Path) -> None:
    program = tmp_path / "driver"
    shutil.copytree(toolchain.GO / "quamina", tmp_path / "source")
    shutil.copytree(STAND_IN, tmp_path / "source" / "stand-in")
    with (tmp_path / "source" / "go.mod").open("a") as module:
        module.write("replace quamina.net/go/quamina => ./stand-in\n")
    settings = {**os.environ, "GOFLAGS": "-mod=mod", "GOPROXY": "off"}
    subprocess.run(["go", "build", "-o", program, "."], cwd=tmp_path / "source", env=settings, check=True)

    class Driver(Program):
        def command(self, intervals: Intervals) -> list[str | Path]:
            return [program]

    check(Driver(), workload)


def test_peers_have_unique_names() -> None:
    names = [peer.name for peer in peers()]
    assert len(set(names)) == len(names) == len(JOINS + RULES + PROGRAMS)
    assert {peer.role for peer in peers()} == {"peer"}


class TestIntervals:
    def test_as_intervals_converts_each_relation(self) -> None:
        converted = _one_attribute(RELATIONS, [5] * 6, [5] * 5 + [8])
        expected = [(5, 5), (-UNBOUNDED, 4), (-UNBOUNDED, 5), (6, UNBOUNDED), (5, UNBOUNDED), (5, 8)]
        assert list(zip(converted.low.tolist(), converted.high.tolist(), strict=True)) == expected

    def test_as_intervals_puts_most_selective_attribute_first_and_drops_unused(self) -> None:
        workload = stock(300, 5)
        converted = to_intervals(workload.subscriptions)
        assert converted.attributes[0].name == "symbol"
        assert {each.name for each in converted.attributes} == {"symbol", "price", "open", "high", "volume"}
        assert converted.equal.tolist() == [True, False, False, False, False]
        assert converted.select_attributes(workload.events).attribute.tolist() == list(range(5)) * 5

    def test_as_intervals_two_tests_of_one_attribute_are_unavailable(self) -> None:
        low = np.array([3, 9])
        twice = conjunctions((Attribute("a"),), [2], [0, 0], [Relation.GT, Relation.LT], low)
        with pytest.raises(Unavailable, match="one test per attribute"):
            to_intervals(twice)

    def test_as_intervals_too_many_clauses_are_unavailable(self) -> None:
        with pytest.raises(Unavailable, match="more than 299 clauses"):
            to_intervals(stock(300, 5).subscriptions, 299)


def _one_attribute(relations: tuple[Relation, ...], low: list[int], high: list[int]) -> Intervals:
    count = len(relations)
    return to_intervals(conjunctions((Attribute("a"),), [1] * count, [0] * count, relations, low, high))


class TestRelations:
    def test_relations_few_shapes_are_columns(self) -> None:
        wide = to_relations(to_intervals(equalities(2000, 5).subscriptions))
        assert isinstance(wide, Wide)
        assert len(wide.shapes) == 252
        assert "cross join shapes" in wide.query

    def test_relations_one_shape_needs_no_cross_join(self) -> None:
        form = to_relations(to_intervals(stock(300, 5).subscriptions))
        assert "cross join" not in form.query
        assert set(form.tables["subscriptions"].column_names) == {"owner", "q0", "l1", "u2", "l3", "l4"}

    def test_relations_many_attributes_are_counted(self) -> None:
        assert isinstance(to_relations(to_intervals(ads(150, 5).subscriptions)), Counting)

    def test_relations_values_beyond_32_bits_are_unavailable(self) -> None:
        with pytest.raises(Unavailable, match="32 bits"):
            to_relations(_one_attribute((Relation.EQ,), [1 << 40], [1 << 40]))


class TestUnavailable:
    @pytest.fixture(autouse=True)
    def tools(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
        """An empty folder as PATH, and an empty cache."""
        folder = tmp_path / "tools"
        folder.mkdir()
        monkeypatch.setenv("PATH", str(folder))
        monkeypatch.setenv("TIDINGS_BENCH_CACHE", str(tmp_path / "kept"))
        monkeypatch.setattr(packages, "_failed", {})
        return folder

    @pytest.mark.parametrize(
        ("peer", "reason"),
        [
            (EventRuler, "no java on the PATH"),
            (LuceneMonitor, "no java on the PATH"),
            (Spark, "no java on the PATH"),
            (Quamina, "no go on the PATH"),
        ],
    )
    def test_peer_without_toolchain_gives_row_with_reason(self, peer: type[Engine], reason: str) -> None:
        row = Bench(1, say=lambda _: None).measure(peer(), equalities(30, 5), 5)
        assert (row.note, row.events_per_cpu_second) == (f"not available: {reason}", None)

    def test_peer_in_java_without_maven_is_unavailable(self, tools: Path) -> None:
        _program(tools / "java", "exit 0")
        with pytest.raises(Unavailable, match=r"^no mvn on the PATH$"):
            match_counts(EventRuler(), equalities(30, 5))

    def test_peer_failed_download_is_tried_once_and_hides_registry(self, tools: Path, tmp_path: Path) -> None:
        _program(tools / "java", "exit 0")
        _program(
            tools / "mvn", f"echo asked >>{tmp_path}/asked; echo '[ERROR] no https://somewhere/x'; exit 1"
        )
        for _ in range(2):
            with pytest.raises(Unavailable, match=r"^Maven could not fetch .*2.1.0 \(\[ERROR\] no \.\.\.\)$"):
                match_counts(EventRuler(), equalities(30, 5))
        assert (tmp_path / "asked").read_text() == "asked\n"
        assert list((tmp_path / "kept").iterdir()) == []

    def test_quamina_with_ranges_only_is_unavailable(self) -> None:
        with pytest.raises(Unavailable, match="quamina has no numeric ranges"):
            match_counts(Quamina(), intervals(30, 5))

    def test_cache_folder_follows_user(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.delenv("TIDINGS_BENCH_CACHE")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert packages.cache_folder() == tmp_path / "tidings-bench"


def _program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
