"""A program of the university. It does not know triggers, subscribers or Tidings.

    python examples/university/changes.py sqlite:///university.db begin
    python examples/university/changes.py sqlite:///university.db change

It also accepts postgresql://user@host/database. `tour.py` shows who is notified.
"""

from __future__ import annotations

import sys

from sqlalchemy import create_engine, inspect
from sqlalchemy.orm import Session
from university import Base, Course, LearningMaterial, Lecturer, Student


def begin(session: Session) -> None:
    """Create three students, two courses and two scripts: figure 2 of the paper."""
    if inspect(session.connection()).has_table("course"):
        sys.exit("this database already contains a university: delete it, or use another database")
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
    """Change the title of a script."""
    script = session.query(LearningMaterial).filter_by(title="Script2").one()
    script.title = "Script2, second edition"


def run(url: str, action: str) -> None:
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with Session(engine) as session, session.begin():
        {"begin": begin, "change": change}[action](session)
    engine.dispose()


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[2] not in ("begin", "change"):
        sys.exit(__doc__)
    run(*sys.argv[1:])
