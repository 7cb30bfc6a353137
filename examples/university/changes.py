"""Something happens at the university, and its database says who should know.

    python examples/university/changes.py sqlite:///university.db begin
    tidings model triggers examples/university/university.puml --install sqlite:///university.db
    python examples/university/changes.py sqlite:///university.db change

With postgresql://user@host/database instead it is the same.
"""

from __future__ import annotations

import sys

from sqlalchemy import Connection, create_engine, text
from sqlalchemy.orm import Session
from university import Base, Course, LearningMaterial, Lecturer, Student

TOLD = """
SELECT s.name, c.title, h.how, h.by FROM tidings_hits h
JOIN student s ON h.subscriber_family = 'Student' AND CAST(s.id AS TEXT) = h.subscriber_key
JOIN course c ON h.family = 'Course' AND CAST(c.id AS TEXT) = h.key
WHERE h.change = (SELECT max(id) FROM tidings_changes)
ORDER BY s.name, c.title, h.how
"""


def begin(session: Session) -> None:
    """Three students, two courses, two scripts: figure 2 of the paper."""
    Base.metadata.create_all(session.connection())
    lecturer = Lecturer(name="Ada", phone="4711")
    basics = Course(title="ProgrammingBasics", room="A1", lecturer=lecturer)
    structures = Course(title="DataStructures", room="A2", lecturer=lecturer)
    session.add_all(
        [Student(name="S1"), Student(name="S2", attends=[basics]), Student(name="S3", attends=[structures])]
    )
    session.add(LearningMaterial(title="Script1", used_in=[basics]))
    session.add(LearningMaterial(title="Script2", used_in=[basics, structures]))


def change(session: Session) -> None:
    """S1 watches a course, S2 all of them; then a script gets a new title. Nobody here knows of triggers."""
    ids = {each.name: each.id for each in session.query(Student)}
    basics = session.query(Course).filter_by(title="ProgrammingBasics").one()
    watches = text("INSERT INTO tidings_watches VALUES ('Student', :who, 'Course', :what)")
    session.execute(watches, {"who": ids["S1"], "what": basics.id})
    session.execute(watches, {"who": ids["S2"], "what": None})
    script = session.query(LearningMaterial).filter_by(title="Script2").one()
    script.title = "Script2, second edition"
    session.flush()
    say_who_is_told(session.connection())


def say_who_is_told(connection: Connection) -> None:
    last = text("SELECT kind, class, CAST(attributes AS TEXT) FROM tidings_changes ORDER BY id DESC LIMIT 1")
    say(*connection.execute(last).one())
    for who, course, how, by in connection.execute(text(TOLD)):
        say(f"  {who} is told about {course}: {how} {by}".rstrip())


def say(*words: str) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")


if __name__ == "__main__":
    url, does = sys.argv[1:]
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with Session(engine) as session, session.begin():
        {"begin": begin, "change": change}[does](session)
