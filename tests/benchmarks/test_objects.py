"""Section 5 of paper 000: whom an update of the university should tell, and that what is timed tells just those."""

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
    known = {each.name: each for each in model.associations}
    links = [
        ObjectLink(known["attends"], Object("Student", person), Object("Course", course))
        for person, course in university.attends
    ] + [
        ObjectLink(known["usedIn"], Object("LearningMaterial", one), Object("Course", course))
        for one, course in university.used_in
    ]
    classes = {Object(one.cls.__name__, one.key): one.cls.__name__ for one in university.objects()}
    return ObjectGraph(model, classes, frozenset(links))


def test_an_update_should_tell_whom_the_definition_tells() -> None:
    there = graph(SMALL)
    watches = frozenset(
        Watch(Object("Student", each.person), each.cls.__name__, each.key) for each in SMALL.watches
    )
    told_by: Counter[type] = Counter()
    for one in SMALL.objects():
        change = Change(ChangeKind.UPDATE, Object(one.cls.__name__, one.key), frozenset({"title"}))
        defined = {hit.subscriber.key for hit in propagate_change(there, watches, change).hits}
        assert SMALL.told(one) == defined
        told_by[one.cls] += len(defined)
    assert all(told_by[cls] for cls in CLASSES), "somebody is told about each class"


def test_there_is_as_much_of_everything_as_the_paper_says() -> None:
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
def test_the_same_audience_is_the_same_whatever_the_size(persons: int) -> None:
    university = Setting("SQLite", persons).university()
    chosen = objects.same_audience(university)
    found = {cls: {len(university.told(one)) for one in chosen if one.cls is cls} for cls in CLASSES}
    assert found == {Course: {20 + 3}, LearningMaterial: {2 * 20 + 3 + 2}, Student: set()}


def test_on_postgresql_the_same_are_told(server: PostgreSQL) -> None:
    bench = quiet()
    objects.compare(bench, server, [Setting(server.name, 400, 8, 2)], updates=30)
    rows = {row.engine: row for row in bench.rows}
    assert rows.keys() == {BARE, ORM, *TELLING}
    expected = Setting(server.name, 400, 8, 2).university()
    mean = sum(len(expected.told(one)) for one in expected.updated()[:30]) / 30
    assert [rows[name].matches_per_event for name in TELLING] == [pytest.approx(mean)] * 3
    assert {rows[name].matches_per_event for name in (BARE, ORM)} == {0.0}


def test_who_is_forgotten_stops_the_run() -> None:
    """One of those who watch all courses is not there."""
    place, setting = SQLite(), Setting("SQLite", 400)
    university = setting.university()
    with place.address() as url, opened(url) as engine:
        fill(engine, university)
        add_triggers(engine, url, university)
        case = objects.Case(
            Orm(ORM_TRIGGERS, engine, tells=True), setting, university, objects.same_audience(university), 1
        )
        objects._timed(quiet(), place, case, 0)
        someone = next(each.person for each in university.watches if (each.cls, each.key) == (Course, None))
        with engine.begin() as connection:
            gone = text("DELETE FROM tidings_watches WHERE subscriber_key = :person")
            connection.execute(gone, {"person": str(someone)})
        with pytest.raises(
            Disagreement, match="event 0: ORM, triggers found 22 matches, the definition found 23"
        ):
            objects._timed(quiet(), place, case, 1)


def test_a_setting_is_known_by_its_workload() -> None:
    for setting in (Setting("SQLite", 3_200, 8, 2), Setting("PostgreSQL", 40_000)):
        assert setting_of(setting.workload) == setting
    assert setting_of("metadata, OID, batches of 1") is None


def row(setting: Setting, engine: str, seconds: float, told: float = 0.0) -> Row:
    return Row(setting.workload, 40, engine, 1 / seconds, None, None, told, seconds_per_event=seconds)


def measured() -> list[Row]:
    """More in each setting than in the one before."""
    seconds = {BARE: 1e-5, TRIGGERS: 1e-4, ORM: 1e-3, ORM_TRIGGERS: 1.5e-3, ASPECT: 6.5e-3}
    settings = [Setting("SQLite", 400, 8, 2), Setting("SQLite", 400, 64, 16), Setting("SQLite", 3_200, 8, 2)]
    settings += [Setting("SQLite", 40_000, 8, 2), Setting("SQLite", 400), Setting("SQLite", 40_000)]
    return [
        row(setting, engine, each * (1 + at / 10), told=at)
        for at, setting in enumerate(settings)
        for engine, each in seconds.items()
    ]


