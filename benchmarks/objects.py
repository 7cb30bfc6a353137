"""Objects: section 5 of paper 000, on SQLite and PostgreSQL: the cost of notifying about an update.

    bare update          by the driver, without notifications: the minimum cost of an update
    triggers             the same, with triggers that notify
    ORM, bare update     through SQLAlchemy: load the object, set its title, commit
    ORM, triggers        the same, with triggers that notify: what the paper compares with the next
    ORM, aspect          the same, with a listener on the session that notifies

Each update is a separate transaction, and no commit waits for the disk. Programs are timed in turns, and the notified
subscribers of each update are compared with the expected ones.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from sqlalchemy import Engine

from benchmarks.engine import Counts
from benchmarks.harness import Bench
from benchmarks.metadata_places import Place, places
from benchmarks.objects_aspect import Aspect
from benchmarks.objects_databases import add_triggers, fill, opened, without_sync
from benchmarks.objects_programs import Orm, Program, driver
from benchmarks.objects_settings import BARE, NAME, ORM, ORM_TRIGGERS, TRIGGERS, Setting
from benchmarks.processes import Cost
from benchmarks.rows import Row
from benchmarks.scale import Scale
from benchmarks.workloads.university import Course, LearningMaterial, ObjectId, University

WARM = 20
"""Warm-up updates: connections are opened, statements prepared, plans chosen."""

SAME = 10
"""Objects of a class with the same audience; the paper's 32 pieces of material hardly have more."""


@dataclass
class Case:
    """A program with its repeated updates, and its times so far."""

    program: Program
    setting: Setting
    university: University
    updates: Sequence[ObjectId]
    turns: int
    times: list[Cost] = field(default_factory=list)
    audience: float = 0.0
    """Mean number of subscribers notified by an update, in the last run."""

    @property
    def count(self) -> int:
        return self.turns * len(self.updates)

    def expected(self) -> Counts:
        once = [len(self.university.expected_subscribers(one)) for one in self.updates]
        return np.tile(np.array(once, np.int64), self.turns)


def run(bench: Bench, scale: Scale) -> None:
    with ExitStack() as server:
        for place in places(bench, NAME, scale.objects_server, server):
            for setting in _settings(place, scale):
                compare(bench, place, [setting], scale.objects_updates)
            grown = (University.persons, University.persons * scale.objects_grown)
            compare(bench, place, [Setting(place.name, persons) for persons in grown], scale.objects_updates)


def _settings(place: Place, scale: Scale) -> Iterator[Setting]:
    """Yield the settings of table 1 (growing numbers of watches) and table 2 (growing databases)."""
    for shares in scale.objects_shares:
        yield Setting(place.name, University.persons, *shares)
    for times in scale.objects_times:
        yield Setting(place.name, University.persons * times, 8, 2)


def compare(bench: Bench, place: Place, settings: Sequence[Setting], updates: int) -> None:
    """Measure all programs in all settings, in turns, so that a slow moment of the machine affects all."""
    with ExitStack() as stack:
        cases = [case for each in settings for case in _cases(bench, place, each, updates, stack)]
        for case in cases:
            _warm_up(case)
        for number in range(bench.runs):
            for case in cases:
                case.times.append(_timed(bench, place, case, number))
        for case in cases:
            bench.keep(_row(case))


def _cases(bench: Bench, place: Place, setting: Setting, most: int, stack: ExitStack) -> Iterator[Case]:
    university = setting.university()
    chosen = university.updated()[:most] if setting.objects is not None else same_audience(university)
    bench.say(f"{setting.workload}: {len(chosen):,} objects are updated")
    for program in _programs(place, university, stack):
        yield Case(program, setting, university, chosen, -(-most // len(chosen)))


def _programs(place: Place, university: University, stack: ExitStack) -> Iterator[Program]:
    """Yield programs on three databases: plain, with triggers, with the aspect's table of watches."""
    url, engine = _database(place, university, stack)
    yield stack.enter_context(driver(BARE, engine, url, notifies=False))
    yield Orm(ORM, engine, notifies=False)
    url, engine = _database(place, university, stack)
    add_triggers(engine, url, university)
    yield stack.enter_context(driver(TRIGGERS, engine, url, notifies=True))
    yield Orm(ORM_TRIGGERS, engine, notifies=True)
    _, engine = _database(place, university, stack)
    yield Aspect(engine, university)


def _database(place: Place, university: University, stack: ExitStack) -> tuple[str, Engine]:
    url = without_sync(stack.enter_context(place.address()))
    engine = stack.enter_context(opened(url))
    fill(engine, university)
    return url, engine


def same_audience(university: University) -> list[ObjectId]:
    """Return courses with no watchers but attendants and watchers of all courses, and material used in two of them."""
    sample = [
        one
        for cls in (Course, LearningMaterial)
        for one in _sample(university, cls, university.usual_audience(cls))
    ]
    assert len(sample) == 2 * SAME, f"only {len(sample)} objects have the usual audience"
    return sample


def _sample(university: University, cls: type, audience: int) -> list[ObjectId]:
    """Choose objects spread over the class, so that lookups are spread, too."""
    usual = [
        one
        for one in university.objects()
        if one.cls is cls and len(university.expected_subscribers(one)) == audience
    ]
    return usual[:: max(1, len(usual) // SAME)][:SAME]


def _warm_up(case: Case) -> None:
    case.program.update(case.updates[:WARM], f"{case.program.name}, warm")
    if case.program.notifies:
        case.program.clear_notifications()


def _timed(bench: Bench, place: Place, case: Case, number: int) -> Cost:
    """Time the updates. Each run sets new titles: setting the old value is not an update."""
    titles = [f"{case.program.name}, run {number}, turn {turn}" for turn in range(case.turns)]
    spent, _ = place.measure(partial(_update, case, titles))
    if case.program.notifies:
        counts, expected = case.program.count_subscribers(), case.expected()
        assert len(counts) == len(expected), f"{case.program.name}: {len(counts)} of {len(expected)} changes"
        key = case.setting.workload, len(case.university.watches)
        bench.agree(*key, "the definition", expected)
        bench.agree(*key, case.program.name, counts)
        case.audience = float(counts.mean())
        case.program.clear_notifications()
    return spent


def _update(case: Case, titles: Sequence[str]) -> None:
    for title in titles:
        case.program.update(case.updates, title)


def _row(case: Case) -> Row:
    cpu, wall = (statistics.median(each) / case.count for each in zip(*case.times, strict=True))
    return Row(
        case.setting.workload,
        len(case.university.watches),
        case.program.name,
        events_per_cpu_second=1 / cpu,
        build_seconds=None,
        bytes_per_subscription=None,
        matches_per_event=case.audience,
        seconds_per_event=cpu,
        events_per_second=1 / wall,
    )
