"""Sessions that are listened to: what a flush changes, when it is told, and what is refused because nobody saw it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Connection, Engine, ForeignKey, Integer, delete, event, insert, select, text, update
from sqlalchemy.orm import (
    DeclarativeBase,
    Session,
    mapped_column,
    relationship,
    scoped_session,
    sessionmaker,
)

from tests.objects.engines import in_memory
from tests.objects.school import Base, Chapter, Course, Lecturer, Script, Seminar, Student, attends, used_in
from tests.support.paths import ROOT
from tidings import InputError, Limits, NotTold, Object, Tidings, Watch, notice, propagates
from tidings.objects.notices import ObjectChange
from tidings.objects.propagation import Truncation, find_reasons

EXAMPLE = ROOT / "examples/university/university.py"
Sessions = sessionmaker[Session]


def university() -> Any:
    """The module of the example."""
    spec = spec_from_file_location("university_example", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = sys.modules["university_example"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_paper_s_university(engine: Engine) -> None:
    """Section 3.4: Script2 changes, both courses with it, and all three students are told."""
    example, found = university(), list[ObjectChange]()
    example.Base.metadata.create_all(engine)
    try:
        with Session(engine) as session:
            basics, structures = (
                example.Course(id=number, title=title, room="A", lecturer_id=1)
                for number, title in ((1, "ProgrammingBasics"), (2, "DataStructures"))
            )
            session.add(example.Lecturer(id=1, name="Ada", phone="4711"))
            session.flush()
            attending = {1: [], 2: [basics], 3: [structures]}
            session.add_all(
                example.Student(id=number, name=f"S{number}", attends=each)
                for number, each in attending.items()
            )
            script = example.LearningMaterial(id=2, title="Script2", used_in=[basics, structures])
            session.add_all([example.LearningMaterial(id=1, title="Script1", used_in=[basics]), script])
            session.commit()
            watches = {Watch(Object("Student", 1), "Course", 1), Watch(Object("Student", 2), "Course")}
            notice(session, example.Base, tell=found.extend, watches=watches)
            script.title = "Script2, second edition"
            session.commit()
    finally:
        example.Base.metadata.drop_all(engine)
    [change] = found
    assert (change.before, change.after) == ({"title": "Script2"}, {"title": "Script2, second edition"})
    assert why(change) == {
        "Student:1": ["LearningMaterial:2 -usedIn-> Course:1 (Student:1 watches it)"],
        "Student:2": [
            "LearningMaterial:2 -usedIn-> Course:1 (Student:2 watches Course)",
            "LearningMaterial:2 -usedIn-> Course:1 <-attends- Student:2",
            "LearningMaterial:2 -usedIn-> Course:2 (Student:2 watches Course)",
        ],
        "Student:3": ["LearningMaterial:2 -usedIn-> Course:2 <-attends- Student:3"],
    }


def why(change: ObjectChange) -> dict[str, list[str]]:
    found = find_reasons(change.change.object, change.propagation.steps, change.propagation.hits)
    return {str(who): sorted(each.render() for each in all) for who, all in found.items()}


class School:
    """A school in a database, and what was told in each commit."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.sessions: Sessions = sessionmaker(engine)
        self.told: list[list[ObjectChange]] = []
        Base.metadata.create_all(engine)
        with self.sessions.begin() as session:
            lecturer = Lecturer(id=1, name="Ada")
            chapters = [Chapter(id=1, title="Lists"), Chapter(id=2, title="Trees")]
            basics = Course(id=1, title="Basics", chapters=chapters)
            lecturer.gives = [basics]
            self.script = UUID(int=1)
            script = Script(id=self.script, title="Script", used_in=[basics])
            session.add_all([lecturer, script, Seminar(id=2, title="Logic", topic="sets")])
            session.add(Student(id=3, name="Sam", attends=[basics]))

    def listen(self, **more: Any) -> Any:
        return notice(self.sessions, Base, **{"tell": self.told.append, **more})

    def said(self) -> list[list[str]]:
        """What was told since it was asked last, in each commit: `update Course:1 title`."""
        found, self.told[:] = [sorted(map(_said, each)) for each in self.told], []
        return found


def _said(each: ObjectChange) -> str:
    words = [each.change.kind.value, str(each.change.object), *sorted(each.change.attributes)]
    if each.other is not None:
        words += [str(each.association), str(each.other)]
    return " ".join(words)


@pytest.fixture
def school() -> School:
    return School(in_memory())


