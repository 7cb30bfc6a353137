"""Section 5 of paper 000: notifications of an update of the university, by the definition and by every measured
program.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from sqlalchemy import text

from benchmarks import objects, objects_spark
from benchmarks.goals import goals
from benchmarks.harness import Bench, Disagreement
from benchmarks.metadata_places import PostgreSQL, SQLite
from benchmarks.objects_databases import add_triggers, fill, opened
from benchmarks.objects_figures import figures_3_and_4
from benchmarks.objects_programs import Orm
from benchmarks.objects_settings import (
    ASPECT,
    BARE,
    ORM,
    ORM_TRIGGERS,
    TRIGGERS,
    Setting,
    setting_of,
)
from benchmarks.objects_table import lines, table
from benchmarks.rows import Row
from benchmarks.scale import TINY
from benchmarks.workloads.campus import CLASSES as CAMPUS_CLASSES
from benchmarks.workloads.campus import Campus
from benchmarks.workloads.university import (
    ATTENDED,
    CLASSES,
    USED_IN,
    Base,
    Course,
    LearningMaterial,
    Student,
    University,
)
from tidings.objects.model.class_model import ChangeKind
from tidings.objects.propagation import Change, Object, ObjectGraph, ObjectLink, Watch, propagate_change
from tidings.objects.readers.sqlalchemy_reader import read_sqlalchemy

SMALL = University(persons=40, courses=20, material=8, object_watches=20, class_watches=7)
TELLING = {TRIGGERS, ORM_TRIGGERS, ASPECT}


def quiet() -> Bench:
    return Bench(1, lambda _: None, TINY.budget)


def graph(university: University) -> ObjectGraph:
    model = read_sqlalchemy(Base).model
    associations = {each.name: each for each in model.associations}
    links = [
        ObjectLink(associations["attends"], Object("Student", person), Object("Course", course))
        for person, course in university.attends
    ] + [
        ObjectLink(associations["usedIn"], Object("LearningMaterial", number), Object("Course", course))
        for number, course in university.used_in
    ]
    classes = {
        Object(number.cls.__name__, number.key): number.cls.__name__ for number in university.objects()
    }
    return ObjectGraph(model, classes, frozenset(links))


def test_university_update_affects_subscribers_of_definition() -> None:
    there = graph(SMALL)
    watches = frozenset(
        Watch(Object("Student", each.person), each.cls.__name__, each.key) for each in SMALL.watches
    )
    counts: Counter[type] = Counter()
    for updated in SMALL.objects():
        change = Change(ChangeKind.UPDATE, Object(updated.cls.__name__, updated.key), frozenset({"title"}))
        expected = {hit.subscriber.key for hit in propagate_change(there, watches, change).hits}
        assert SMALL.expected_subscribers(updated) == expected
        counts[updated.cls] += len(expected)
    assert all(counts[cls] for cls in CLASSES), "each class has affected subscribers"


def test_university_has_sizes_of_paper() -> None:
    paper = University.of_the_paper(2, 0.08, 0.02)
    assert (paper.persons, paper.courses, paper.material) == (800, 160, 64)
    assert (paper.object_watches, paper.class_watches) == (64, 16)
    assert len(set(paper.attends)) == len(paper.attends)
    assert set(Counter(person for person, _ in paper.attends).values()) == {ATTENDED}
    assert set(Counter(course for _, course in paper.attends).values()) == {800 * ATTENDED // 160}
    assert set(Counter(one for one, _ in paper.used_in).values()) == {USED_IN}
    assert len({each.person for each in paper.watches}) == len(paper.watches) == 64 + 16
    assert len(set(paper.updated())) == len(paper.updated()) == round(0.4 * (800 + 160 + 64))
    assert paper == University.of_the_paper(2, 0.08, 0.02) and paper.watches == replace(paper).watches


@pytest.mark.parametrize("persons", [400, 1200])
def test_same_audience_is_independent_of_size(persons: int) -> None:
    university = Setting("SQLite", persons).university()
    chosen = objects.same_audience(university)
    counts = {
        cls: {len(university.expected_subscribers(one)) for one in chosen if one.cls is cls}
        for cls in CLASSES
    }
    assert counts == {Course: {20 + 3}, LearningMaterial: {2 * 20 + 3 + 2}, Student: set()}


def test_postgresql_programs_notify_same_subscribers(server: PostgreSQL) -> None:
    bench = quiet()
    objects.compare(bench, server, [Setting(server.name, 400, 8, 2)], updates=30)
    rows = {row.engine: row for row in bench.rows}
    assert rows.keys() == {BARE, ORM, *TELLING}
    expected = Setting(server.name, 400, 8, 2).university()
    mean = sum(len(expected.expected_subscribers(one)) for one in expected.updated()[:30]) / 30
    assert [rows[name].matches_per_event for name in TELLING] == [pytest.approx(mean)] * 3
    assert {rows[name].matches_per_event for name in (BARE, ORM)} == {0.0}


def test_missing_notification_raises_disagreement() -> None:
    """One watcher of all courses is deleted."""
    place, setting = SQLite(), Setting("SQLite", 400)
    university = setting.university()
    with place.address() as url, opened(url) as engine:
        fill(engine, university)
        add_triggers(engine, url, university)
        case = objects.Case(
            Orm(ORM_TRIGGERS, engine, notifies=True),
            setting,
            university,
            objects.same_audience(university),
            1,
        )
        objects._timed(quiet(), place, case, 0)
        watcher = next(each.person for each in university.watches if (each.cls, each.key) == (Course, None))
        with engine.begin() as connection:
            statement = text("DELETE FROM tidings_watches WHERE subscriber_key = :person")
            connection.execute(statement, {"person": str(watcher)})
        with pytest.raises(
            Disagreement, match="event 0: ORM, triggers found 22 matches, the definition found 23"
        ):
            objects._timed(quiet(), place, case, 1)


def test_setting_of_workload_name_round_trips() -> None:
    for setting in (Setting("SQLite", 3_200, 8, 2), Setting("PostgreSQL", 40_000)):
        assert setting_of(setting.workload) == setting
    assert setting_of("metadata, OID, batches of 1") is None


def row(setting: Setting, engine: str, seconds: float, notified: float = 0.0) -> Row:
    return Row(setting.workload, 40, engine, 1 / seconds, None, None, notified, seconds_per_event=seconds)


def measured() -> list[Row]:
    """Return rows where each setting takes longer than the one before."""
    seconds = {BARE: 1e-5, TRIGGERS: 1e-4, ORM: 1e-3, ORM_TRIGGERS: 1.5e-3, ASPECT: 6.5e-3}
    settings = [Setting("SQLite", 400, 8, 2), Setting("SQLite", 400, 64, 16), Setting("SQLite", 3_200, 8, 2)]
    settings += [Setting("SQLite", 40_000, 8, 2), Setting("SQLite", 400), Setting("SQLite", 40_000)]
    return [
        row(setting, engine, each * (1 + at / 10), notified=at)
        for at, setting in enumerate(settings)
        for engine, each in seconds.items()
    ]


def test_table_has_ratios_of_whole_and_added_time() -> None:
    first = lines(measured())[0]
    assert (first.whole(), first.added()) == (pytest.approx(13 / 3), pytest.approx(11.0))
    assert first.driver() == pytest.approx(65)
    assert (
        "| SQLite | 400 | 8% / 2% | 0.0 | 10 µs | 100 µs | 1 ms | 1.5 ms | 6.5 ms | 65.0 x | 4.3 x | 11.0 x |"
        in table(measured())
    )
    without = [each for each in measured() if each.engine != ASPECT]
    assert lines(without)[0].whole() is lines(without)[0].driver() is None and table([]) == ""


def test_goals_are_for_largest_settings_of_paper() -> None:
    report = goals(measured())
    for setting in ("P = 400, 64% and 16% watch", "P = 3,200, 8% and 2% watch"):
        beside = f"objects, SQLite, {setting}: triggers beside the aspect"
        assert f"{beside}, whole updates | at least 10.00 x | 4.33 x | missed: 43% of it" in report
        assert f"{beside}, what telling adds | at least 10.00 x | 11.00 x | met" in report
    assert "P = 40,000, 8%" not in report and "P = 400, 8%" not in report
    assert "an update that tells 5: P = 40,000 beside 400 | at most 1.50 x | 1.07 x | met" in report


def test_figures_have_one_line_per_program() -> None:
    figure = figures_3_and_4(measured())
    assert figure is not None
    left, right = (
        [list(line.get_xdata()) for line in axes.lines if len(line.get_xdata())] for axes in figure.axes
    )
    assert left == [[8, 64]] * 5 and right == [[400, 3_200, 40_000]] * 5
    assert figures_3_and_4([]) is None


CAMPUS = Campus(120, 120)


def campus_graph(campus: Campus) -> ObjectGraph:
    """Return the object graph of a campus by its description."""
    associations = {each.name: each for each in campus.placed.model.associations}
    links = set[ObjectLink]()
    for number in range(campus.courses):
        course, material = Object("Course", number), Object("LearningMaterial", number)
        links.add(ObjectLink(associations["usedIn"], material, course))
        for turn in range(22):
            student = Object("Student", (3 * number + 7919 * turn) % campus.students)
            links.add(ObjectLink(associations["attends"], student, course))
        for next in (1, 2):
            earlier = Object("LearningMaterial", number // 4 * 4 + (number + next) % 4)
            links.add(ObjectLink(associations["buildsOn"], material, earlier))
    classes = {Object(*campus.object(number)): campus.object(number).cls for number in range(campus.objects)}
    assert len(links) == campus.references == 5 * campus.objects
    return ObjectGraph(campus.placed.model, classes, frozenset(links))


def test_campus_change_affects_subscribers_of_definition() -> None:
    there = campus_graph(CAMPUS)
    watches = {Watch(Object("Student", 1 + at), cls) for at, cls in enumerate(CAMPUS_CLASSES)}
    for at in range(CAMPUS.students // 12):
        watches.add(Watch(Object("Student", 12 * at), *CAMPUS.object(7919 * at % CAMPUS.objects)))
    assert len(watches) == CAMPUS.watches
    assert len(set(CAMPUS.changed())) == CAMPUS.objects
    for changed in CAMPUS.changed():
        follows = propagate_change(
            there, frozenset(watches), Change(ChangeKind.UPDATE, Object(*changed), frozenset({"title"}))
        )
        assert {Object(*each) for each in CAMPUS.reached(changed)} == follows.reached
        assert CAMPUS.expected_subscribers(changed) == {hit.subscriber.key for hit in follows.hits}


@pytest.mark.long
@pytest.mark.spark
def test_spark_notifies_same_subscribers() -> None:
    """The tests of Spark show that it agrees with the definition; this one runs the benchmark as a whole."""
    bench = quiet()
    objects_spark.run(bench, TINY)
    closure, whole = bench.rows
    assert (closure.engine, whole.engine) == (objects_spark.CLOSURE, objects_spark.SPARK)
    campus = Campus(*TINY.objects_spark[0])
    assert (
        whole.matches_per_event
        == sum(len(campus.expected_subscribers(one)) for one in campus.changed()) / campus.changes
    )
    assert whole.seconds_per_event and closure.seconds_per_event
    assert whole.seconds_per_event > closure.seconds_per_event
