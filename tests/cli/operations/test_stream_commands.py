"""The commands that need Spark: run as a process of its own, match, model changes, demo and doctor."""

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
import pyarrow
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
    """`tidings run` in a process group of its own, as a shell starts it, once it reads publications."""
    ui = ("--conf", "spark.ui.enabled=true", "--conf", "spark.ui.port=0")
    running = start_anew("run", "--master", "local[2]", *ui, cwd=tmp_path, process_group=0)
    assert running.stderr
    line = running.stderr.readline()
    assert line.startswith("stream"), line + running.stderr.read()
    label, address = running.stderr.readline().split()
    assert label == "spark" and "Spark" in httpx.get(address, trust_env=False, follow_redirects=True).text
    yield running
    running.kill()
    running.communicate()


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 0), pytest.param(signal.SIGINT, 130, marks=pytest.mark.long)]
)
def test_run_notifies_live_and_ends_on_signal_to_process_group(
    furniture: Tidings, stream: subprocess.Popen[str], tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """The first scene of the tour: subscribe, publish, be notified; then subscribe again while the stream runs.

    Ctrl-C and `timeout` signal the process group: if the JVM were in it, it would end before the batch.
    """
    subscription = furniture(
        "subscribe", "--as", "ana", "furniture_category is a 'dining room' and price < 200", "--json"
    )
    first = json.loads(subscription.stdout)["id"]
    publication = furniture("publish", TABLE).stdout.split()[0]
    follower = start("notifications", "--as", "ana", "--follow", cwd=tmp_path)
    assert follower.stdout
    line = follower.stdout.readline()
    assert line == (
        f"#1  {first}  {publication}  furniture_category 'table' is a 'dining room'; price 180 < 200\n"
    )
    furniture("subscribe", "--as", "ana", "price < 50", "--id", "cheap")
    furniture("publish", CHEAP, "--id", "bed")
    assert follower.stdout.readline() == "#2  cheap  bed  price 20 < 50\n"
    follower.send_signal(signal.SIGINT)
    assert follower.communicate()[1] == "" and follower.returncode == 130
    _check_pages(furniture)
    os.killpg(stream.pid, number)
    output, errors = stream.communicate()
    assert stream.returncode == code, errors
    assert output.splitlines()[-1] == "2 publications, 2 notifications"
    assert errors == ""


def _check_pages(furniture: Tidings) -> None:
    """Check that a client continues behind number 1."""
    page = furniture("notifications", "--as", "ana", "--after", "1", "--limit", "1", "--json")
    [notification] = [json.loads(line) for line in page.stdout.splitlines()]
    assert (notification["sequence"], notification["publication"]) == (2, "bed")
    assert notification["because"] == [{"predicate": "price < 50", "value": 20, "at": "/price"}]
    empty = furniture("notifications", "--as", "bo")
    assert empty.stdout == "" and "no subscriptions for that name" in empty.stderr


def test_run_matches_polled_feed_and_serves_result_as_feed(
    tidings: Tidings, terminal: Terminal, tmp_path: Path
) -> None:
    """The scene of the tour about feeds: a local site is polled, the stream notifies, and a feed reader follows."""
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


def test_model_tell_publish_matches_changed_row(tidings: Tidings, terminal: Terminal, tmp_path: Path) -> None:
    """Changes are published as events."""
    source = university_in(tmp_path)
    text = "class = 'LearningMaterial' and changed = 'title' and now.title contains 'edition'"
    assert tidings("subscribe", "--as", "ana", text, "--id", "s-1").exit_code == 0
    happens(source, "UPDATE course SET title = 'No edition' WHERE id = 1", TITLE)
    summary = tidings("model", "notify", PUML, "--from", source.database, "--publish")
    assert summary.stdout == "university  2 changes  5 notifications  2 events\n"
    assert terminal.call(tmp_path, "run", "--once", "--master", "local[2]").exit_code == 0
    [line] = tidings("notifications", "--as", "ana").stdout.splitlines()
    assert line.startswith("#1  s-1  c-") and "class 'LearningMaterial' = 'LearningMaterial'" in line


def test_run_source_to_sink_matches_subscriptions_of_store(
    tidings: Tidings, terminal: Terminal, tmp_path: Path
) -> None:
    tidings("subscribe", "--as", "ana", "price < 5", "--id", "cheap")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "orders.csv").write_text("order_id,price,region\no1,3,north\no2,30,south\n")
    words = ("run", "--source", "in", "--id", "order_id", "--once", "--master", "local[2]")
    done = terminal.call(
        tmp_path, *words, "--sink", "out", "--out-format", "json", "--explain", "--keep", "region"
    )
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "2 publications, 1 match"), done.output
    [file] = (tmp_path / "out").glob("part-*.json")
    [row] = map(json.loads, file.read_text().splitlines())
    assert (row["publication"], row["subscriber"], row["region"]) == ("o1", "ana", "north")
    assert row["explanation"][0]["predicate"] == "price < 5"
    ingested = terminal.call(tmp_path, *words)
    assert ingested.stdout.splitlines()[-1] == "2 publications offered to the journal", ingested.output
    assert terminal.call(tmp_path, "run", "--once", "--master", "local[2]").exit_code == 0
    assert "o1" in tidings("notifications", "--as", "ana").stdout


