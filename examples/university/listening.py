"""The program of the university tells itself whom its changes concern: no triggers, and no tables but its own.

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
"""S1 watches ProgrammingBasics, S2 all courses."""


def tell(noticed: list[ObjectChange]) -> None:
    """Called after a commit, with all that it changed."""
    for each in noticed:
        say(each.change.kind.value, str(each.change.object), *sorted(each.change.attributes))
        whys = find_reasons(each.change.object, each.propagation.steps, each.propagation.hits)
        for who in sorted(whys, key=str):
            for why in whys[who]:
                say(f"  {who}:", why.render())


def say(*words: str) -> None:
    sys.stdout.write(" ".join(words) + "\n")


if __name__ == "__main__":
    url = sys.argv[1] if len(sys.argv) > 1 else "sqlite:///listened.db"
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    sessions = sessionmaker(engine)
    with sessions.begin() as session:
        begin(session)
    notice(sessions, Base, tell=tell, watches=WATCHES)
    with sessions.begin() as session:
        change(session)
