"""Objects: section 5 of paper 000, on SQLite and PostgreSQL. What does it cost to tell who should know of an update?

    bare update          by the driver, and nobody is told: the least that an update can cost
    triggers             the same, and triggers tell
    ORM, bare update     through SQLAlchemy: load the object, set its title, commit
    ORM, triggers        the same, and triggers tell: what the paper compares with the next
    ORM, aspect          the same, and a listener on the session tells

Each update is a transaction of its own, and no commit waits for the disk. Programs are timed in turns, and whom each
update told is compared with whom it should have told.
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
from benchmarks.objects_databases import add_triggers, fill, not_waiting, opened
from benchmarks.objects_programs import Orm, Program, driver
from benchmarks.objects_settings import BARE, NAME, ORM, ORM_TRIGGERS, TRIGGERS, Setting
from benchmarks.processes import Spent
from benchmarks.rows import Row
from benchmarks.scale import Scale
from benchmarks.workloads.university import Course, LearningMaterial, One, University

WARM = 20
"""Updates before the clock is looked at: connections are made, statements are prepared, plans are chosen."""

SAME = 10
"""Objects of a class with the same audience; the paper's 32 pieces of material do not have many more."""


@dataclass
class Case:
    """A program and what it is given, again and again; its times so far."""

    program: Program
    setting: Setting
    university: University
    updates: Sequence[One]
    turns: int
    times: list[Spent] = field(default_factory=list)
    told: float = 0.0
    """Subscribers that an update told, in the last run."""

    @property
    def count(self) -> int:
        return self.turns * len(self.updates)

    def expected(self) -> Counts:
        once = [len(self.university.told(one)) for one in self.updates]
        return np.tile(np.array(once, np.int64), self.turns)


def run(bench: Bench, scale: Scale) -> None:
    with ExitStack() as server:
        for place in places(bench, NAME, scale.objects_server, server):
            for setting in _settings(place, scale):
                compare(bench, place, [setting], scale.objects_updates)
            grown = (University.persons, University.persons * scale.objects_grown)
            compare(bench, place, [Setting(place.name, persons) for persons in grown], scale.objects_updates)


def _settings(place: Place, scale: Scale) -> Iterator[Setting]:
    """Table 1: more and more watch. Table 2: there is more and more of everything."""
    for shares in scale.objects_shares:
        yield Setting(place.name, University.persons, *shares)
    for times in scale.objects_times:
        yield Setting(place.name, University.persons * times, 8, 2)


def compare(bench: Bench, place: Place, settings: Sequence[Setting], updates: int) -> None:
    """All programs in all settings, in turns: if the machine slows down, it does so for all of them."""
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
    """A database without anything, one with triggers, and one with the aspect's table of watches."""
    url, engine = _database(place, university, stack)
    yield stack.enter_context(driver(BARE, engine, url, tells=False))
    yield Orm(ORM, engine, tells=False)
    url, engine = _database(place, university, stack)
    add_triggers(engine, url, university)
    yield stack.enter_context(driver(TRIGGERS, engine, url, tells=True))
    yield Orm(ORM_TRIGGERS, engine, tells=True)
    _, engine = _database(place, university, stack)
    yield Aspect(engine, university)


def _database(place: Place, university: University, stack: ExitStack) -> tuple[str, Engine]:
    url = not_waiting(stack.enter_context(place.address()))
    engine = stack.enter_context(opened(url))
    fill(engine, university)
    return url, engine


def same_audience(university: University) -> list[One]:
    """Courses that tell just their attendants and those who watch all courses, and material used in two of such."""
    found = [
        one
        for cls in (Course, LearningMaterial)
        for one in _some(university, cls, university.usual_audience(cls))
    ]
    assert len(found) == 2 * SAME, f"only {len(found)} objects have the usual audience"
    return found


def _some(university: University, cls: type, audience: int) -> list[One]:
    """Spread over all of them, so that what is looked up is, too."""
    usual = [one for one in university.objects() if one.cls is cls and len(university.told(one)) == audience]
    return usual[:: max(1, len(usual) // SAME)][:SAME]


def _warm_up(case: Case) -> None:
    case.program.update(case.updates[:WARM], f"{case.program.name}, warm")
    if case.program.tells:
        case.program.forget()


def _timed(bench: Bench, place: Place, case: Case, number: int) -> Spent:
    """Each title is a new one: what is set to what it was is no update."""
    titles = [f"{case.program.name}, run {number}, turn {turn}" for turn in range(case.turns)]
    spent, _ = place.spent(partial(_update, case, titles))
    if case.program.tells:
        found, expected = case.program.told(), case.expected()
        assert len(found) == len(expected), f"{case.program.name}: {len(found)} of {len(expected)} changes"
        known = case.setting.workload, len(case.university.watches)
        bench.agree(*known, "the definition", expected)
        bench.agree(*known, case.program.name, found)
        case.told = float(found.mean())
        case.program.forget()
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
        matches_per_event=case.told,
        seconds_per_event=cpu,
        events_per_second=1 / wall,
    )
