"""What commands that need Spark refuse before they start it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.support.processes.command_line import Tidings
from tidings.cli.operations import doctor
from tidings.errors import SetupError
from tidings.spark.session import check_address, open_session

MATCH = ("match", "--subscriptions", "subs.jsonl", "--publications", "e.jsonl")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--out", "foo://x"), "unsupported file address; received 'foo://x'"),
        (("--out", "hdfs://nowhere.invalid/x"), "the file address cannot be reached"),
        (("--out", "mock:///x"), "--segments"),
        (("--out", "x", "--rejects", "e.jsonl/r.jsonl"), "is not a folder"),
        (("--out", "x", "--publications", "foo://x"), "unsupported file address"),
        (("--out", "x", "--publications", "nowhere"), "--publications: no such file or folder"),
    ],
)
def test_match_refuses_places_that_cannot_be(tidings: Tidings, words: tuple[str, ...], said: str) -> None:
    Path("subs.jsonl").write_text("")
    Path("e.jsonl").write_text("{}")
    done = tidings(*MATCH, *words)
    assert done.exit_code == 2
    assert said in done.stderr
    assert not Path("x").exists()


def test_run_takes_an_id_field_with_a_folder_only(tidings: Tidings) -> None:
    done = tidings("run", "--once", "--id", "lot")
    assert done.exit_code == 2
    assert "--id is for events in a folder" in done.stderr and "--id-field" in done.stderr


def test_doctor_names_the_spark_that_would_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor.describe_spark_target(None) == "local[*]"
    monkeypatch.setenv("SPARK_REMOTE", "sc://cluster")
    assert doctor.describe_spark_target(None) == "sc://cluster"
    assert doctor.describe_spark_target("local[1]") == "local[1]"


def test_doctor_looks_at_the_store_of_the_home_folder(tidings: Tidings) -> None:
    tidings("publish", "{}", "--home", "a b")
    done = tidings("doctor", "--only", "store", "--home", "a b")
    assert (done.exit_code, done.stdout.split()) == (0, ["ok", "store", "journal", "at", "1"])


@pytest.mark.parametrize(
    "master", ["local[x]", "local[0]", "cluster:7077", "sc://", "sc://host:x", "sc:host", ""]
)
@pytest.mark.parametrize(
    "command", [(*MATCH, "--out", "x"), ("run", "--once"), ("demo",)], ids=lambda c: c[0]
)
def test_a_master_that_names_no_spark(tidings: Tidings, command: tuple[str, ...], master: str) -> None:
    done = tidings(*command, "--master", master)
    assert done.exit_code == 2
    assert f"this names no Spark; received '{master}'; accepted: local, local[N]" in done.stderr


def test_a_connect_server_that_does_not_answer() -> None:
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        remote = f"sc://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(SetupError, match="Spark Connect does not answer") as caught:
            open_session(remote=remote)
    assert caught.value.where == remote


@pytest.mark.parametrize(
    "master",
    [
        "local",
        "local[*]",
        "local[2]",
        "local[*, 3]",
        "local-cluster[2,1,1024]",
        "spark://a:7077,b:7077",
        "yarn",
    ],
)
def test_masters_that_name_a_spark(master: str) -> None:
    check_address(master)


def test_run_refuses_a_folder_that_is_not_there(tidings: Tidings) -> None:
    done = tidings("run", "--once", "--folder", "nope")
    assert done.exit_code == 2
    said = "error: there is no such folder (--folder); received 'nope'; create it first: mkdir -p nope\n"
    assert done.stderr == said
    Path("file").write_text("")
    assert "this is not a folder" in tidings("run", "--folder", "file").stderr


def test_doctor_tries_to_write_where_the_home_folder_would_be(tidings: Tidings) -> None:
    done = tidings("doctor", "--only", "home", "--home", "/proc/nope")
    assert done.exit_code == 4
    assert "/proc cannot be written to" in done.stdout
    assert tidings("doctor", "--only", "home").exit_code == 0
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("command", [("rejects",), ("notifications", "--as", "ana")])
@pytest.mark.parametrize("option", ["--after", "--limit"])
def test_numbers_beyond_counting_are_refused(tidings: Tidings, command: tuple[str, ...], option: str) -> None:
    answer = tidings(*command, option, "99999999999999999999")
    assert answer.exit_code == 2
    assert option in answer.output
    assert "9223372036854775807" in answer.output, "it says what would be accepted"


def test_a_name_that_is_not_utf_8_is_refused(tidings: Tidings) -> None:
    for command in (("notifications",), ("subscribe", "price < 200")):
        answer = tidings(*command, "--as", "\udcff")
        assert answer.exit_code == 2
        assert "this is not UTF-8" in answer.output
