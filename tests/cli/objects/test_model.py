"""`model check`, `model show` and `model diagram`."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from lxml import etree

from tests.support.processes.command_line import EXAMPLES, Tidings
from tidings.core.drawing.svg import render_svg
from tidings.errors import InputError, NotFound
from tidings.objects.model.class_model import Association, End, Model, ModelClass, PropagatesMark
from tidings.objects.model.model_picture import MAX_CLASSES, build_model_picture
from tidings.objects.readers.plantuml_reader import read_plantuml

UNIVERSITY = EXAMPLES / "university"
DOCS = EXAMPLES.parent / "docs"
SOURCES = ("university.puml", "university.xmi", "university.py:Base")
BROKEN = "class A\nclass B\nA -- B : ab <<implicit>>\nA -- C : ac\n"


@pytest.mark.parametrize("source", SOURCES)
def test_model_check_summarizes_model(tidings: Tidings, source: str) -> None:
    result = tidings("model", "check", f"{UNIVERSITY}/{source}")
    assert result.output == "4 classes, 3 associations: attends implicit, usedIn propagates.\n"
    payload = json.loads(tidings("model", "check", f"{UNIVERSITY}/{source}", "--json").stdout)
    assert payload == {
        "classes": 4,
        "associations": 3,
        "subscribers": ["Student"],
        "implicit": ["attends"],
        "propagates": ["usedIn"],
    }


def test_model_check_without_marks_states_so(tidings: Tidings) -> None:
    Path("a.puml").write_text("class A")
    assert tidings("model", "check", "a.puml").output == "1 class, 0 associations, none of them marked.\n"


def test_model_check_reports_all_problems_at_once(tidings: Tidings) -> None:
    Path("a.puml").write_text(BROKEN)
    result = tidings("model", "check", "a.puml")
    assert result.exit_code == 2
    assert result.stderr == (
        "error: a.puml: 2 problems\n"
        "  ab is implicit, and neither A nor B is a subscriber (line 3, column 15); accepted: an end whose class or "
        "ancestor class is a subscriber\n"
        "    A -- B : ab <<implicit>>\n"
        "                  ^^^^^^^^   mark A or B as subscriber\n"
        "  no such class (line 4, column 6); received C; accepted: A, B\n"
        "    A -- C : ac\n"
        "         ^\n"
    )
    payload = json.loads(tidings("model", "show", "a.puml", "--json").stderr)
    assert (payload["error"], payload["what"]) == ("ModelError", "a.puml: 2 problems")
    assert [each["place"] for each in payload["problems"]] == [
        {"line": 3, "column": 15, "length": 8},
        {"line": 4, "column": 6, "length": 1},
    ]


def test_model_check_finds_program_by_module_name(tidings: Tidings) -> None:
    shutil.copy(UNIVERSITY / "university.py", "campus_of_the_test.py")
    assert tidings("model", "check", "campus_of_the_test:Base").output.startswith("4 classes")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("nowhere.puml", "no file 'nowhere.puml'"),
        ("readme.txt", "'readme.txt' has no known suffix of a model"),
        ("program.py", "program.py:Base reads the classes in it"),
        ("nowhere.py:Base", "no file 'nowhere.py'"),
        ("no.such.module:Base", "'no.such.module' cannot be imported; received ModuleNotFoundError"),
        ("program.py:Base", "'program.py' cannot be imported; received ZeroDivisionError: division by zero"),
        ("empty.py:Base", "'empty.py:Base' has no such name; received Base"),
        ("empty.py:Bass", "did you mean 'Bases'?"),
        ("empty.py:Bases", "not a declarative base (the model); received ()"),
        ("latin.puml", "latin.puml is not UTF-8 (byte 6)"),
        ("broken.xmi", "broken.xmi: not well-formed XML"),
        ("long.uml", "long.uml: the text is too long"),
    ],
)
def test_model_check_invalid_source_is_rejected(tidings: Tidings, source: str, expected: str) -> None:
    Path("readme.txt").write_text("class A")
    Path("program.py").write_text("1 / 0")
    Path("empty.py").write_text("Bases = ()")
    Path("latin.puml").write_bytes("class Hörer".encode("latin-1")[:6] + b"\xff")
    Path("broken.xmi").write_text("<a>")
    Path("long.uml").write_text("class A\n" * 200_000)
    result = tidings("model", "check", source)
    assert result.exit_code == 2 and expected in result.stderr


def test_model_check_uml_suffix_is_xmi_or_plantuml(tidings: Tidings) -> None:
    shutil.copy(UNIVERSITY / "university.xmi", "one.uml")
    shutil.copy(UNIVERSITY / "university.puml", "two.uml")
    assert tidings("model", "check", "one.uml").output == tidings("model", "check", "two.uml").output


def test_model_show_prints_classes_and_associations(tidings: Tidings) -> None:
    result = tidings("model", "show", f"{UNIVERSITY}/university.puml")
    rows = [re.split(r"\s{2,}", row.strip()) for row in result.stdout.splitlines() if row.strip()]
    assert ["Student", "subscriber", "name: string", "student"] in rows
    assert [
        "usedIn",
        "LearningMaterial * → * Course",
        "a change of LearningMaterial is also a change of Course",
        "used_in (learning_material_id, course_id)",
    ] in rows
    records = [
        json.loads(row)
        for row in tidings("model", "show", f"{UNIVERSITY}/university.puml", "--json").stdout.splitlines()
    ]
    assert [each.get("class") or each["association"] for each in records] == [
        *("Student", "Lecturer", "Course", "LearningMaterial"),
        *("attends", "gives", "usedIn"),
    ]
    assert records[4]["implicit"] == {"told": "source", "attributes": None, "kinds": None}
    assert (records[5]["table"], records[5]["column"], records[5]["owner"]) == (
        "course",
        "lecturer_id",
        "target",
    )


def test_model_diagram_equals_picture_of_docs(tidings: Tidings) -> None:
    result = tidings("model", "diagram", f"{UNIVERSITY}/university.puml", "--out", "university.svg")
    assert result.stderr.startswith("university.svg: 4 classes, 3 associations: 1 implicit, 1 propagating.")
    assert Path("university.svg").read_text() == (DOCS / "img/university.svg").read_text()


def test_model_diagram_prints_svg_and_rejects_invalid_options(tidings: Tidings) -> None:
    result = tidings("model", "diagram", f"{UNIVERSITY}/university.puml", "--class", "Lecturer")
    shown = etree.fromstring(result.stdout.encode())
    assert shown.tag == "{http://www.w3.org/2000/svg}svg"
    names = [each.text for each in shown.iterfind(".//{*}text[@class='name']")]
    assert names == ["Lecturer", "Course"]
    for words in (("--out", "x.png"), ("--out", "no/folder/x.svg"), ("--class", "Nobody")):
        assert tidings("model", "diagram", f"{UNIVERSITY}/university.puml", *words).exit_code == 2


def test_model_picture_layers_follow_changes() -> None:
    model = read_plantuml((UNIVERSITY / "university.puml").read_text()).model
    picture = build_model_picture(model)
    assert {box.key: box.layer for box in picture.boxes} == {
        "Student": 2,
        "Lecturer": 0,
        "Course": 1,
        "LearningMaterial": 0,
    }
    assert {(each.source, each.target, each.kind, each.head) for each in picture.edges} == {
        ("LearningMaterial", "Course", "propagates", "end"),
        ("Course", "Student", "implicit", "end"),
        ("Lecturer", "Course", "plain", ""),
    }
    assert "Student is notified about Course" in picture.description


def test_model_picture_draws_cycles_loops_and_subclasses() -> None:
    text = """class A <<subscriber>>
