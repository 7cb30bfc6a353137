"""All of it, one command after the other: the model, its picture, its triggers, watches, a change, and who is told.

    python examples/university/tour.py                                        # in SQLite, in a new file here
    python examples/university/tour.py postgresql://user@localhost/university # in an empty database of PostgreSQL

A password of PostgreSQL comes from PGPASSWORD or ~/.pgpass: Tidings keeps the address, and no passwords.
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
    """A command as one would type it, and what it prints."""
    say(f"$ tidings {shlex.join(words)}")
    app(list(words), standalone_mode=False)


def say(line: str) -> None:
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
    say("(somebody updates a script in the application)")
    run(url, "change")
    tidings("model", "tell")
    for who in STUDENTS:
        tidings("notifications", "--as", who)


if __name__ == "__main__":
    tour(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///university.db")
