"""The university's program as a listener on its own sessions: no triggers, and no tables of Tidings.

python examples/university/listening.py                                        # in SQLite, in a new file here
python examples/university/listening.py postgresql://user@localhost/university # in an empty database of PostgreSQL
"""

from __future__ import annotations

import sys

from changes import begin, change
from sqlalchemy import create_engine
from sqlalchemy.orm import sessionmaker
from university import Base

from tidings import Object, Watch, notice
from tidings.objects.notices import ObjectChange
from tidings.objects.propagation import find_reasons

WATCHES = (Watch(Object("Student", 1), "Course", 1), Watch(Object("Student", 2), "Course"))
"""S1 watches ProgrammingBasics, S2 watches all courses."""


def print_changes(changes: list[ObjectChange]) -> None:
    """Print the changes of a commit, with their subscribers and reasons."""
    for object_change in changes:
        change, propagation = object_change.change, object_change.propagation
        print_words(change.kind.value, str(change.object), *sorted(change.attributes))
        reasons = find_reasons(change.object, propagation.steps, propagation.hits)
        for subscriber in sorted(reasons, key=str):
            for reason in reasons[subscriber]:
                print_words(f"  {subscriber}:", reason.render())


def print_words(*words: str) -> None:
    sys.stdout.write(" ".join(words) + "\n")


if __name__ == "__main__":
    url = sys.argv[1] if len(sys.argv) > 1 else "sqlite:///listened.db"
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    sessions = sessionmaker(engine)
    with sessions.begin() as session:
        begin(session)
    notice(sessions, Base, report=print_changes, watches=WATCHES)
    with sessions.begin() as session:
        change(session)
