"""Ownership of Spark's checkpoint: its locks, its stream id, and the repair of torn files.

    <home>/run.lock              held by the process that called `run`
    <home>/stream.lock           held by the source, a child of the JVM, as long as the JVM lives
    <home>/metadata.lock         the same, for the source that reads the metadata log
    <home>/checkpoint/stream-id  the stream name under which the store records committed batches

There are several locks because the JVM survives `kill -9` of the driver for some seconds: by then the first lock is
free and the others are still held.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from time import monotonic
from uuid import uuid4

from tidings.core.atomic_files import FILE, private_folder, write_atomically
from tidings.errors import SetupError

RUN_LOCK = "run.lock"
STREAM_LOCK = "stream.lock"
METADATA_LOCK = "metadata.lock"
STREAM_ID = "stream-id"
SURVIVAL_SECONDS = 30.0
POLL_SECONDS = 0.1


@contextmanager
def hold_run_lock(home: Path) -> Iterator[None]:
    """Hold the run lock of a home folder; raise `SetupError` if another process holds it."""
    private_folder(home)
    held = acquire_lock(home / RUN_LOCK)
    if held is None:
        pid = (home / RUN_LOCK).read_text().strip()
        raise SetupError(
            "another stream runs on this home folder",
            where=str(home),
            hint=f"stop it first (process {pid})" if pid else "stop it first",
        )
    try:
        write_lock_owner(held)
        yield
    finally:
        os.ftruncate(held, 0)
        os.close(held)


def find_runner(home: Path) -> str | None:
    """Return the id of the process that runs the stream of a home folder, or None.

    The id is "" if the process has not written it yet.
    """
    lock = home / RUN_LOCK
    if not lock.exists():
        return None
    held = acquire_lock(lock)
    if held is None:
        return lock.read_text().strip()
    os.close(held)
    return None


def await_previous_jvm(home: Path) -> None:
    """Wait until the JVM of an earlier run has exited."""
    for lock in (STREAM_LOCK, METADATA_LOCK):
        _await_release(home / lock)


def _await_release(path: Path) -> None:
    held = acquire_lock(path, SURVIVAL_SECONDS)
    if held is None:
        raise SetupError(
            "Spark from an earlier run is still using this home folder",
            where=str(path),
            hint="if it runs on a Spark Connect server, stop its query there",
        )
    os.ftruncate(held, 0)
    os.close(held)


def write_lock_owner(held: int) -> None:
    """Write the id of this process to a lock file it holds."""
    os.ftruncate(held, 0)
    os.write(held, f"{os.getpid()}\n".encode())


def is_source_started(home: Path) -> bool:
    """Return whether Spark has started the source of this run, which then holds its lock."""
    return (home / STREAM_LOCK).stat().st_size > 0


def acquire_lock(path: Path, seconds: float = 0.0) -> int | None:
    """Return a file descriptor that holds the lock, or None if it stays taken for `seconds`."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT, FILE)
    except OSError as error:
        hint = "check that you may write to this folder and that its disk is not read-only"
        raise SetupError(
            "the lock file cannot be opened", where=str(path), received=error.strerror, hint=hint
        ) from error
    deadline = monotonic() + seconds
    pause = Event()
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except BlockingIOError:
            if monotonic() >= deadline:
                os.close(file)
                return None
            pause.wait(POLL_SECONDS)


def read_stream_id(checkpoint: Path) -> str:
    """Return the stream name of a checkpoint; a new one numbers its batches from 0 again."""
    path = checkpoint / STREAM_ID
    if not path.exists() or not path.read_text().strip():
        rename_stream(checkpoint)
    return path.read_text().strip()


def rename_stream(checkpoint: Path) -> None:
    """Give the stream a new name, so that the store treats its next batches as new."""
    private_folder(checkpoint.parent)
    private_folder(checkpoint)
    write_atomically(checkpoint / STREAM_ID, f"stream-{uuid4().hex[:12]}\n", private=True)


def repair_checkpoint(checkpoint: Path) -> list[str]:
    """Remove log files that a crash left incomplete; return a description of each repair.

    Spark refuses to start with such a file. A batch without its offsets is planned again and may become longer than
    the one the store has under the same number. So the stream gets a new name, and the store recognises what it
    already has by the notification ids.
    """
    offsets, commits = checkpoint / "offsets", checkpoint / "commits"
    repairs = _remove_torn(offsets)
    if repairs:
        rename_stream(checkpoint)
    repairs += _remove_torn(commits)
    newest = _last(offsets)
    while (committed := _last(commits)) and (newest is None or int(committed.name) > int(newest.name)):
        _remove(committed)  # its batch has no offsets
    for path in [*offsets.glob(".*.crc"), *commits.glob(".*.crc")]:
        if not path.with_name(path.name[1:-4]).exists():
            path.unlink()  # a checksum without its file prevents Spark from writing the file
    metadata = checkpoint / "metadata"
    if _is_torn(metadata) if metadata.exists() else _last(offsets):
        # Spark requires it as soon as there is a batch. It only holds the id of the query, for monitoring.
        metadata.with_name(".metadata.crc").unlink(missing_ok=True)
        write_atomically(metadata, json.dumps({"id": str(uuid4())}))
        repairs.append("rewrote the incomplete metadata file of the checkpoint")
    return repairs


def read_position(checkpoint: Path) -> int:
    """Return the last position of the committed batches, as Spark has recorded it."""
    done = _last(checkpoint / "commits")
    return (read_planned_position(checkpoint, int(done.name)) or 0) if done else 0


def read_planned_position(checkpoint: Path, batch: int) -> int | None:
    """Return the last position of a batch, which Spark records before it begins, or None."""
    offsets = checkpoint / "offsets" / str(batch)
    if not offsets.exists():
        return None
    return int(json.loads(offsets.read_text().splitlines()[-1])["position"])


def _remove_torn(log: Path) -> list[str]:
    repairs = []
    while (last := _last(log)) and _is_torn(last):
        _remove(last)
        repairs.append(f"removed the incomplete {log.name} of batch {last.name}: Spark writes them again")
    return repairs


def _remove(path: Path) -> None:
    path.unlink()
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def _last(folder: Path) -> Path | None:
    batches = [path for path in folder.glob("*") if path.name.isdigit()]
    return max(batches, key=lambda path: int(path.name), default=None)


LOG_LINES = {"offsets": 3, "commits": 2}
"""The lines of a complete log file: a version, then JSON for the batch and, in offsets, for the source."""


def _is_torn(path: Path) -> bool:
    """Return whether a log file is incomplete: a crash leaves it empty, zeroed or cut short."""
    data = path.read_bytes().strip(b"\x00 \n\r")
    return not data.endswith(b"}") or len(data.splitlines()) < LOG_LINES.get(path.parent.name, 1)