class B extends A
class C
A --> C : one <<propagates>>
C "1" --> "*" A : two <<propagates>>
C -- C : three <<propagates>>"""
    picture = build_model_picture(read_plantuml(text).model)
    edges = {each.label: each for each in picture.edges}
    assert set(edges) == {"one «propagates»", "two «propagates»", "is a"}
    reversed_edge = edges["two «propagates»"]
    assert (reversed_edge.source, reversed_edge.target, reversed_edge.head) == ("A", "C", "start")
    assert (reversed_edge.beside_source, reversed_edge.beside_target) == ("*", "1")
    boxes = {box.key: box for box in picture.boxes}
    assert "↻ three «propagates»" in boxes["C"].text
    assert (boxes["B"].kind, boxes["B"].count, boxes["A"].count) == ("subscriber", "", "«subscriber»")
    etree.fromstring(render_svg(picture).encode())


def test_model_picture_of_large_model_is_partial_or_rejected() -> None:
    classes = {f"C{i}": ModelClass(f"C{i}") for i in range(MAX_CLASSES + 1)}
    association = Association("to", "C0", "C1", propagates=PropagatesMark(End.TARGET))
    picture = build_model_picture(Model(classes, (association,)))
    assert [box.key for box in picture.boxes] == ["C0", "C1"]
    assert f"{MAX_CLASSES - 1} more are not drawn." in picture.notes
    associations = tuple(
        Association(f"to {i}", "C0", name, propagates=PropagatesMark(End.TARGET))
        for i, name in enumerate(classes)
    )
    with pytest.raises(InputError, match="too many classes for one picture; received 61 classes"):
        build_model_picture(Model(classes, associations))
    assert len(build_model_picture(Model(classes, associations), ["C7"]).boxes) == 2
    with pytest.raises(NotFound, match="no such class"):
        build_model_picture(Model(classes), ["C"])


def test_model_help_has_examples(tidings: Tidings) -> None:
    for command in ("check", "show", "diagram"):
        assert f"tidings model {command} university." in tidings("model", command, "--help").output
    assert "propagates" in tidings("model", "check", "--help").output
    assert "PlantUML" in tidings("model", "--help").output
