"""Arguments that commands reject before Spark starts."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.support.processes.command_line import Tidings
from tidings.cli.operations import doctor
from tidings.cli.options import SparkOptions
from tidings.errors import SetupError
from tidings.spark.session import check_address, open_session

MATCH = ("match", "--subscriptions", "subs.jsonl", "--publications", "e.jsonl")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--out", "foo://x"), "unsupported file address; received 'foo://x'"),
        (("--out", "hdfs://nowhere.invalid/x"), "the file address cannot be reached"),
        (("--out", "mock:///x"), "--segments"),
        (("--out", "x", "--rejects", "e.jsonl/r.jsonl"), "is not a folder"),
        (("--out", "x", "--publications", "foo://x"), "unsupported file address"),
        (("--out", "x", "--publications", "nowhere"), "--publications: no such file or folder"),
    ],
)
def test_match_invalid_paths_are_rejected(tidings: Tidings, words: tuple[str, ...], message: str) -> None:
    Path("subs.jsonl").write_text("")
    Path("e.jsonl").write_text("{}")
    result = tidings(*MATCH, *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not Path("x").exists()


def test_run_id_field_without_folder_is_rejected(tidings: Tidings) -> None:
    result = tidings("run", "--once", "--id", "lot")
    assert result.exit_code == 2
    assert "--id is for events in a folder" in result.stderr and "--id-field" in result.stderr


@pytest.mark.parametrize("command", [(*MATCH, "--out", "x"), ("run", "--once")], ids=lambda c: c[0])
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--conf", "executor.memory=4g"), "--conf spark.executor.memory=4g"),
        (
            ("--conf", "spark.executor.memory"),
            "--conf needs a key and a value; received spark.executor.memory",
        ),
        (("--jars", "nowhere"), "nowhere"),
        (
            ("--master", "sc://host", "--packages", "a:b:1"),
            "a Spark Connect server has its own connectors; received spark.jars.packages",
        ),
        (
            ("--master", "sc://host", "--conf", "spark.jars=a.jar"),
            "a Spark Connect server has its own connectors; received spark.jars",
        ),
    ],
)
def test_invalid_spark_options_are_rejected(
    tidings: Tidings, command: tuple[str, ...], words: tuple[str, ...], message: str
) -> None:
    result = tidings(*command, *words)
    assert result.exit_code == 2
    assert message in result.stderr


def test_spark_options_become_settings(tmp_path: Path) -> None:
    for name in ("b.jar", "a.jar", "notes.txt"):
        (tmp_path / name).write_text("")
    given = ["spark.executor.memory=4g", "spark.sql.extensions=a=b"]
    options = SparkOptions(conf=given, packages="a:b:1,c:d:2", jars=tmp_path)
    assert options.build_settings() == {
        "spark.executor.memory": "4g",
        "spark.sql.extensions": "a=b",
        "spark.jars.packages": "a:b:1,c:d:2",
        "spark.jars": f"{tmp_path / 'a.jar'},{tmp_path / 'b.jar'}",
    }
    assert SparkOptions().build_settings() == {}


def test_describe_spark_target_names_effective_master(monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor.describe_spark_target(None) == "local[*]"
    monkeypatch.setenv("SPARK_REMOTE", "sc://cluster")
    assert doctor.describe_spark_target(None) == "sc://cluster"
    assert doctor.describe_spark_target("local[1]") == "local[1]"


def test_doctor_checks_store_of_home_folder(tidings: Tidings) -> None:
    tidings("publish", "{}", "--home", "a b")
    result = tidings("doctor", "--only", "store", "--home", "a b")
    assert (result.exit_code, result.stdout.split()) == (0, ["ok", "store", "journal", "at", "1"])


@pytest.mark.parametrize(
    "master", ["local[x]", "local[0]", "cluster:7077", "sc://", "sc://host:x", "sc:host", ""]
)
@pytest.mark.parametrize(
    "command", [(*MATCH, "--out", "x"), ("run", "--once"), ("demo",)], ids=lambda c: c[0]
)
def test_invalid_spark_master_is_rejected(tidings: Tidings, command: tuple[str, ...], master: str) -> None:
    result = tidings(*command, "--master", master)
    assert result.exit_code == 2
    assert (
        f"this is not the address of a Spark master; received '{master}'; accepted: local, local[N]"
        in result.stderr
    )


def test_open_session_unreachable_connect_server_raises_setup_error() -> None:
    with socket.socket() as unused:  # bound, but not listening
        unused.bind(("127.0.0.1", 0))
        remote = f"sc://127.0.0.1:{unused.getsockname()[1]}"
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
def test_check_address_accepts_valid_masters(master: str) -> None:
    check_address(master)


def test_run_missing_folder_is_rejected(tidings: Tidings) -> None:
    result = tidings("run", "--once", "--folder", "nope")
    assert result.exit_code == 2
    message = "error: there is no such folder (--folder); received 'nope'; create it first: mkdir -p nope\n"
    assert result.stderr == message
    Path("file").write_text("")
    assert "this is not a folder" in tidings("run", "--folder", "file").stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--sink", "out"), "--sink needs a source"),
        (("--segments", "shared"), "--segments needs a source"),
        (("--out-format", "delta"), "--out-format needs a source"),
        (("--source", "nope", "--sink", "out"), "there is no such file or folder"),
        (("--source", "in", "--sink", "in/out"), "the same place"),
        (("--source", "in", "--folder", "in"), "one source"),
        (("--source", "in", "--explain"), "--explain is for matches that are written to a sink"),
        (("--source", "in", "--segments", "shared"), "--segments is for matches"),
        (("--engine", "relational"), "--engine needs a source"),
        (("--source", "in", "--engine", "relational"), "--engine is for matches"),
        (("--source", "in", "--sink", "out", "--engine", "joins"), "there is no such engine"),
        (
            ("--source", "in", "--sink", "out", "--engine", "relational", "--explain"),
            "the relational engine does not explain matches",
        ),
        (
            ("--source", "in", "--sink", "out", "--engine", "relational", "--value-format", "json"),
            "the relational engine only matches XML documents",
        ),
        (("--source", "in", "--option", "header"), "--option needs a key and a value"),
        (("--source", "kafka://broker:x/topic", "--sink", "out"), "invalid address of a Kafka topic"),
        (("--source", "kafka://broker/t?sasl.username=x"), "kafka.security.protocol"),
    ],
)
def test_run_invalid_source_or_sink_is_rejected_before_spark_starts(
    tidings: Tidings, words: tuple[str, ...], said: str
) -> None:
    Path("in").mkdir()
    done = tidings("run", "--once", *words)
    assert done.exit_code == 2
    assert said in done.stderr


def test_doctor_checks_write_access_of_home_folder(tidings: Tidings) -> None:
    result = tidings("doctor", "--only", "home", "--home", "/proc/nope")
    assert result.exit_code == 4
    assert "/proc cannot be written to" in result.stdout
    assert tidings("doctor", "--only", "home").exit_code == 0
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("command", [("rejects",), ("notifications", "--as", "ana")])
@pytest.mark.parametrize("option", ["--after", "--limit"])
def test_number_option_beyond_64_bits_is_rejected(
    tidings: Tidings, command: tuple[str, ...], option: str
) -> None:
    answer = tidings(*command, option, "99999999999999999999")
    assert answer.exit_code == 2
    assert option in answer.output
    assert "9223372036854775807" in answer.output, "the error states the accepted range"


def test_name_option_invalid_utf_8_is_rejected(tidings: Tidings) -> None:
    for command in (("notifications",), ("subscribe", "price < 200")):
        answer = tidings(*command, "--as", "\udcff")
        assert answer.exit_code == 2
        assert "this is not UTF-8" in answer.output