def test_ratios_are_told_of_whole_updates_and_of_what_is_added() -> None:
    first = lines(measured())[0]
    assert (first.whole(), first.added()) == (pytest.approx(13 / 3), pytest.approx(11.0))
    assert first.driver() == pytest.approx(65)
    assert (
        "| SQLite | 400 | 8% / 2% | 0.0 | 10 µs | 100 µs | 1 ms | 1.5 ms | 6.5 ms | 65.0 x | 4.3 x | 11.0 x |"
        in table(measured())
    )
    without = [each for each in measured() if each.engine != ASPECT]
    assert lines(without)[0].whole() is lines(without)[0].driver() is None and table([]) == ""


def test_goals_are_those_of_the_largest_settings_of_the_paper() -> None:
    said = goals(measured())
    for setting in ("P = 400, 64% and 16% watch", "P = 3,200, 8% and 2% watch"):
        beside = f"objects, SQLite, {setting}: triggers beside the aspect"
        assert f"{beside}, whole updates | at least 10.00 x | 4.33 x | missed: 43% of it" in said
        assert f"{beside}, what telling adds | at least 10.00 x | 11.00 x | met" in said
    assert "P = 40,000, 8%" not in said and "P = 400, 8%" not in said
    assert "an update that tells 5: P = 40,000 beside 400 | at most 1.50 x | 1.07 x | met" in said


def test_figures_have_a_line_for_each_program() -> None:
    figure = figures_3_and_4(measured())
    assert figure is not None
    left, right = (
        [list(line.get_xdata()) for line in axes.lines if len(line.get_xdata())] for axes in figure.axes
    )
    assert left == [[8, 64]] * 5 and right == [[400, 3_200, 40_000]] * 5
    assert figures_3_and_4([]) is None


CAMPUS = Campus(120, 120)


def campus_graph(campus: Campus) -> ObjectGraph:
    """By the words in which the campus is described."""
    known = {each.name: each for each in campus.placed.model.associations}
    links = set[ObjectLink]()
    for number in range(campus.courses):
        course, material = Object("Course", number), Object("LearningMaterial", number)
        links.add(ObjectLink(known["usedIn"], material, course))
        for turn in range(22):
            student = Object("Student", (3 * number + 7919 * turn) % campus.students)
            links.add(ObjectLink(known["attends"], student, course))
        for next in (1, 2):
            earlier = Object("LearningMaterial", number // 4 * 4 + (number + next) % 4)
            links.add(ObjectLink(known["buildsOn"], material, earlier))
    classes = {Object(*campus.object(number)): campus.object(number).cls for number in range(campus.objects)}
    assert len(links) == campus.references == 5 * campus.objects
    return ObjectGraph(campus.placed.model, classes, frozenset(links))


def test_a_change_on_the_campus_should_tell_whom_the_definition_tells() -> None:
    there = campus_graph(CAMPUS)
    watches = {Watch(Object("Student", 1 + at), cls) for at, cls in enumerate(CAMPUS_CLASSES)}
    for at in range(CAMPUS.students // 12):
        watches.add(Watch(Object("Student", 12 * at), *CAMPUS.object(7919 * at % CAMPUS.objects)))
    assert len(watches) == CAMPUS.watches
    assert len(set(CAMPUS.changed())) == CAMPUS.objects
    for one in CAMPUS.changed():
        follows = propagate_change(
            there, frozenset(watches), Change(ChangeKind.UPDATE, Object(*one), frozenset({"title"}))
        )
        assert {Object(*each) for each in CAMPUS.reached(one)} == follows.reached
        assert CAMPUS.told(one) == {hit.subscriber.key for hit in follows.hits}


@pytest.mark.long
@pytest.mark.spark
def test_on_spark_the_same_are_told() -> None:
    """That Spark tells whom the definition tells is tested with it; this is the part of the benchmarks as a whole."""
    bench = quiet()
    objects_spark.run(bench, TINY)
    closure, whole = bench.rows
    assert (closure.engine, whole.engine) == (objects_spark.CLOSURE, objects_spark.SPARK)
    campus = Campus(*TINY.objects_spark[0])
    assert whole.matches_per_event == sum(len(campus.told(one)) for one in campus.changed()) / campus.changes
    assert whole.seconds_per_event and closure.seconds_per_event
    assert whole.seconds_per_event > closure.seconds_per_event