def test_a_commit_tells_once_what_all_its_flushes_changed(school: School) -> None:
    school.listen()
    with school.sessions.begin() as session:
        course = session.get_one(Course, 1)
        course.title = "More"
        session.flush()
        session.add(Chapter(id=3, title="Graphs", course=course))
        session.flush()
        assert school.told == []
    assert school.said() == [["insert Chapter:3", "update Course:1 title"]]


def test_what_is_rolled_back_tells_nobody(school: School) -> None:
    school.listen()
    with school.sessions() as session:
        session.get_one(Course, 1).title = "never"
        session.flush()
        session.rollback()
        session.get_one(Course, 1).title = "never, too"
        session.flush()
    with school.sessions.begin() as session:
        session.get_one(Course, 2)
    assert school.told == []


def test_a_savepoint_that_is_rolled_back_takes_along_what_was_in_it(school: School) -> None:
    school.listen()
    with school.sessions.begin() as session:
        first, second = session.get_one(Course, 1), session.get_one(Course, 2)
        first.title = "told"
        with session.begin_nested():
            second.title = "told, too"
            session.flush()
            inner = session.begin_nested()
            session.add(Lecturer(id=2, name="never"))
            session.flush()
            inner.rollback()
        outer = session.begin_nested()
        with session.begin_nested():
            second.topic = "released, but within what is rolled back"
        outer.rollback()
    assert school.said() == [["update Course:1 title", "update Course:2 title"]]


def test_a_flush_that_fails_tells_nothing_and_the_next_one_is_seen(school: School) -> None:
    school.listen()
    with school.sessions() as session:
        session.add(Chapter(id=1, title="there is one already"))
        with pytest.raises(Exception, match="UNIQUE"):
            session.flush()
        session.rollback()
        session.add(Chapter(id=9, title="there is none"))
        session.commit()
    assert school.said() == [["insert Chapter:9"]]


def test_a_value_that_is_what_it_was_is_no_change(school: School) -> None:
    school.listen()
    with school.sessions.begin() as session:
        course = session.get_one(Course, 1)
        session.expire(course)
        course.title = "Basics"
        course.lecturer_id = 1
    assert school.told == []


def test_values_that_the_database_computes_are_read_from_it(school: School) -> None:
    school.listen()
    with school.sessions.begin() as session:
        session.get_one(Course, 1).title = Course.title + "!"
    [[change]] = school.told
    assert (change.before, change.after) == ({"title": "Basics"}, {"title": "Basics!"})


def test_a_course_goes_with_its_chapters_and_its_links_are_not_told_besides(school: School) -> None:
    school.listen()
    with school.sessions.begin() as session:
        session.execute(text("DELETE FROM attends"))
        session.delete(session.get_one(Course, 1))
    [changes] = school.told
    assert school.said() == [["delete Chapter:1", "delete Chapter:2", "delete Course:1"]]
    by_object = {str(each.change.object): each for each in changes}
    assert by_object["Course:1"].before == {"title": "Basics", "gives": 1}
    assert {str(one) for one in by_object["Chapter:1"].propagation.reached} == {"Chapter:1", "Course:1"}


def leaves_by_reference(session: Session) -> str:
    chapter, course = session.get_one(Chapter, 1), session.get_one(Course, 1)
    chapter.course = session.get_one(Course, 2)
    session.delete(course)
    return "link Course:2 belongsTo Chapter:1"


def leaves_by_collection(session: Session) -> str:
    script, course = session.scalars(select(Script)).one(), session.get_one(Course, 1)
    script.used_in = [session.get_one(Course, 2)]
    session.delete(course)
    return f"link Course:2 used_in Script:{script.id.hex}"


@pytest.mark.parametrize("leaves", [leaves_by_reference, leaves_by_collection])
def test_what_leaves_a_course_that_goes_is_told_where_it_comes_to(
    school: School, leaves: Callable[[Session], str]
) -> None:
    """That the course has lost it is said by its end."""
    school.listen()
    with school.sessions.begin() as session:
        session.execute(text("DELETE FROM attends"))
        with session.no_autoflush:
            expected = leaves(session)
    [changes] = school.said()
    assert expected in changes and "delete Course:1" in changes
    assert not [each for each in changes if each.startswith("unlink")]


def test_an_orphan_is_deleted_and_was_in_its_course(school: School) -> None:
    """SQLAlchemy finds out in the flush itself."""
    school.listen()
    with school.sessions.begin() as session:
        course = session.get_one(Course, 1)
        course.chapters.remove(course.chapters[0])
    [[change]] = school.told
    assert _said(change) == "delete Chapter:1"
    assert why(change) == {"Person:3": ["Chapter:1 -belongsTo-> Course:1 <-attends- Person:3"]}


