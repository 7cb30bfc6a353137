"""Checkpoints: one stream at a time, repair of torn files, and stream names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from uuid import UUID

import pytest

from tidings.errors import SetupError
from tidings.spark import checkpoint

HOLD = """
import sys, pathlib
from tidings.spark.checkpoint import acquire_lock
assert acquire_lock(pathlib.Path(sys.argv[1])) is not None
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Start processes that hold a lock of the home folder until they are stopped."""
    started = []

    def hold(name):
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(tmp_path / name)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert process.stdout.readline() == b"held\n"
        started.append(process)
        return process

    yield hold
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def test_hold_run_lock_of_a_second_stream_raises(tmp_path):
    refused = pytest.raises(SetupError, match=f"process {os.getpid()}")
    with checkpoint.hold_run_lock(tmp_path), refused, checkpoint.hold_run_lock(tmp_path):
        pass
    with checkpoint.hold_run_lock(tmp_path):
        pass


def test_hold_run_lock_after_the_holder_died_succeeds(tmp_path, holder):
    process = holder(checkpoint.RUN_LOCK)
    with pytest.raises(SetupError, match="another stream"), checkpoint.hold_run_lock(tmp_path):
        pass
    process.kill()
    process.wait()
    with checkpoint.hold_run_lock(tmp_path):
        pass


def test_await_previous_jvm_waits_for_a_surviving_jvm(tmp_path, holder, monkeypatch):
    process = holder(checkpoint.STREAM_LOCK)
    monkeypatch.setattr(checkpoint, "SURVIVAL_SECONDS", 0.0)
    with pytest.raises(SetupError, match="earlier run"):
        checkpoint.await_previous_jvm(tmp_path)
    monkeypatch.setattr(checkpoint, "SURVIVAL_SECONDS", 60.0)
    process.stdin.close()
    checkpoint.await_previous_jvm(tmp_path)
    assert process.wait() == 0


def test_read_stream_id_twice_returns_the_same_name(tmp_path):
    name = checkpoint.read_stream_id(tmp_path)
    assert checkpoint.read_stream_id(tmp_path) == name
    (tmp_path / checkpoint.STREAM_ID).write_text("")
    assert checkpoint.read_stream_id(tmp_path) != name


NAMED = '{"id":"1"}'
WHOLE = 'v1\n{"batchWatermarkMs":0}\n{"position":42}'


@pytest.mark.parametrize("left", ["", "v1\n", 'v1\n{"batchWatermarkMs":0', "\x00\x00"])
@pytest.mark.parametrize("log", ["offsets", "commits"])
def test_repair_checkpoint_removes_a_torn_last_file(tmp_path, log, left):
    name = checkpoint.read_stream_id(tmp_path)
    (tmp_path / "metadata").write_text(NAMED)
    for folder in ("offsets", log):
        (tmp_path / folder).mkdir(exist_ok=True)
        for batch in ("9", "10"):
            (tmp_path / folder / batch).write_text(WHOLE)
            (tmp_path / folder / f".{batch}.crc").write_text("sum")
    assert checkpoint.repair_checkpoint(tmp_path) == []
    (tmp_path / log / "10").write_text(left)
    assert checkpoint.repair_checkpoint(tmp_path) == [
        f"removed the incomplete {log} of batch 10: Spark writes them again"
    ]
    assert sorted(path.name for path in (tmp_path / log).iterdir()) == [".9.crc", "9"]
    # A batch without offsets may be planned with another end: the store must not treat it as the old one.
    assert (checkpoint.read_stream_id(tmp_path) == name) == (log == "commits")


def test_repair_checkpoint_removes_commits_without_offsets_and_checksums_without_files(tmp_path):
    (tmp_path / "metadata").write_text(NAMED)
    for log, left in (("offsets", ""), ("commits", WHOLE)):
        (tmp_path / log).mkdir()
        (tmp_path / log / "0").write_text(WHOLE)
        (tmp_path / log / "1").write_text(left)
        (tmp_path / log / ".2.crc").write_text("sum")
    assert len(checkpoint.repair_checkpoint(tmp_path)) == 1
    for log in ("offsets", "commits"):
        assert [path.name for path in (tmp_path / log).iterdir()] == ["0"]


@pytest.mark.parametrize("left", ["", '{"id":', None])
def test_repair_checkpoint_rewrites_torn_or_missing_metadata(tmp_path, left):
    """Spark refuses a checkpoint with batches and without it."""
    assert checkpoint.repair_checkpoint(tmp_path) == [], (
        "nothing was begun: Spark writes it with the first batch"
    )
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text(WHOLE)
    (tmp_path / ".metadata.crc").write_text("sum")
    if left is not None:
        (tmp_path / "metadata").write_text(left)
    assert len(checkpoint.repair_checkpoint(tmp_path)) == 1
    assert UUID(json.loads((tmp_path / "metadata").read_text())["id"])
    assert not (tmp_path / ".metadata.crc").exists()
    assert checkpoint.repair_checkpoint(tmp_path) == []


def test_hold_run_lock_in_an_unwritable_folder_raises(tmp_path):
    """Such as on a read-only disk."""
    with pytest.raises(SetupError, match=r"the lock file cannot be opened .*run\.lock.*No such file"):
        checkpoint.acquire_lock(tmp_path / "away" / checkpoint.RUN_LOCK)
