"""The commands that need Spark: run as a process of its own, match, model changes, demo, doctor."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import feedparser
import httpx
import pyarrow.parquet as parquet
import pytest

from tests.objects.sources import TITLE, happens, university_in
from tests.objects.university import PUML
from tests.support.processes.command_line import EXAMPLES, Tidings, listens_at, start, start_anew
from tests.support.processes.terminal import Terminal
from tests.support.servers.site import Response, a_site, rss

pytestmark = pytest.mark.spark
TABLE = '{"event_type":["antiques","furniture"],"price":180,"quantity":2,"period":"XVI","furniture_category":"table"}'
DEMO = ("demo", "--events", "6", "--master", "local[2]")
CHEAP = '{"event_type":"furniture","price":20,"quantity":1,"furniture_category":"bed"}'


@pytest.fixture
def stream(furniture: Tidings, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """`tidings run` in a second terminal, in a process group as a shell makes it, from the moment that it reads."""
    running = start_anew("run", "--master", "local[2]", cwd=tmp_path, process_group=0)
    assert running.stderr
    said = running.stderr.readline()
    assert said.startswith("stream"), said + running.stderr.read()
    yield running
    running.kill()
    running.communicate()


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 0), pytest.param(signal.SIGINT, 130, marks=pytest.mark.long)]
)
def test_run_notifies_within_moments_and_ends_on_a_signal_to_its_group(
    furniture: Tidings, stream: subprocess.Popen[str], tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """The tour's first scene: subscribe, publish, be told; then subscribe again while the stream runs.

    Ctrl-C and `timeout` signal the process group: with the JVM in it, its end would come before that of the batch.
    """
    subscription = furniture(
        "subscribe", "--as", "ana", "furniture_category is a 'dining room' and price < 200", "--json"
    )
    first = json.loads(subscription.stdout)["id"]
    publication = furniture("publish", TABLE).stdout.split()[0]
    follower = start("notifications", "--as", "ana", "--follow", cwd=tmp_path)
    assert follower.stdout
    told = follower.stdout.readline()
    assert told == (
        f"#1  {first}  {publication}  furniture_category 'table' is a 'dining room'; price 180 < 200\n"
    )
    furniture("subscribe", "--as", "ana", "price < 50", "--id", "cheap")
    furniture("publish", CHEAP, "--id", "bed")
    assert follower.stdout.readline() == "#2  cheap  bed  price 20 < 50\n"
    follower.send_signal(signal.SIGINT)
    assert follower.communicate()[1] == "" and follower.returncode == 130
    _pages(furniture)
    os.killpg(stream.pid, number)
    printed, complained = stream.communicate()
    assert stream.returncode == code, complained
    assert printed.splitlines()[-1] == "2 publications, 2 notifications"
    assert complained == ""


def _pages(furniture: Tidings) -> None:
    """Whoever has seen number 1 continues behind it."""
    page = furniture("notifications", "--as", "ana", "--after", "1", "--limit", "1", "--json")
    [notification] = [json.loads(line) for line in page.stdout.splitlines()]
    assert (notification["sequence"], notification["publication"]) == (2, "bed")
    assert notification["because"] == [{"predicate": "price < 50", "value": 20, "at": "/price"}]
    nothing = furniture("notifications", "--as", "bo")
    assert nothing.stdout == "" and "no subscriptions for that name" in nothing.stderr


def test_a_feed_comes_in_and_a_feed_goes_out(tidings: Tidings, terminal: Terminal, tmp_path: Path) -> None:
    """The tour's scene of feeds: a local site is read, the stream notifies, and a feed reader follows."""
    with a_site() as site:
        site.pages["/rss.xml"] = Response(200, rss("of cats", "of dogs"))
        query = "SELECT ?page WHERE (?page, rss:title, ?title) AND ?title contains 'cats'"
        assert tidings("subscribe", "--as", "cy", "--language", "gql", query).exit_code == 0
        assert "2 items: 2 new" in tidings("feed", "add", site.url()).stdout
    assert terminal.call(tmp_path, "run", "--once", "--master", "local[2]").exit_code == 0
    assert "?page = http://example.org/item/0" in tidings("notifications", "--as", "cy").stdout
    with start("serve", "--port", "0", "--only", "api", cwd=tmp_path) as serving:
        address = listens_at(serving)
        listed = tidings("feeds", "--as", "cy", "--public-url", address, "--json").stdout.splitlines()
        feed = feedparser.parse(httpx.get(json.loads(listed[0])["address"], trust_env=False).content)
        serving.terminate()
    assert [(entry.title, entry.link) for entry in feed.entries] == [("of cats", "http://example.org/item/0")]


