"""What commands that need Spark refuse before they start it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interfaces.calling import Tidings
from tidings.interfaces.cli import doctor

MATCH = ("match", "--subscriptions", "subs.jsonl", "--publications", "e.jsonl")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--out", "foo://x"), "this is no address of files; received 'foo://x'"),
        (("--out", "hdfs://nowhere.invalid/x"), "this place cannot be reached"),
        (("--out", "mock:///x"), "--segments"),
        (("--out", "x", "--rejects", "e.jsonl/r.jsonl"), "is no folder"),
        (("--out", "x", "--publications", "foo://x"), "this is no address of files"),
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
    assert doctor.where_spark_runs(None) == "local[*]"
    monkeypatch.setenv("SPARK_REMOTE", "sc://cluster")
    assert doctor.where_spark_runs(None) == "sc://cluster"
    assert doctor.where_spark_runs("local[1]") == "local[1]"


def test_doctor_looks_at_the_store_of_the_home_folder(tidings: Tidings) -> None:
    tidings("publish", "{}", "--home", "a b")
    done = tidings("doctor", "--only", "store", "--home", "a b")
    assert (done.exit_code, done.stdout.split()) == (0, ["ok", "store", "journal", "at", "1"])