def test_a_course_whose_lecturer_goes_is_updated_though_nobody_had_loaded_it(school: School) -> None:
    school.listen()
    with school.sessions.begin() as session:
        session.delete(session.get_one(Lecturer, 1))
    assert school.said() == [["delete Lecturer:1", "update Course:1 gives"]]


def by_relationship(session: Session) -> None:
    session.get_one(Chapter, 1).course = session.get_one(Course, 2)


def by_column(session: Session) -> None:
    session.get_one(Chapter, 1).course_id = 2


def by_collection(session: Session) -> None:
    seminar = session.get_one(Course, 2)
    seminar.chapters.append(session.get_one(Chapter, 1))


@pytest.mark.parametrize("moves", [by_relationship, by_column, by_collection])
def test_a_chapter_that_moves_changes_both_courses(school: School, moves: Callable[[Session], None]) -> None:
    """The one that it leaves, as it was, and the one that it comes to."""
    school.listen(watches=[Watch(Object("Student", 3), "Seminar")])
    with school.sessions.begin() as session:
        moves(session)
    [changes] = school.told
    assert [(each.cls, why(each)) for each in sorted(changes, key=_said)] == [
        ("Seminar", {"Person:3": ["Course:2 (Person:3 watches Seminar)"]}),
        ("Course", {"Person:3": ["Course:1 <-attends- Person:3"]}),
    ]
    assert school.said() == [["link Course:2 belongsTo Chapter:1", "unlink Course:1 belongsTo Chapter:1"]]


def test_references_in_a_circle_are_seen_when_they_are_written_afterwards() -> None:
    """`post_update`: first the rows, then who refers to whom, in statements of their own."""

    class Ring(DeclarativeBase):
        pass

    class Node(Ring):
        __tablename__ = "node"
        id = mapped_column(Integer, primary_key=True)
        next_id = mapped_column(ForeignKey("node.id"))
        next = relationship("Node", remote_side=[id], post_update=True, info=propagates())

    engine, told = in_memory(), list[ObjectChange]()
    Ring.metadata.create_all(engine)
    with Session(engine) as session:
        one, two = Node(id=1), Node(id=2)
        session.add_all([one, two])
        session.commit()
        notice(session, Ring, tell=told.extend)
        one.next, two.next = two, one
        session.commit()
    assert sorted(map(_said, told)) == ["link Node:1 next Node:2", "link Node:2 next Node:1"]
    assert all({str(one) for one in each.propagation.reached} == {"Node:1", "Node:2"} for each in told)


def test_what_is_inserted_has_no_links_but_those_in_its_row(school: School) -> None:
    """As triggers see it: the row of a script, then those of its links."""
    school.listen()
    with school.sessions.begin() as session:
        course = session.get_one(Course, 1)
        session.add(Script(id=UUID(int=2), title="New", used_in=[course]))
        session.add(Chapter(id=3, title="Graphs", course=course))
    [changes] = school.told
    reached = {_said(each): {str(one) for one in each.propagation.reached} for each in changes}
    new = f"Script:{UUID(int=2).hex}"
    assert reached == {
        "insert Chapter:3": {"Chapter:3", "Course:1"},
        f"insert {new}": {new},
        f"link Course:1 used_in {new}": {"Course:1"},
    }


def test_links_are_told_once_from_whichever_end_they_are_made(school: School) -> None:
    school.listen()
    with school.sessions.begin() as session:
        script, seminar = session.get_one(Script, school.script), session.get_one(Course, 2)
        seminar.scripts.append(script)
        script.used_in.remove(session.get_one(Course, 1))
    key = f"used_in Script:{school.script.hex}"
    assert school.said() == [[f"link Course:2 {key}", f"unlink Course:1 {key}"]]


def test_who_comes_with_the_key_of_one_who_goes_is_the_same(school: School) -> None:
    """SQLAlchemy writes an UPDATE then."""
    school.listen()
    with school.sessions.begin() as session:
        session.delete(session.get_one(Chapter, 2))
        session.add(Chapter(id=2, title="Tries", course_id=1))
    assert school.said() == [["update Chapter:2 title"]]