def test_a_row_of_a_database_is_what_somebody_subscribed_to(
    tidings: Tidings, terminal: Terminal, tmp_path: Path
) -> None:
    """What changed is published, and goes the way of all events."""
    kept = university_in(tmp_path)
    asked = "class = 'LearningMaterial' and changed = 'title' and now.title contains 'edition'"
    assert tidings("subscribe", "--as", "ana", asked, "--id", "s-1").exit_code == 0
    happens(kept, "UPDATE course SET title = 'No edition' WHERE id = 1", TITLE)
    told = tidings("model", "tell", PUML, "--from", kept.database, "--publish")
    assert told.stdout == "university  2 changes  5 notifications  2 events\n"
    assert terminal.call(tmp_path, "run", "--once", "--master", "local[2]").exit_code == 0
    [line] = tidings("notifications", "--as", "ana").stdout.splitlines()
    assert line.startswith("#1  s-1  c-") and "class 'LearningMaterial' = 'LearningMaterial'" in line


def test_match_is_a_job_with_a_summary(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    (tmp_path / "events/a.jsonl").write_text('{"id": "x", "price": 1}\n{"id": "y", "price": 9}\nnonsense\n')
    subscriptions = [
        {"id": "s1", "subscriber": "ana", "language": "predicates", "text": "price < 5"},
        {"id": "s2", "subscriber": "bo", "language": "predicates", "text": "price <"},
    ]
    (tmp_path / "subs.jsonl").write_text("\n".join(json.dumps(one) for one in subscriptions))
    words = ("match", "--subscriptions", "subs.jsonl", "--publications", "events", "--out", "out.parquet")
    done = terminal.call(tmp_path, *words, "--rejects", "bad.jsonl", "--master", "local[2]")
    assert done.exit_code == 3, done.stderr
    assert re.fullmatch(
        r"publications █+ 3   1 match   2 rejects \(1 subscription, 1 publication\)\n", done.stdout
    )
    assert "1 subscription -> 1 segment in" in done.stderr and "bad.jsonl" in done.stderr
    assert parquet.read_table(tmp_path / "out.parquet").to_pylist() == [
        {"publication": "x", "subscription": "s1"}
    ]
    rejects = [json.loads(line) for line in (tmp_path / "bad.jsonl").read_text().splitlines()]
    assert [(one["what"], one["id"]) for one in rejects] == [
        ("subscription", "s2"),
        ("publication", "a.jsonl:3"),
    ]
    again = terminal.call(tmp_path, *words)
    assert again.exit_code == 2 and "--force" in again.stderr


@pytest.fixture
def changes(tmp_path: Path) -> tuple[str, ...]:
    """The words that read the university's log."""
    shutil.copytree(EXAMPLES / "university" / "log", tmp_path / "log")
    model = str(EXAMPLES / "university" / "university.puml")
    return "model", "changes", model, "--from", "log", "--master", "local[2]"


@pytest.mark.long  # docs/objects.md has the same log, without the broken file
def test_changes_in_a_log_are_told(
    tidings: Tidings, terminal: Terminal, tmp_path: Path, changes: tuple[str, ...]
) -> None:
    (tmp_path / "log" / "later.jsonl").write_text("{")
    done = terminal.call(tmp_path, *changes, "--tell", "--source", "university")
    assert (done.exit_code, done.stdout) == (3, "2 changes of objects: 4 notifications\n"), done.output
    assert "refused: later.jsonl:1: expected a key" in done.stderr
    first, second = tidings("notifications", "--as", "Student:3").stdout.splitlines()
    assert "Script2, second edition -usedIn-> DataStructures <-attends- you" in first and "unlinked" in second


@pytest.mark.long
def test_changes_in_a_log_are_written(terminal: Terminal, tmp_path: Path, changes: tuple[str, ...]) -> None:
    done = terminal.call(tmp_path, *changes, "--out", "told.parquet", "--most-steps", "0")
    assert (done.exit_code, done.stdout) == (0, "2 changes of objects: 2 notifications\n"), done.output
    told = parquet.read_table(tmp_path / "told.parquet").to_pylist()
    assert {row["subscriber"]: [why["reason"] for why in row["because"]] for row in told} == {
        "Student:1": ["DataStructures <-attends- you"],
        "Student:3": ["DataStructures <-attends- you"],
    }


def test_demo_ends_by_itself_and_leaves_nothing(terminal: Terminal, tmp_path: Path) -> None:
    demo = terminal.call(tmp_path, *DEMO)
    assert demo.exit_code == 0, demo.stderr
    _demo_is_whole(demo.stdout, demo.stderr, tmp_path)


@pytest.mark.long
def test_demo_as_a_process(tmp_path: Path) -> None:
    with start_anew(*DEMO, cwd=tmp_path) as demo:
        printed, complained = demo.communicate()
    assert demo.returncode == 0, complained
    _demo_is_whole(printed, complained, tmp_path)


def _demo_is_whole(printed: str, complained: str, folder: Path) -> None:
    assert complained == ""
    assert "did you mean 'price'?" in printed
    assert "refused: furniture_category is mandatory for furniture (rule R2)" in printed
    counts = re.search(r"^(\d+) notifications: (.*)$", printed, re.MULTILINE)
    assert counts and int(counts[1]) > 3
    assert "1 for ed, 1 for fy" in counts[2], "a lot of the catalogue, an item of the feed"
    assert printed.rstrip().endswith("docs/getting-started.md goes on from here")
    assert list(folder.iterdir()) == []


def test_doctor_finds_this_machine_well(terminal: Terminal, tmp_path: Path) -> None:
    done = terminal.call(tmp_path, "doctor", "--json", "--master", "local[2]")
    findings = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.exit_code == 0, findings
    assert [one["check"] for one in findings] == [
        "python",
        "home",
        "store",
        "kernels",
        "java",
        "classes",
        "spark",
    ]


def test_doctor_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    (tmp_path / "file").write_text("")
    with start_anew("doctor", "--home", "file/below", cwd=tmp_path) as doctor:
        printed, _ = doctor.communicate()
    assert doctor.returncode == 4
    wrong = [line.split()[1] for line in printed.splitlines() if line.startswith("wrong")]
    assert wrong == ["home", "java", "classes", "spark"]
    assert "choose another with --home" in printed


def test_examples_are_a_runnable_job() -> None:
    """The files the docs speak of fit each other."""
    subscriptions = [json.loads(line) for line in (EXAMPLES / "subscriptions.jsonl").open()]
    assert {one["language"] for one in subscriptions} == {"predicates"}
    assert all(json.loads(line)["event_type"] for line in (EXAMPLES / "auctions.jsonl").open())


def test_a_rule_is_evaluated_on_spark(tidings: Tidings, terminal: Terminal, tmp_path: Path) -> None:
    metadata = EXAMPLES / "metadata"
    tidings("provider", "schema", str(metadata / "schema.ttl"))
    tidings("provider", "register", "http://example.org/doc.rdf", str(metadata / "host.rdf"))
    rule = "search CycleProvider c register c where c.serverInformation.memory > 64"
    words = ("provider", "rule", "large", rule, "--as", "ana", "--spark", "--master", "local[2]")
    done = terminal.call(tmp_path, *words)
    assert done.stdout == "large  entered  http://example.org/doc.rdf#host\nlarge  1 resource\n", done.stderr
    assert done.stderr == "on Spark: 2 new triggering rules over 2 resources\n"