def test_match_writes_matches_rejects_and_summary(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    (tmp_path / "events/a.jsonl").write_text('{"id": "x", "price": 1}\n{"id": "y", "price": 9}\nnonsense\n')
    subscriptions = [
        {"id": "s1", "subscriber": "ana", "language": "predicates", "text": "price < 5"},
        {"id": "s2", "subscriber": "bo", "language": "predicates", "text": "price <"},
    ]
    (tmp_path / "subs.jsonl").write_text("\n".join(json.dumps(one) for one in subscriptions))
    words = ("match", "--subscriptions", "subs.jsonl", "--publications", "events", "--out", "out.parquet")
    result = terminal.call(tmp_path, *words, "--rejects", "bad.jsonl", "--master", "local[2]")
    assert result.exit_code == 3, result.stderr
    assert re.fullmatch(
        r"publications █+ 3   1 match   2 rejects \(1 subscription, 1 publication\)\n", result.stdout
    )
    assert "1 subscription -> 1 segment in" in result.stderr and "bad.jsonl" in result.stderr
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


def test_match_parquet_and_csv_writes_explained_json(terminal: Terminal, tmp_path: Path) -> None:
    orders = {"order_id": ["o1", "o2", "o3"], "price": [3, 30, 4], "region": ["north", "south", None]}
    parquet.write_table(pyarrow.table(orders), tmp_path / "orders.parquet")
    (tmp_path / "subs.csv").write_text("id,subscriber,text\ncheap,ana,price < 5\n")
    words = ("--subscriptions", "subs.csv", "--publications", "orders.parquet", "--id", "order_id")
    more = ("--explain", "--keep", "region", "--out", "matches", "--out-format", "json", "--json")
    result = terminal.call(tmp_path, "match", *words, *more, "--master", "local[2]")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["matches"] == 2
    lines = [line for path in (tmp_path / "matches").glob("*.json") for line in path.read_text().splitlines()]
    matches = {match["publication"]: match for match in map(json.loads, lines)}
    assert set(matches) == {"o1", "o3"} and matches["o1"]["region"] == "north"
    assert matches["o1"]["explanation"][0]["predicate"] == "price < 5"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--engine", "relational"), "--engine does not apply to tables"),
        (("--option", "header"), "--option needs a key and a value"),
        (("--publications", "nowhere.parquet"), "there is no such file or folder"),
        (("--out", "orders.parquet", "--force"), "the result and its input would be in the same place"),
    ],
)
def test_match_tables_invalid_options_are_rejected_before_spark_starts(
    tidings: Tidings, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    parquet.write_table(pyarrow.table({"price": [3]}), tmp_path / "orders.parquet")
    (tmp_path / "subs.jsonl").write_text("")
    options = ("--subscriptions", "subs.jsonl", "--publications", "orders.parquet", "--out", "matches")
    result = tidings("match", *options, *words)
    assert result.exit_code == 2 and message in result.stderr


@pytest.fixture
def changes(tmp_path: Path) -> tuple[str, ...]:
    """The arguments that read the log of the university."""
    shutil.copytree(EXAMPLES / "university" / "log", tmp_path / "log")
    model = str(EXAMPLES / "university" / "university.puml")
    return "model", "changes", model, "--from", "log", "--master", "local[2]"


@pytest.mark.long  # docs/objects.md has the same log, without the broken file
def test_model_changes_tell_notifies_of_log(
    tidings: Tidings, terminal: Terminal, tmp_path: Path, changes: tuple[str, ...]
) -> None:
    (tmp_path / "log" / "later.jsonl").write_text("{")
    result = terminal.call(tmp_path, *changes, "--notify", "--source", "university")
    assert (result.exit_code, result.stdout) == (3, "2 changes of objects: 4 notifications\n"), result.output
    assert "refused: later.jsonl:1: expected a key" in result.stderr
    first, second = tidings("notifications", "--as", "Student:3").stdout.splitlines()
    assert "Script2, second edition -usedIn-> DataStructures <-attends- you" in first and "unlinked" in second


@pytest.mark.long
def test_model_changes_out_writes_notifications_of_log(
    terminal: Terminal, tmp_path: Path, changes: tuple[str, ...]
) -> None:
    result = terminal.call(tmp_path, *changes, "--out", "told.parquet", "--max-steps", "0")
    assert (result.exit_code, result.stdout) == (0, "2 changes of objects: 2 notifications\n"), result.output
    rows = parquet.read_table(tmp_path / "told.parquet").to_pylist()
    assert {row["subscriber"]: [why["reason"] for why in row["because"]] for row in rows} == {
        "Student:1": ["DataStructures <-attends- you"],
        "Student:3": ["DataStructures <-attends- you"],
    }


def test_demo_ends_and_leaves_no_files(terminal: Terminal, tmp_path: Path) -> None:
    demo = terminal.call(tmp_path, *DEMO)
    assert demo.exit_code == 0, demo.stderr
    _check_demo(demo.stdout, demo.stderr, tmp_path)


@pytest.mark.long
def test_demo_as_process_ends_and_leaves_no_files(tmp_path: Path) -> None:
    with start_anew(*DEMO, cwd=tmp_path) as demo:
        output, errors = demo.communicate()
    assert demo.returncode == 0, errors
    _check_demo(output, errors, tmp_path)


def _check_demo(output: str, errors: str, folder: Path) -> None:
    assert errors == ""
    assert "did you mean 'price'?" in output
    assert "refused: furniture_category is mandatory for furniture (rule R2)" in output
    counts = re.search(r"^(\d+) notifications: (.*)$", output, re.MULTILINE)
    assert counts and int(counts[1]) > 3
    assert "1 for ed, 1 for fy" in counts[2], "a lot of the catalogue, an item of the feed"
    assert output.rstrip().endswith("docs/getting-started.md goes on from here")
    assert list(folder.iterdir()) == []


def test_doctor_on_working_machine_finds_no_problem(terminal: Terminal, tmp_path: Path) -> None:
    result = terminal.call(tmp_path, "doctor", "--json", "--master", "local[2]")
    findings = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 0, findings
    assert [one["check"] for one in findings] == [
        "python",
        "home",
        "store",
        "kernels",
        "java",
        "classes",
        "spark",
    ]


def test_doctor_with_problems_states_remedies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    (tmp_path / "file").write_text("")
    with start_anew("doctor", "--home", "file/below", cwd=tmp_path) as doctor:
        output, _ = doctor.communicate()
    assert doctor.returncode == 4
    wrong = [line.split()[1] for line in output.splitlines() if line.startswith("wrong")]
    assert wrong == ["home", "java", "classes", "spark"]
    assert "choose another with --home" in output


def test_example_files_fit_each_other() -> None:
    """The example files of the docs."""
    subscriptions = [json.loads(line) for line in (EXAMPLES / "subscriptions.jsonl").open()]
    assert {one["language"] for one in subscriptions} == {"predicates"}
    assert all(json.loads(line)["event_type"] for line in (EXAMPLES / "auctions.jsonl").open())


def test_provider_rule_is_evaluated_on_spark(tidings: Tidings, terminal: Terminal, tmp_path: Path) -> None:
    metadata = EXAMPLES / "metadata"
    tidings("provider", "schema", str(metadata / "schema.ttl"))
    tidings("provider", "register", "http://example.org/doc.rdf", str(metadata / "host.rdf"))
    rule = "search CycleProvider c register c where c.serverInformation.memory > 64"
    words = ("provider", "rule", "large", rule, "--as", "ana", "--spark", "--master", "local[2]")
    result = terminal.call(tmp_path, *words)
    assert result.stdout == "large  entered  http://example.org/doc.rdf#host\nlarge  1 resource\n", (
        result.stderr
    )
    assert result.stderr == "on Spark: 2 new triggering rules over 2 resources\n"
