"""Sessions with a listener: recorded changes, their notification, and rejected statements."""

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
from tidings import InputError, Limits, NotificationFailed, Object, Tidings, Watch, notice, propagates
from tidings.objects.notices import ObjectChange
from tidings.objects.propagation import Truncation, find_reasons

EXAMPLE = ROOT / "examples/university/university.py"
Sessions = sessionmaker[Session]


def load_example() -> Any:
    """Load the module of the example."""
    spec = spec_from_file_location("university_example", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = sys.modules["university_example"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_listener_example_of_paper_notifies_three_students(engine: Engine) -> None:
    """Section 3.4: Script2 changes, both courses with it, and all three students are notified."""
    example, changes = load_example(), list[ObjectChange]()
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
            notice(session, example.Base, report=changes.extend, watches=watches)
            script.title = "Script2, second edition"
            session.commit()
    finally:
        example.Base.metadata.drop_all(engine)
    [change] = changes
    assert (change.before, change.after) == ({"title": "Script2"}, {"title": "Script2, second edition"})
    assert describe_reasons(change) == {
        "Student:1": ["LearningMaterial:2 -usedIn-> Course:1 (Student:1 watches it)"],
        "Student:2": [
            "LearningMaterial:2 -usedIn-> Course:1 (Student:2 watches Course)",
            "LearningMaterial:2 -usedIn-> Course:1 <-attends- Student:2",
            "LearningMaterial:2 -usedIn-> Course:2 (Student:2 watches Course)",
        ],
        "Student:3": ["LearningMaterial:2 -usedIn-> Course:2 <-attends- Student:3"],
    }


def describe_reasons(change: ObjectChange) -> dict[str, list[str]]:
    reasons = find_reasons(change.change.object, change.propagation.steps, change.propagation.hits)
    return {
        str(subscriber): sorted(each.render() for each in reasons_of_subscriber)
        for subscriber, reasons_of_subscriber in reasons.items()
    }


class School:
    """A school in a database, and the notified changes of each commit."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.sessions: Sessions = sessionmaker(engine)
        self.notified: list[list[ObjectChange]] = []
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
        return notice(self.sessions, Base, **{"report": self.notified.append, **more})

    def take_descriptions(self) -> list[list[str]]:
        """Return descriptions of the notified changes since the last call, by commit."""
        descriptions, self.notified[:] = [sorted(map(_describe, each)) for each in self.notified], []
        return descriptions


def _describe(each: ObjectChange) -> str:
    parts = [each.change.kind.value, str(each.change.object), *sorted(each.change.attributes)]
    if each.other is not None:
        parts += [str(each.association), str(each.other)]
    return " ".join(parts)


@pytest.fixture
def school() -> School:
    return School(in_memory())


def test_listener_commit_notifies_once_of_all_flushes(school: School) -> None:
    school.listen()
    with school.sessions.begin() as session:
        course = session.get_one(Course, 1)
        course.title = "More"
        session.flush()
        session.add(Chapter(id=3, title="Graphs", course=course))
        session.flush()
        assert school.notified == []
    assert school.take_descriptions() == [["insert Chapter:3", "update Course:1 title"]]


def test_listener_rollback_notifies_nothing(school: School) -> None:
    school.listen()
    with school.sessions() as session:
        session.get_one(Course, 1).title = "never"
        session.flush()
        session.rollback()
        session.get_one(Course, 1).title = "never, too"
        session.flush()
    with school.sessions.begin() as session:
        session.get_one(Course, 2)
    assert school.notified == []


def test_listener_savepoint_rollback_discards_its_changes(school: School) -> None:
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
    assert school.take_descriptions() == [["update Course:1 title", "update Course:2 title"]]


def test_listener_failed_flush_is_discarded_and_next_is_recorded(school: School) -> None:
    school.listen()
    with school.sessions() as session:
        session.add(Chapter(id=1, title="there is one already"))
        with pytest.raises(Exception, match="UNIQUE"):
            session.flush()
        session.rollback()
        session.add(Chapter(id=9, title="there is none"))
        session.commit()
    assert school.take_descriptions() == [["insert Chapter:9"]]


def test_listener_equal_value_is_no_change(school: School) -> None:
    school.listen()
    with school.sessions.begin() as session:
        course = session.get_one(Course, 1)
        session.expire(course)
        course.title = "Basics"
        course.lecturer_id = 1
    assert school.notified == []


def test_listener_computed_values_are_read_from_database(school: School) -> None:
    school.listen()
    with school.sessions.begin() as session:
        session.get_one(Course, 1).title = Course.title + "!"
    [[change]] = school.notified
    assert (change.before, change.after) == ({"title": "Basics"}, {"title": "Basics!"})


def test_listener_delete_includes_chapters_but_no_unlinks(school: School) -> None:
    school.listen()
    with school.sessions.begin() as session:
        session.execute(text("DELETE FROM attends"))
        session.delete(session.get_one(Course, 1))
    [changes] = school.notified
    assert school.take_descriptions() == [["delete Chapter:1", "delete Chapter:2", "delete Course:1"]]
    by_object = {str(each.change.object): each for each in changes}
    assert by_object["Course:1"].before == {"title": "Basics", "gives": 1}
    assert {str(one) for one in by_object["Chapter:1"].propagation.reached} == {"Chapter:1", "Course:1"}


def move_by_reference(session: Session) -> str:
    chapter, course = session.get_one(Chapter, 1), session.get_one(Course, 1)
    chapter.course = session.get_one(Course, 2)
    session.delete(course)
    return "link Course:2 belongsTo Chapter:1"


def move_by_collection(session: Session) -> str:
    script, course = session.scalars(select(Script)).one(), session.get_one(Course, 1)
    script.used_in = [session.get_one(Course, 2)]
    session.delete(course)
    return f"link Course:2 used_in Script:{script.id.hex}"


@pytest.mark.parametrize("move", [move_by_reference, move_by_collection])
def test_listener_object_moved_from_deleted_course_is_linked_to_new_one(
    school: School, move: Callable[[Session], str]
) -> None:
    """The unlink from the deleted course is implied by its deletion."""
    school.listen()
    with school.sessions.begin() as session:
        session.execute(text("DELETE FROM attends"))
        with session.no_autoflush:
            expected = move(session)
    [changes] = school.take_descriptions()
    assert expected in changes and "delete Course:1" in changes
    assert not [each for each in changes if each.startswith("unlink")]


def test_listener_orphan_is_deleted_with_reason_by_its_course(school: School) -> None:
    """SQLAlchemy detects orphans only during the flush."""
    school.listen()
    with school.sessions.begin() as session:
        course = session.get_one(Course, 1)
        course.chapters.remove(course.chapters[0])
    [[change]] = school.notified
    assert _describe(change) == "delete Chapter:1"
    assert describe_reasons(change) == {"Person:3": ["Chapter:1 -belongsTo-> Course:1 <-attends- Person:3"]}


def test_listener_deleted_lecturer_updates_courses_not_loaded(school: School) -> None:
    school.listen()
    with school.sessions.begin() as session:
        session.delete(session.get_one(Lecturer, 1))
    assert school.take_descriptions() == [["delete Lecturer:1", "update Course:1 gives"]]


def change_relationship(session: Session) -> None:
    session.get_one(Chapter, 1).course = session.get_one(Course, 2)


def change_column(session: Session) -> None:
    session.get_one(Chapter, 1).course_id = 2


def change_collection(session: Session) -> None:
    seminar = session.get_one(Course, 2)
    seminar.chapters.append(session.get_one(Chapter, 1))


@pytest.mark.parametrize("move", [change_relationship, change_column, change_collection])
def test_listener_moved_chapter_changes_both_courses(school: School, move: Callable[[Session], None]) -> None:
    """The course that it leaves, as it was before, and the one that it joins."""
    school.listen(watches=[Watch(Object("Student", 3), "Seminar")])
    with school.sessions.begin() as session:
        move(session)
    [changes] = school.notified
    assert [(each.cls, describe_reasons(each)) for each in sorted(changes, key=_describe)] == [
        ("Seminar", {"Person:3": ["Course:2 (Person:3 watches Seminar)"]}),
        ("Course", {"Person:3": ["Course:1 <-attends- Person:3"]}),
    ]
    assert school.take_descriptions() == [
        ["link Course:2 belongsTo Chapter:1", "unlink Course:1 belongsTo Chapter:1"]
    ]


def test_listener_cyclic_references_by_post_update_are_recorded() -> None:
    """`post_update` writes the rows first, and then the references in separate statements."""

    class Ring(DeclarativeBase):
        pass

    class Node(Ring):
        __tablename__ = "node"
        id = mapped_column(Integer, primary_key=True)
        next_id = mapped_column(ForeignKey("node.id"))
        next = relationship("Node", remote_side=[id], post_update=True, info=propagates())

    engine, changes = in_memory(), list[ObjectChange]()
    Ring.metadata.create_all(engine)
    with Session(engine) as session:
        first, second = Node(id=1), Node(id=2)
        session.add_all([first, second])
        session.commit()
        notice(session, Ring, report=changes.extend)
        first.next, second.next = second, first
        session.commit()
    assert sorted(map(_describe, changes)) == ["link Node:1 next Node:2", "link Node:2 next Node:1"]
    assert all({str(first) for first in each.propagation.reached} == {"Node:1", "Node:2"} for each in changes)


def test_listener_insert_has_only_links_of_its_row(school: School) -> None:
    """As triggers see it: the row of a script, then the rows of its links."""
    school.listen()
    with school.sessions.begin() as session:
        course = session.get_one(Course, 1)
        session.add(Script(id=UUID(int=2), title="New", used_in=[course]))
        session.add(Chapter(id=3, title="Graphs", course=course))
    [changes] = school.notified
    reached = {_describe(each): {str(one) for one in each.propagation.reached} for each in changes}
    new = f"Script:{UUID(int=2).hex}"
    assert reached == {
        "insert Chapter:3": {"Chapter:3", "Course:1"},
        f"insert {new}": {new},
        f"link Course:1 used_in {new}": {"Course:1"},
    }


def test_listener_link_made_from_either_end_is_notified_once(school: School) -> None:
    school.listen()
    with school.sessions.begin() as session:
        script, seminar = session.get_one(Script, school.script), session.get_one(Course, 2)
        seminar.scripts.append(script)
        script.used_in.remove(session.get_one(Course, 1))
    key = f"used_in Script:{school.script.hex}"
    assert school.take_descriptions() == [[f"link Course:2 {key}", f"unlink Course:1 {key}"]]


def test_listener_replacement_with_same_key_is_update(school: School) -> None:
    """SQLAlchemy writes an UPDATE in this case."""
    school.listen()
    with school.sessions.begin() as session:
        session.delete(session.get_one(Chapter, 2))
        session.add(Chapter(id=2, title="Tries", course_id=1))
    assert school.take_descriptions() == [["update Chapter:2 title"]]


@pytest.mark.parametrize(
    "run",
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
def test_listener_bulk_statement_is_rejected_unless_ignored(
    school: School, run: Callable[[Session], object]
) -> None:
    listener = school.listen()
    with school.sessions() as session:
        session.get_one(Lecturer, 1).name = "somebody"
        session.flush()  # ends here, and an empty flush changes nothing
        session.flush()
        with pytest.raises(
            InputError, match=r"without the session's instances.*triggers capture such statements"
        ):
            run(session)
    listener.stop()
    school.listen(bulk="ignore")
    with school.sessions() as session:
        run(session)
        session.get_one(Lecturer, 1).name = "Ada L."
        session.commit()
    assert school.take_descriptions() == [["update Lecturer:1 name"]]


def test_listener_statement_on_unmarked_table_is_accepted(school: School) -> None:
    """Attendance of a course is no change of it."""
    school.listen()
    with school.sessions.begin() as session:
        session.execute(insert(attends), [{"student_id": 3, "course_id": 2}])
        assert session.scalars(select(Course.title)).all() == ["Basics", "Logic"]
    assert school.notified == []


def test_listener_failed_notification_is_committed_and_kept(school: School) -> None:
    def fail(changes: list[ObjectChange]) -> None:
        raise ConnectionError("nobody there")

    callbacks: list[Callable[[list[ObjectChange]], object]] = [fail, school.notified.append]
    listener = school.listen(report=lambda changes: callbacks[0](changes))
    with school.sessions() as session:
        course = session.get_one(Course, 1)
        course.title = "More"
        with pytest.raises(
            NotificationFailed, match=r"committed, but could not be reported.*nobody there"
        ) as caught:
            session.commit()
        assert isinstance(caught.value.__cause__, ConnectionError)
        assert course.title == "More"
        session.rollback()
        assert course.title == "More"
    assert caught.value.noticed == listener.unreported != ()
    with pytest.raises(NotificationFailed):
        listener.report_again()
    callbacks.pop(0)
    listener.report_again()
    assert school.notified == [list(caught.value.noticed)] and listener.unreported == ()
    listener.report_again()
    assert len(school.notified) == 1


def test_listener_failed_notification_in_block_raises_only_its_error(school: School) -> None:
    school.listen(report=lambda noticed: 1 / 0)
    with pytest.raises(NotificationFailed), school.sessions.begin() as session:
        session.get_one(Course, 1).title = "More"
    with school.sessions() as session:
        assert session.get_one(Course, 1).title == "More"


def test_listener_author_comes_from_session_info(school: School) -> None:
    school.listen()
    with school.sessions(info={"tidings_author": ("Student", 3)}) as session:
        session.get_one(Course, 1).title = "More"
        session.commit()
        session.info["tidings_author"] = ("Studnet", 3)
        session.get_one(Course, 1).title = "Less"
        with pytest.raises(InputError, match="not an author"):
            session.flush()
    assert [each.author for [each] in school.notified] == [Object("Person", "3")]


def test_listener_watches_function_gets_reached_objects(school: School) -> None:
    requested: list[set[str]] = []

    def watches(connection: Connection, objects: frozenset[Object]) -> Iterator[Watch]:
        requested.append(set(map(str, objects)))
        for (id,) in connection.execute(select(Student.id)):
            yield Watch(Object("Student", id), "Course", 1)

    school.listen(watches=watches)
    with school.sessions.begin() as session:
        session.get_one(Chapter, 1).title = "Queues"
    assert requested == [{"Chapter:1", "Course:1"}]
    assert (
        "Chapter:1 -belongsTo-> Course:1 (Person:3 watches it)"
        in describe_reasons(school.notified[0][0])["Person:3"]
    )


@pytest.mark.parametrize(
    ("watch", "problem"),
    [
        (Watch(Object("Student", 3), "Cuorse", 1), "no such class.*did you mean 'Course'"),
        (Watch(Object("Course", 1), "Course", 1), "cannot be notified; received Course; accepted: Student"),
    ],
)
def test_listener_watch_of_unknown_class_is_rejected(school: School, watch: Watch, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        school.listen(watches=[watch])
    school.listen(watches=lambda connection, objects: [watch])
    with school.sessions() as session:
        session.get_one(Course, 1).title = "More"
        with pytest.raises(InputError, match=problem):
            session.commit()


def test_listener_reached_limit_is_recorded(school: School) -> None:
    school.listen(limits=Limits(steps=0, subscribers=1))
    with school.sessions.begin() as session:
        session.get_one(Chapter, 1).title = "Queues"
        session.get_one(Course, 1).title = "More"
    cuts = {_describe(each): each.propagation.truncations for each in school.notified[0]}
    assert cuts == {
        "update Chapter:1 title": {Truncation("steps", 0, 1)},
        "update Course:1 title": frozenset(),
    }


def test_listener_many_changes_run_as_many_queries_as_one(school: School) -> None:
    school.listen()
    with school.sessions.begin() as session:
        session.add_all(Chapter(id=number, title="x", course_id=1) for number in range(10, 40))

    def count_selects(keys: range) -> int:
        with school.sessions() as session:
            chapters = [session.get_one(Chapter, key) for key in keys]
            for chapter in chapters:
                chapter.title += "y"
            with recorded_statements(school.engine) as statements:
                session.commit()
            return len([each for each in statements if each.startswith("SELECT")])

    assert count_selects(range(10, 11)) == count_selects(range(11, 40)) > 0


class recorded_statements:
    """Records the statements of an engine within a block."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.statements = engine, list[str]()

    def __enter__(self) -> list[str]:
        event.listen(self.engine, "before_cursor_execute", self._record)
        return self.statements

    def __exit__(self, *_: object) -> None:
        event.remove(self.engine, "before_cursor_execute", self._record)

    def _record(self, connection: Any, cursor: Any, statement: str, *more: Any) -> None:
        self.statements.append(statement)


def test_listener_stop_ends_notifications(school: School) -> None:
    listener = school.listen()
    with school.sessions.begin() as session:
        session.get_one(Course, 1).title = "More"
        session.flush()
        listener.stop()
        session.execute(update(Course).values(title="x"))
    listener.stop()
    with school.sessions.begin() as session:
        session.get_one(Course, 1).title = "Less"
    assert school.notified == []


def test_listener_attaches_to_session_with_open_transaction(school: School) -> None:
    with school.sessions() as session:
        course = session.get_one(Course, 1)
        notice(session, Base, report=school.notified.append)
        with pytest.raises(InputError):
            session.execute(update(Course).values(title="x"))
        course.title = "More"
        session.commit()
    with school.sessions.begin() as session:
        session.get_one(Course, 1).title = "by a session without listener"
    assert school.take_descriptions() == [["update Course:1 title"]]


def session_class(sessions: Sessions) -> Any:
    return sessions.class_


@pytest.mark.parametrize("kind", [scoped_session, session_class])
def test_listener_accepts_scoped_session_and_session_class(
    school: School, kind: Callable[[Sessions], Any]
) -> None:
    listener = notice(kind(school.sessions), Base, report=school.notified.append)
    for title in ("More", "Most"):
        with school.sessions.begin() as session:
            session.get_one(Course, 1).title = title
        listener.stop()
    assert school.take_descriptions() == [["update Course:1 title"]]


def test_listener_on_external_connection_ends_with_session(school: School) -> None:
    """Sessions come and go on it, as in tests that roll back at their end."""
    with school.engine.connect() as connection, connection.begin() as outer:
        for title in ("More", "Most"):
            with Session(connection, join_transaction_mode="create_savepoint") as session:
                notice(session, Base, report=school.notified.append)
                session.get_one(Course, 1).title = title
                session.commit()
        connection.execute(update(Course.__table__).values(title="seen by nobody"))
        outer.rollback()
    assert school.take_descriptions() == [["update Course:1 title"], ["update Course:1 title"]]


def test_listener_notifies_store_with_labels(school: School, tmp_path: Path) -> None:
    with Tidings(tmp_path / "home") as tidings:
        with pytest.raises(InputError, match="source"):
            school.listen(report=tidings)
        school.listen(
            report=tidings, source="school", watches=[Watch(Object("Student", "nobody"), "Chapter")]
        )
        with school.sessions.begin() as session:
            session.delete(session.get_one(Chapter, 1))
        [notification] = tidings.notifications("Person:3")
    assert (notification.subscription, notification.publication, notification.kind) == (
        "school",
        "Chapter:1",
        "deleted",
    )
    assert [each.predicate for each in notification.because] == ["Lists -belongsTo-> Basics <-attends- you"]


def test_listener_invalid_target_or_option_is_rejected(school: School) -> None:
    with pytest.raises(InputError, match="'sessions' has the wrong type; received Engine"):
        notice(school.engine, Base, report=print)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="refuse, ignore"):
        school.listen(bulk="allow")
