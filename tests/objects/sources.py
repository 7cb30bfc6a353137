"""The university of the paper at its own address, for tests that open it themselves."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from tests.objects.histories import create_tables
from tests.objects.university import MAPPED, PUML, UNIVERSITY
from tidings.objects.outbox.database import ObjectDatabase, open_database
from tidings.objects.sql.object_store import ObjectSource
from tidings.objects.triggers.generator import generate_schema

TITLE = "UPDATE learning_material SET title = 'Second edition' WHERE id = 2"


def university_at(url: str) -> ObjectSource:
    """Create the university at an address; a database in PostgreSQL exists already."""
    if url.startswith("sqlite"):
        sqlite3.connect(url.removeprefix("sqlite:///")).close()
    with open_database(url) as site:
        pieces = [piece.sql for piece in generate_schema(MAPPED, site.dialect)]
        site.run([*create_tables(MAPPED, "INTEGER"), *pieces, *UNIVERSITY.strip().split("\n")])
    return ObjectSource("university", PUML, url)


def university_in(folder: Path) -> ObjectSource:
    return university_at(f"sqlite:///{folder}/university.db")


def happens(source: ObjectSource, *statements: str) -> None:
    """Run statements in one transaction."""
    with open_database(source.database) as site:
        site.run(statements)


def count_outbox(site: ObjectDatabase) -> int:
    return site.count("tidings_changes")
