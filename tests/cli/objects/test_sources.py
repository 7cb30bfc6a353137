"""`objects`, `watch`, `unwatch`, `watches` and `model notify`: from a change in a database to a notification."""

from __future__ import annotations

import json
import signal
import sqlite3
from pathlib import Path

import pytest

from tests.objects.histories import create_tables
from tests.objects.sources import TITLE, happens, university_in
from tests.objects.university import PUML
from tests.support.processes.command_line import Tidings, start
from tests.support.servers.api_server import served_api
from tidings.objects.notices import Notice
from tidings.objects.outbox.database import open_database
from tidings.objects.readers.plantuml_reader import read_plantuml
from tidings.objects.sql.object_store import ObjectSource
from tidings.objects.triggers.generator import generate_schema
from tidings.service.tidings import Tidings as Service

NEW = "#1  university  LearningMaterial:2  Second edition updated (title)  "


@pytest.fixture
def university(tidings: Tidings, tmp_path: Path) -> ObjectSource:
    """A registered database, in which two students watch objects already."""
    source = university_in(tmp_path)
    result = tidings("objects", "add", "university", "--model", PUML, "--database", "sqlite:///university.db")
    assert result.output == "university  4 classes, 3 associations: attends implicit, usedIn propagates.\n"
    return source


def test_model_tell_notifies_affected_watchers(tidings: Tidings, university: ObjectSource) -> None:
    happens(university, TITLE)
    assert tidings("model", "notify").output == "university  1 change  3 notifications\n"
    assert tidings("model", "notify").output == "university  0 changes  0 notifications\n"
    path = "Second edition -usedIn-> "
    assert (
        tidings("notifications", "--as", "Student:3").output == f"{NEW}{path}DataStructures <-attends- you\n"
    )
    assert (
        tidings("notifications", "--as", "Student:1").output
        == f"{NEW}{path}ProgrammingBasics (you watch it)\n"
    )
    two = json.loads(tidings("notifications", "--as", "Student:2", "--json").stdout)
    assert (two["subscription"], two["publication"], two["kind"]) == (
        "university",
        "LearningMaterial:2",
        "updated",
    )
    assert len(two["because"]) == 3 and two["bindings"]["before"] == {"title": "Script2"}


def test_notifications_empty_output_states_reason(tidings: Tidings, university: ObjectSource) -> None:
    happens(university, TITLE)
    before = "nothing for Student:3 yet; no reported change concerns this subscriber: tidings model notify\n"
    assert tidings("notifications", "--as", "Student:3").stderr == before
    tidings("model", "notify")
    after = tidings("notifications", "--as", "Student:3", "--after", "1")
    assert (after.stdout, after.stderr) == ("", "nothing new for Student:3; the last number is 1\n")


def test_watch_and_tell_unregistered_model_and_database(tidings: Tidings, tmp_path: Path) -> None:
    source = university_in(tmp_path)
    options = ["--model", PUML, "--database", source.database]
    assert tidings("watch", "--as", "Student:3", "Lecturer", *options).exit_code == 0
    happens(source, "INSERT INTO lecturer VALUES (1, 'Ada', '4711')")
    tell = tidings("model", "notify", PUML, "--from", source.database, "--json")
    assert json.loads(tell.stdout) == {
        "event": "drained",
        "source": "university",
        "changes": 1,
        "new": 1,
        "repeated": 0,
        "dead": 0,
        "published": 0,
    }
    happens(source, "UPDATE lecturer SET phone = NULL")
    assert tidings("model", "notify", PUML, "--from", source.database, "--source", "uni").exit_code == 0
    assert tidings("notifications", "--as", "Student:3").output == (
        "#1  university  Lecturer:1  Ada inserted  Ada (you watch Lecturer)\n"
        "#2  uni  Lecturer:1  Ada updated (phone)  Ada (you watch Lecturer)\n"
    )


def test_notifications_line_shows_link_author_and_limits(tidings: Tidings) -> None:
    changed = {
        "object": "Course:1",
        "label": "Trees\n",
        "attributes": [],
        "association": "usedIn",
        "other_label": "Script3",
        "author": "Student:2",
        "author_label": "Bo",
        "limits": ["followed for 3 steps only: 5 more lead on"],
    }
    with Service(".tidings") as service:
        notice = Notice(
            "o-1", "Student:1", "Course:1", "linked", (("Trees\n (you watch it)", "Course:1"),), changed
        )
        service.store.object_notifications.add("university", [notice])
    assert tidings("notifications", "--as", "Student:1").output == (
        "#1  university  Course:1  Trees\\n linked (usedIn Script3) by Bo  Trees\\n (you watch it)  "
        "(followed for 3 steps only: 5 more lead on)\n"
    )


