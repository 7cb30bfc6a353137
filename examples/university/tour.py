"""All steps, one command after the other: model, picture, triggers, watches, a change, and its notifications.

    python examples/university/tour.py                                        # in SQLite, in a new file here
    python examples/university/tour.py postgresql://user@localhost/university # in an empty database of PostgreSQL

PostgreSQL reads the password from PGPASSWORD or ~/.pgpass: Tidings stores the URL, but no passwords.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from changes import run

from tidings.cli.main import app

MODEL = str(Path(__file__).with_name("university.puml"))
STUDENTS = ("Student:1", "Student:2", "Student:3")


def tidings(*words: str) -> None:
    """Print and run a command."""
    print_line(f"$ tidings {shlex.join(words)}")
    app(list(words), standalone_mode=False)


def print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def tour(url: str) -> None:
    run(url, "begin")
    tidings("model", "check", MODEL)
    tidings("model", "diagram", MODEL, "--out", "university.svg")
    tidings("model", "triggers", MODEL, "--dialect", url.partition(":")[0], "--out", "triggers.sql")
    tidings("model", "triggers", MODEL, "--install", url)
    tidings("objects", "add", "university", "--model", MODEL, "--database", url)
    tidings("watch", "--as", "Student:S1", "Course:ProgrammingBasics")
    tidings("watch", "--as", "Student:S2", "Course")
    print_line("(the application updates a script)")
    run(url, "change")
    tidings("model", "notify")
    for student in STUDENTS:
        tidings("notifications", "--as", student)


if __name__ == "__main__":
    tour(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///university.db")
