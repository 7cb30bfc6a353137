"""Current values of objects, on both databases: all rows of an object, as JSON."""

from __future__ import annotations

import json

from tests.objects.databases import Database
from tidings.objects.readers.plantuml_reader import read_plantuml

MAPPED = read_plantuml("""
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


def test_values_returns_all_columns_of_object(database: Database) -> None:
    kind, value = BYTES[database.dialect.name]
    for sql in (
        f'CREATE TABLE course (id INTEGER PRIMARY KEY, title TEXT, "course points" INTEGER, plan {kind})',
        "CREATE TABLE seminar (id INTEGER PRIMARY KEY REFERENCES course (id), topic TEXT)",
    ):
        database.run(sql)
    database.install(MAPPED)
    database.run(f"INSERT INTO course VALUES (1, 'Trees', 5, {value}), (2, 'It''s', NULL, NULL)")
    database.run("INSERT INTO seminar VALUES (2, 'graphs')")
    site = database.site
    values = site.values(MAPPED, "Course", ["1", "3"])
    plan = json.loads(json.dumps(values))["1"].pop("plan")
    assert plan.lower().lstrip("\\x") == "ff00"
    assert {**values["1"], "plan": None} == {"title": "Trees", "points": 5, "plan": None} and len(values) == 1
    seminar = {"title": "It's", "points": None, "plan": None, "topic": "graphs"}
    assert site.values(MAPPED, "Seminar", ["2"]) == {"2": seminar}
    assert site.values(MAPPED, "Leaflet", ["2"]) == {}