@pytest.mark.parametrize(
    "does",
    [
        lambda session: session.execute(update(Course).values(title="x")),
        lambda session: session.execute(insert(Lecturer), [{"id": 5, "name": "Bob"}]),
        lambda session: session.execute(delete(Chapter.__table__)),
        lambda session: session.query(Seminar).update({"topic": "x"}),
        lambda session: session.execute(insert(used_in), [{"script_id": UUID(int=1), "course_id": 2}]),
        lambda session: session.connection().execute(update(Chapter.__table__).values(title="x")),
        lambda session: session.bulk_save_objects([Lecturer(id=5, name="Bob")]),
    ],
)
def test_statements_that_change_rows_without_their_objects_are_refused(
    school: School, does: Callable[[Session], object]
) -> None:
    listener = school.listen()
    with school.sessions() as session:
        session.get_one(Lecturer, 1).name = "somebody"
        session.flush()  # is over, and so is one that has nothing to do
        session.flush()
        with pytest.raises(
            InputError, match=r"without the session's instances.*triggers capture such statements"
        ):
            does(session)
    listener.stop()
    school.listen(bulk="ignore")
    with school.sessions() as session:
        does(session)
        session.get_one(Lecturer, 1).name = "Ada L."
        session.commit()
    assert school.said() == [["update Lecturer:1 name"]]


def test_statements_that_are_no_changes_pass(school: School) -> None:
    """Who attends a course is no change of it."""
    school.listen()
    with school.sessions.begin() as session:
        session.execute(insert(attends), [{"student_id": 3, "course_id": 2}])
        assert session.scalars(select(Course.title)).all() == ["Basics", "Logic"]
    assert school.told == []


def test_what_cannot_be_told_is_committed_and_kept(school: School) -> None:
    def fails(noticed: list[ObjectChange]) -> None:
        raise ConnectionError("nobody there")

    telling: list[Callable[[list[ObjectChange]], object]] = [fails, school.told.append]
    listener = school.listen(tell=lambda noticed: telling[0](noticed))
    with school.sessions() as session:
        course = session.get_one(Course, 1)
        course.title = "More"
        with pytest.raises(NotTold, match=r"committed, but could not be reported.*nobody there") as caught:
            session.commit()
        assert isinstance(caught.value.__cause__, ConnectionError)
        assert course.title == "More"
        session.rollback()
        assert course.title == "More"
    assert caught.value.noticed == listener.untold != ()
    with pytest.raises(NotTold):
        listener.tell_again()
    telling.pop(0)
    listener.tell_again()
    assert school.told == [list(caught.value.noticed)] and listener.untold == ()
    listener.tell_again()
    assert len(school.told) == 1


def test_a_block_that_cannot_tell_says_so_and_nothing_else(school: School) -> None:
    school.listen(tell=lambda noticed: 1 / 0)
    with pytest.raises(NotTold), school.sessions.begin() as session:
        session.get_one(Course, 1).title = "More"
    with school.sessions() as session:
        assert session.get_one(Course, 1).title == "More"


def test_who_makes_a_change_is_said_by_the_session(school: School) -> None:
    school.listen()
    with school.sessions(info={"tidings_author": ("Student", 3)}) as session:
        session.get_one(Course, 1).title = "More"
        session.commit()
        session.info["tidings_author"] = ("Studnet", 3)
        session.get_one(Course, 1).title = "Less"
        with pytest.raises(InputError, match="not an author"):
            session.flush()
    assert [each.author for [each] in school.told] == [Object("Person", "3")]


def test_watches_may_be_asked_for_and_only_those_of_what_is_reached(school: School) -> None:
    asked: list[set[str]] = []

    def watches(connection: Connection, objects: frozenset[Object]) -> Iterator[Watch]:
        asked.append(set(map(str, objects)))
        for (id,) in connection.execute(select(Student.id)):
            yield Watch(Object("Student", id), "Course", 1)

    school.listen(watches=watches)
    with school.sessions.begin() as session:
        session.get_one(Chapter, 1).title = "Queues"
    assert asked == [{"Chapter:1", "Course:1"}]
    assert "Chapter:1 -belongsTo-> Course:1 (Person:3 watches it)" in why(school.told[0][0])["Person:3"]


