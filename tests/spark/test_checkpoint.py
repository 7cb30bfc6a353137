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


def test_hold_run_lock_second_stream_is_rejected(tmp_path):
    rejected = pytest.raises(SetupError, match=f"process {os.getpid()}")
    with checkpoint.hold_run_lock(tmp_path), rejected, checkpoint.hold_run_lock(tmp_path):
        pass
    with checkpoint.hold_run_lock(tmp_path):
        pass


def test_hold_run_lock_after_death_of_holder_succeeds(tmp_path, holder):
    process = holder(checkpoint.RUN_LOCK)
    with pytest.raises(SetupError, match="another stream"), checkpoint.hold_run_lock(tmp_path):
        pass
    process.kill()
    process.wait()
    with checkpoint.hold_run_lock(tmp_path):
        pass


def test_await_previous_jvm_waits_for_surviving_jvm(tmp_path, holder, monkeypatch):
    process = holder(checkpoint.STREAM_LOCK)
    monkeypatch.setattr(checkpoint, "SURVIVAL_SECONDS", 0.0)
    with pytest.raises(SetupError, match="earlier run"):
        checkpoint.await_previous_jvm(tmp_path)
    monkeypatch.setattr(checkpoint, "SURVIVAL_SECONDS", 60.0)
    process.stdin.close()
    checkpoint.await_previous_jvm(tmp_path)
    assert process.wait() == 0


def test_read_stream_id_twice_returns_same_name(tmp_path):
    name = checkpoint.read_stream_id(tmp_path)
    assert checkpoint.read_stream_id(tmp_path) == name
    (tmp_path / checkpoint.STREAM_ID).write_text("")
    assert checkpoint.read_stream_id(tmp_path) != name


NAMED = '{"id":"1"}'
WHOLE = 'v1\n{"batchWatermarkMs":0}\n{"position":42}'


@pytest.mark.parametrize("content", ["", "v1\n", 'v1\n{"batchWatermarkMs":0', "\x00\x00"])
@pytest.mark.parametrize("log", ["offsets", "commits"])
def test_repair_checkpoint_torn_last_file_is_removed(tmp_path, log, content):
    name = checkpoint.read_stream_id(tmp_path)
    (tmp_path / "metadata").write_text(NAMED)
    for folder in ("offsets", log):
        (tmp_path / folder).mkdir(exist_ok=True)
        for batch in ("9", "10"):
            (tmp_path / folder / batch).write_text(WHOLE)
            (tmp_path / folder / f".{batch}.crc").write_text("sum")
    assert checkpoint.repair_checkpoint(tmp_path) == []
    (tmp_path / log / "10").write_text(content)
    assert checkpoint.repair_checkpoint(tmp_path) == [
        f"removed the incomplete {log} of batch 10: Spark writes them again"
    ]
    assert sorted(path.name for path in (tmp_path / log).iterdir()) == [".9.crc", "9"]
    # A batch without offsets may be planned with another end, so the store must not treat it as the old batch.
    assert (checkpoint.read_stream_id(tmp_path) == name) == (log == "commits")


def test_repair_checkpoint_commits_without_offsets_and_stale_checksums_are_removed(tmp_path):
    (tmp_path / "metadata").write_text(NAMED)
    for log, content in (("offsets", ""), ("commits", WHOLE)):
        (tmp_path / log).mkdir()
        (tmp_path / log / "0").write_text(WHOLE)
        (tmp_path / log / "1").write_text(content)
        (tmp_path / log / ".2.crc").write_text("sum")
    assert len(checkpoint.repair_checkpoint(tmp_path)) == 1
    for log in ("offsets", "commits"):
        assert [path.name for path in (tmp_path / log).iterdir()] == ["0"]


@pytest.mark.parametrize("content", ["", '{"id":', None])
def test_repair_checkpoint_torn_or_missing_metadata_is_rewritten(tmp_path, content):
    """Spark rejects a checkpoint that has batches and no metadata."""
    assert checkpoint.repair_checkpoint(tmp_path) == [], (
        "there is no batch yet: Spark writes the metadata with the first one"
    )
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text(WHOLE)
    (tmp_path / ".metadata.crc").write_text("sum")
    if content is not None:
        (tmp_path / "metadata").write_text(content)
    assert len(checkpoint.repair_checkpoint(tmp_path)) == 1
    assert UUID(json.loads((tmp_path / "metadata").read_text())["id"])
    assert not (tmp_path / ".metadata.crc").exists()
    assert checkpoint.repair_checkpoint(tmp_path) == []


def test_acquire_lock_in_unwritable_folder_is_rejected(tmp_path):
    """For example on a read-only disk."""
    with pytest.raises(SetupError, match=r"the lock file cannot be opened .*run\.lock.*No such file"):
        checkpoint.acquire_lock(tmp_path / "away" / checkpoint.RUN_LOCK)
