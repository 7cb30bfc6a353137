"""What objects are like now, on both databases: values of all rows of an object, fit for JSON."""

from __future__ import annotations

import json

from tests.objects.databases import Database
from tidings.objects.readers.plantuml_reader import read_plantuml

PLACED = read_plantuml("""
class Course {
  title
  points {column = "course points"}
  plan
}
class Seminar {
  topic
}
Course <|-- Seminar
""")
BYTES = {"sqlite": ("BLOB", "x'ff00'"), "postgresql": ("bytea", "'\\xff00'")}


def test_values(database: Database) -> None:
    kind, value = BYTES[database.dialect.name]
    for sql in (
        f'CREATE TABLE course (id INTEGER PRIMARY KEY, title TEXT, "course points" INTEGER, plan {kind})',
        "CREATE TABLE seminar (id INTEGER PRIMARY KEY REFERENCES course (id), topic TEXT)",
    ):
        database.run(sql)
    database.install(PLACED)
    database.run(f"INSERT INTO course VALUES (1, 'Trees', 5, {value}), (2, 'It''s', NULL, NULL)")
    database.run("INSERT INTO seminar VALUES (2, 'graphs')")
    site = database.site
    found = site.values(PLACED, "Course", ["1", "3"])
    plan = json.loads(json.dumps(found))["1"].pop("plan")
    assert plan.lower().lstrip("\\x") == "ff00"
    assert {**found["1"], "plan": None} == {"title": "Trees", "points": 5, "plan": None} and len(found) == 1
    below = {"title": "It's", "points": None, "plan": None, "topic": "graphs"}
    assert site.values(PLACED, "Seminar", ["2"]) == {"2": below}
    assert site.values(PLACED, "Leaflet", ["2"]) == {}
