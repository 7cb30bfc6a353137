"""The university of the paper in a database, with the triggers of its model."""

from __future__ import annotations

from tests.objects.databases import Database
from tests.objects.histories import create_tables
from tests.support.paths import ROOT
from tidings.cli.objects.model import read_model

PUML = f"{ROOT}/examples/university/university.puml"
MAPPED = read_model(PUML)
UNIVERSITY = """
INSERT INTO student VALUES (1, 'S1'), (2, 'S2'), (3, 'S3');
INSERT INTO course VALUES (1, 'ProgrammingBasics', 'A1', NULL), (2, 'DataStructures', 'A2', NULL);
INSERT INTO learning_material VALUES (1, 'Script1'), (2, 'Script2');
INSERT INTO attends VALUES (2, 1), (3, 2);
INSERT INTO used_in VALUES (1, 1), (2, 1), (2, 2);
INSERT INTO tidings_watches VALUES ('Student', 1, 'Course', 1), ('Student', 2, 'Course', NULL);
DELETE FROM tidings_changes;
"""
"""Figure 2 of the paper, as its text describes it."""


def create_university(database: Database) -> Database:
    for sql in create_tables(MAPPED, "INTEGER"):
        database.run(sql)
    database.install(MAPPED)
    for sql in UNIVERSITY.strip().split("\n"):
        database.run(sql)
    return database