@pytest.mark.parametrize(
    ("watch", "problem"),
    [
        (Watch(Object("Student", 3), "Cuorse", 1), "no such class.*did you mean 'Course'"),
        (Watch(Object("Course", 1), "Course", 1), "cannot be told; received Course; accepted: Student"),
    ],
)
def test_watches_of_what_there_is_not_are_refused(school: School, watch: Watch, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        school.listen(watches=[watch])
    school.listen(watches=lambda connection, objects: [watch])
    with school.sessions() as session:
        session.get_one(Course, 1).title = "More"
        with pytest.raises(InputError, match=problem):
            session.commit()


def test_limits_are_told_where_they_are_reached(school: School) -> None:
    school.listen(limits=Limits(steps=0, subscribers=1))
    with school.sessions.begin() as session:
        session.get_one(Chapter, 1).title = "Queues"
        session.get_one(Course, 1).title = "More"
    cuts = {_said(each): each.propagation.truncations for each in school.told[0]}
    assert cuts == {
        "update Chapter:1 title": {Truncation("steps", 0, 1)},
        "update Course:1 title": frozenset(),
    }


def test_many_changes_take_no_more_statements_than_one(school: School) -> None:
    school.listen()
    with school.sessions.begin() as session:
        session.add_all(Chapter(id=number, title="x", course_id=1) for number in range(10, 40))

    def asked(keys: range) -> int:
        with school.sessions() as session:
            chapters = [session.get_one(Chapter, key) for key in keys]
            for chapter in chapters:
                chapter.title += "y"
            with counted(school.engine) as statements:
                session.commit()
            return len([each for each in statements if each.startswith("SELECT")])

    assert asked(range(10, 11)) == asked(range(11, 40)) > 0


class counted:
    """The statements of an engine within a block."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.statements = engine, list[str]()

    def __enter__(self) -> list[str]:
        event.listen(self.engine, "before_cursor_execute", self._take)
        return self.statements

    def __exit__(self, *_: object) -> None:
        event.remove(self.engine, "before_cursor_execute", self._take)

    def _take(self, connection: Any, cursor: Any, statement: str, *more: Any) -> None:
        self.statements.append(statement)


def test_whoever_stops_hears_no_more(school: School) -> None:
    listener = school.listen()
    with school.sessions.begin() as session:
        session.get_one(Course, 1).title = "More"
        session.flush()
        listener.stop()
        session.execute(update(Course).values(title="x"))
    listener.stop()
    with school.sessions.begin() as session:
        session.get_one(Course, 1).title = "Less"
    assert school.told == []


def test_a_session_that_began_before_is_heard(school: School) -> None:
    with school.sessions() as session:
        course = session.get_one(Course, 1)
        notice(session, Base, tell=school.told.append)
        with pytest.raises(InputError):
            session.execute(update(Course).values(title="x"))
        course.title = "More"
        session.commit()
    with school.sessions.begin() as session:
        session.get_one(Course, 1).title = "by a session that nobody listens to"
    assert school.said() == [["update Course:1 title"]]


def a_class(sessions: Sessions) -> Any:
    return sessions.class_


@pytest.mark.parametrize("kind", [scoped_session, a_class])
def test_all_that_makes_sessions_can_be_listened_to(school: School, kind: Callable[[Sessions], Any]) -> None:
    listener = notice(kind(school.sessions), Base, tell=school.told.append)
    for title in ("More", "Most"):
        with school.sessions.begin() as session:
            session.get_one(Course, 1).title = title
        listener.stop()
    assert school.said() == [["update Course:1 title"]]


def test_a_connection_of_somebody_else_is_left_as_it_was(school: School) -> None:
    """Sessions come and go on it, as in tests that roll back in the end."""
    with school.engine.connect() as connection, connection.begin() as outer:
        for title in ("More", "Most"):
            with Session(connection, join_transaction_mode="create_savepoint") as session:
                notice(session, Base, tell=school.told.append)
                session.get_one(Course, 1).title = title
                session.commit()
        connection.execute(update(Course.__table__).values(title="seen by nobody"))
        outer.rollback()
    assert school.said() == [["update Course:1 title"], ["update Course:1 title"]]


def test_into_a_store_with_the_names_that_people_know(school: School, tmp_path: Path) -> None:
    with Tidings(tmp_path / "home") as tidings:
        with pytest.raises(InputError, match="source"):
            school.listen(tell=tidings)
        school.listen(tell=tidings, source="school", watches=[Watch(Object("Student", "nobody"), "Chapter")])
        with school.sessions.begin() as session:
            session.delete(session.get_one(Chapter, 1))
        [said] = tidings.notifications("Person:3")
    assert (said.subscription, said.publication, said.kind) == ("school", "Chapter:1", "deleted")
    assert [each.predicate for each in said.because] == ["Lists -belongsTo-> Basics <-attends- you"]


def test_what_cannot_be_listened_to_is_refused(school: School) -> None:
    with pytest.raises(InputError, match="'sessions' has the wrong type; received Engine"):
        notice(school.engine, Base, tell=print)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="refuse, ignore"):
        school.listen(bulk="allow")