def test_watch_list_and_unwatch(tidings: Tidings, university: ObjectSource) -> None:
    watch = ["--as", "Student:S3", "Course:DataStructures", "Lecturer"]
    lines = [
        "Student:3  S3  watches  Course:2  DataStructures",
        "Student:3  S3  watches  Lecturer  all of them",
    ]
    assert tidings("watch", *watch).output.splitlines() == lines
    assert tidings("watch", *watch).output.splitlines() == [f"{line}  already" for line in lines]
    [one, two] = map(json.loads, tidings("watches", "--as", "Student:3", "--json").stdout.splitlines())
    assert one == {
        "subscriber": "Student:3",
        "subscriber_label": "S3",
        "class": "Course",
        "object": "Course:2",
        "label": "DataStructures",
    }
    assert (two["class"], two["object"]) == ("Lecturer", None)
    assert len(tidings("watches").stdout.splitlines()) == 1 + 4
    removed = tidings("unwatch", "--as", "Student:3", "Course:DataStructures")
    assert removed.stdout == "Student:3  S3  no longer watches  Course:2  DataStructures\n"
    repeated = tidings("unwatch", "--as", "Student:3", "Course:2")
    assert (repeated.exit_code, repeated.stderr) == (
        3,
        "Student:3  S3  did not watch  Course:2  DataStructures\n",
    )


def test_unwatch_by_key_after_object_is_deleted(tidings: Tidings, university: ObjectSource) -> None:
    happens(
        university, "DELETE FROM attends", "DELETE FROM used_in", "DELETE FROM course", "DELETE FROM student"
    )
    assert tidings("watches", "--as", "Student:1").stdout.splitlines()[1].split() == [
        "Student:1",
        "Student:1",
        "Course:1",
        "Course:1",
    ]
    assert tidings("unwatch", "--as", "Student:1", "Course:1").exit_code == 0
    assert "Student:1" not in tidings("watches").stdout


REFUSED = [
    (["watch", "--as", "Student", "Course"], "not a subscriber; received Student"),
    (["watch", "--as", "Student:1", "Course:"], "not a class or an object"),
    (["watch", "--as", "Student:1", "Curse"], "no such class can be watched; received Curse"),
    (["watch", "--as", "Student:1", "Course:Data"], "there is no such Course; received Data"),
    (["watch", "--as", "Course:1", "Course"], "objects of this class cannot be notified"),
    (["watch", "--as", "Student:1", "Course", "--source", "none"], "no such source; received none"),
    (["watch", "--as", "Student:1", "Course", "--model", PUML], "the database is not clear"),
    (["model", "notify", PUML], "a model and a database belong together"),
    (["model", "notify", PUML, "--from", "mysql://a:secret@b/c"], "not a supported database URL"),
    (["model", "notify", PUML, "--from", "postgresql://localhost"], "the URL has no database name"),
    (
        ["objects", "add", "x", "--model", "none.puml", "--database", "sqlite:///university.db"],
        "none.puml",
    ),
    (["objects", "add", "x", "--model", PUML, "--database", "sqlite:///none.db"], "cannot be opened"),
    (["objects", "add", "", "--model", PUML, "--database", "sqlite:///university.db"], "1 to 500"),
]


def test_objects_commands_invalid_input_is_rejected(tidings: Tidings, university: ObjectSource) -> None:
    for words, problem in REFUSED:
        result = tidings(*words)
        assert result.exit_code == 2 and problem in result.stderr, words
        assert "secret" not in result.stderr


def test_objects_add_url_with_password_is_rejected(tidings: Tidings) -> None:
    for url in ("postgresql://a:secret@b/c", "postgresql://b/c?user=a&password=secret"):
        result = tidings("objects", "add", "university", "--model", PUML, "--database", url)
        assert (
            result.exit_code == 2 and "without a password" in result.stderr and "PGPASSWORD" in result.stderr
        )
        assert "secret" not in result.stderr
    assert tidings("objects", "list", "--json").stdout == ""


def test_objects_list_and_remove(tidings: Tidings, university: ObjectSource) -> None:
    record = {"name": "university", "model": PUML, "database": university.database}
    assert json.loads(tidings("objects", "list", "--json").stdout) == record
    tidings("objects", "add", "other", "--model", PUML, "--database", university.database)
    ambiguous = tidings("watch", "--as", "Student:1", "Course")
    assert ambiguous.exit_code == 2 and "several databases are registered (--source)" in ambiguous.stderr
    assert tidings("objects", "remove", "other").stdout == "other  removed\n"
    assert tidings("objects", "remove", "other").exit_code == 3
    tidings("objects", "remove", "university")
    assert "tidings objects add" in tidings("model", "notify").stderr


def test_model_tell_unreachable_database_does_not_block_others(
    tidings: Tidings, university: ObjectSource, tmp_path: Path
) -> None:
    with Service(".tidings") as service:
        service.store.object_sources.add(ObjectSource("away", PUML, f"sqlite:///{tmp_path}/none.db"))
    happens(university, TITLE)
    result = tidings("model", "notify")
    assert (result.exit_code, result.stdout) == (2, "university  1 change  3 notifications\n")
    assert "cannot be opened" in result.stderr


def test_model_tell_follow_ends_on_sigint(tidings: Tidings, university: ObjectSource, tmp_path: Path) -> None:
    happens(university, TITLE)
    running = start("model", "notify", "--follow", "--json", cwd=tmp_path)
    assert running.stdout is not None
    assert json.loads(running.stdout.readline())["new"] == 3
    happens(university, "UPDATE course SET room = 'B1' WHERE id = 2")
    assert json.loads(running.stdout.readline())["new"] == 2
    running.send_signal(signal.SIGINT)
    assert running.wait(60) == 130
    assert running.communicate()[1] == ""


SCHOOL = """
class Person <<subscriber>> {
  name
}
class Student
class Course {
  title
}
Person <|-- Student
"""


@pytest.fixture
def school(tidings: Tidings, tmp_path: Path) -> ObjectSource:
    """A database in which student 1 is person 1, and is notified as that person."""
    (tmp_path / "school.puml").write_text(f"@startuml\n{SCHOOL}@enduml\n")
    placed = read_plantuml(SCHOOL)
    database = f"sqlite:///{tmp_path}/school.db"
    sqlite3.connect(tmp_path / "school.db").close()
    with open_database(database) as site:
        pieces = [piece.sql for piece in generate_schema(placed, site.dialect)]
        rows = ["INSERT INTO person VALUES (1, 'S1')", "INSERT INTO student VALUES (1)"]
        rows.append("INSERT INTO course VALUES (1, 'Trees')")
        site.run([*create_tables(placed, "INTEGER"), *pieces, *rows])
    added = tidings("objects", "add", "school", "--model", "school.puml", "--database", database)
    assert added.exit_code == 0, added.output
    return ObjectSource("school", "school.puml", database)


def test_notifications_accept_any_class_and_label_of_subscriber(
    tidings: Tidings, school: ObjectSource
) -> None:
    assert tidings("watch", "--as", "Student:S1", "Course:Trees").stdout.startswith("Person:1  S1  watches")
    happens(school, "UPDATE course SET title = 'Graphs' WHERE id = 1")
    assert tidings("model", "notify").exit_code == 0
    [line] = tidings("notifications", "--as", "Person:1").stdout.splitlines()
    for name in ("Student:1", "Student:S1", "Person:S1"):
        listed = tidings("notifications", "--as", name)
        assert (listed.stdout.splitlines(), listed.stderr) == ([line], f"{name} is notified as Person:1\n")
        assert tidings("notifications", "--as", name, "--json").stderr == ""
    assert tidings("feeds", "--as", "Student:S1").stdout == tidings("feeds", "--as", "Person:1").stdout != ""
    assert "nothing for Student:9 yet" in tidings("notifications", "--as", "Student:9").stderr


def test_notifications_unreachable_database_is_reported(
    tidings: Tidings, university: ObjectSource, tmp_path: Path
) -> None:
    (tmp_path / "university.db").rename(tmp_path / "elsewhere.db")
    message = tidings("notifications", "--as", "Student:S1").stderr
    assert (
        "Student:S1 cannot be looked up in university" in message and "nothing for Student:S1 yet" in message
    )


ANY_NAME = ("Student:1", "Student:S1", "Person:S1")


def test_token_audience_quiet_and_destination_use_notified_name_of_object(
    tidings: Tidings, school: ObjectSource
) -> None:
    for name in ANY_NAME:
        token = tidings("token", "make", f"for {name}", "--as", name, "--json")
        assert json.loads(token.stdout)["subscriber"] == "Person:1", token.output
        granted = tidings("audience", "grant", "board", "--as", name, "--json")
        assert json.loads(granted.stdout)["subscriber"] == "Person:1"
        hours = tidings("quiet", "--as", name, "22:00-07:00", "--zone", "Europe/Berlin")
        assert hours.stdout.startswith("Person:1  quiet from 22:00")
        assert hours.stderr == f"{name} is notified as Person:1\n"
    target = ("webhook", "https://example.org/hooks", "--as", "Student:S1")
    assert json.loads(tidings("destination", "add", *target, "--json").stdout)["subscriber"] == "Person:1"
    assert len(tidings("destination", "list", "--as", "Student:1", "--json").stdout.splitlines()) == 1
    assert json.loads(tidings("quiet", "--as", "Student:1", "--json").stdout)["from"] == "22:00"
    assert len(tidings("audience", "list", "--as", "Student:1", "--json").stdout.splitlines()) == 1
    tidings("audience", "revoke", "board", "--as", "Student:1")
    assert tidings("audience", "list", "--json").stdout == ""


def test_subscribe_uses_notified_name_of_object(
    tidings: Tidings, school: ObjectSource, tmp_path: Path
) -> None:
    lines = [{"text": f"price < {number}", "subscriber": name} for number, name in enumerate(ANY_NAME)]
    lines.append({"text": "price < 9", "subscriber": "Student:9"})
    (tmp_path / "subs.jsonl").write_text("\n".join(map(json.dumps, lines)))
    result = tidings("subscribe", "--file", "subs.jsonl")
    assert (result.exit_code, result.stdout) == (3, "3 subscriptions made, 1 refused\n")
    assert "objects of Student are notified as Person:KEY" in result.stderr
    assert tidings("subscribe", "--as", "Student:1", "price < 10").exit_code == 0
    listed = [
        json.loads(line)
        for line in tidings("subscriptions", "--as", "Student:1", "--json").stdout.splitlines()
    ]
    assert [one["subscriber"] for one in listed] == ["Person:1"] * 4


def test_token_for_unknown_object_is_rejected_with_notified_class(
    tidings: Tidings, school: ObjectSource
) -> None:
    result = tidings("token", "make", "later", "--as", "Student:9")
    assert result.exit_code == 2 and "objects of Student are notified as Person:KEY" in result.stderr
    assert tidings("token", "make", "later", "--as", "Person:9").exit_code == 0
    assert tidings("token", "make", "other", "--as", "team:sales").exit_code == 0, "no class of the model"
    assert len(tidings("token", "list", "--json").stdout.splitlines()) == 2


def test_token_with_unreachable_database_is_rejected(
    tidings: Tidings, school: ObjectSource, tmp_path: Path
) -> None:
    (tmp_path / "school.db").rename(tmp_path / "elsewhere.db")
    result = tidings("token", "make", "phone", "--as", "Student:1")
    assert result.exit_code == 2 and "Student:1 cannot be looked up in school" in result.stderr
    assert tidings("token", "make", "phone", "--as", "ana").exit_code == 0


def test_http_administrator_may_use_any_name_of_object(
    tidings: Tidings, school: ObjectSource, tmp_path: Path
) -> None:
    with Service(tmp_path / ".tidings") as home:
        sources = [ObjectSource("school", str(tmp_path / "school.puml"), school.database)]
        assert home.store.object_sources.load() == sources, "the home of the command line"
        with served_api(home) as service:
            root = service.root
            for name in ANY_NAME:
                owner = {"subscriber": name}
                created = root.post("/v1/subscriptions", json={"text": "price < 3", **owner})
                assert created.json()["subscriber"] == "Person:1", created.text
                line = json.dumps({"text": "price < 4", **owner})
                headers = {"Content-Type": "application/x-ndjson"}
                [outcome] = root.post("/v1/subscriptions", content=line, headers=headers).json()["outcomes"]
                stored = root.get(f"/v1/subscriptions/{outcome['id']}").json()
                assert stored["subscriber"] == "Person:1"
            page = root.get("/v1/subscriptions", params={"subscriber": "Student:S1"}).json()
            assert len(page["subscriptions"]) == 6
            refused = root.post("/v1/subscriptions", json={"text": "a = 1", "subscriber": "Student:9"}).json()
            assert (refused["status"], refused["pointer"]) == (404, "/subscriber")
            assert refused["hint"] == "objects of Student are notified as Person:KEY"
