"""What surrounds Spark's checkpoint: whose it is, who may use it now, and what to do with a torn file in it.

    <home>/run.lock              held by the process that called `run`
    <home>/stream.lock           held by the source, a child of the JVM, as long as the JVM lives
    <home>/metadata.lock         the same, for the source that reads the log of metadata
    <home>/checkpoint/stream-id  the name under which batches of this checkpoint count as committed

More than one lock, because `kill -9` of the driver leaves its JVM alive for some seconds: the first one is free then,
the others not yet.
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
    """Be the one stream of a home folder, or say who is."""
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
    """The process that runs the stream of a home folder now, by its id ("" if that is not known yet); None if nobody
    does."""
    lock = home / RUN_LOCK
    if not lock.exists():
        return None
    held = acquire_lock(lock)
    if held is None:
        return lock.read_text().strip()
    os.close(held)
    return None


def await_previous_jvm(home: Path) -> None:
    """Wait until the JVM of an earlier run is gone."""
    for lock in (STREAM_LOCK, METADATA_LOCK):
        _await_release(home / lock)


def _await_release(path: Path) -> None:
    held = acquire_lock(path, SURVIVAL_SECONDS)
    if held is None:
        raise SetupError(
            "the Spark of an earlier run still works on this home folder",
            where=str(path),
            hint="if it runs on a Spark Connect server, stop its query there",
        )
    os.ftruncate(held, 0)
    os.close(held)


def write_lock_owner(held: int) -> None:
    """Write down in a lock's file who holds it."""
    os.ftruncate(held, 0)
    os.write(held, f"{os.getpid()}\n".encode())


def is_source_started(home: Path) -> bool:
    """Whether the source of this run has its lock: Spark has started the process that it lives in."""
    return (home / STREAM_LOCK).stat().st_size > 0


def acquire_lock(path: Path, seconds: float = 0.0) -> int | None:
    """A file descriptor that holds the lock, or None if somebody else has it still after so many seconds."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT, FILE)
    except OSError as error:
        hint = "may you write in this folder, and is its disk one that can be written to?"
        raise SetupError(
            "the lock cannot be taken", where=str(path), received=error.strerror, hint=hint
        ) from error
    deadline = monotonic() + seconds
    turn = Event()
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except BlockingIOError:
            if monotonic() >= deadline:
                os.close(file)
                return None
            turn.wait(POLL_SECONDS)


def read_stream_id(checkpoint: Path) -> str:
    """The name of this checkpoint's stream. A new checkpoint counts its batches from 0 again, under a new name."""
    path = checkpoint / STREAM_ID
    if not path.exists() or not path.read_text().strip():
        rename_stream(checkpoint)
    return path.read_text().strip()


def rename_stream(checkpoint: Path) -> None:
    """Give the stream a new name, so that its next batches count as new, whatever their numbers."""
    private_folder(checkpoint.parent)
    private_folder(checkpoint)
    write_atomically(checkpoint / STREAM_ID, f"stream-{uuid4().hex[:12]}\n", private=True)


def repair_checkpoint(checkpoint: Path) -> list[str]:
    """Remove log files that a crash of the machine left unfinished, and say which.

    Spark refuses to start over one. Without its offsets a batch is planned anew and may become longer than the one
    the store has under the same number; so the stream gets a new name, and the store tells by notification ids
    what it has already.
    """
    offsets, commits = checkpoint / "offsets", checkpoint / "commits"
    said = _remove_torn(offsets)
    if said:
        rename_stream(checkpoint)
    said += _remove_torn(commits)
    newest = _last(offsets)
    while (committed := _last(commits)) and (newest is None or int(committed.name) > int(newest.name)):
        _remove(committed)  # of a batch whose offsets are gone
    for path in [*offsets.glob(".*.crc"), *commits.glob(".*.crc")]:
        if not path.with_name(path.name[1:-4]).exists():
            path.unlink()  # a checksum without its file keeps Spark from writing the file
    metadata = checkpoint / "metadata"
    if _is_torn(metadata) if metadata.exists() else _last(offsets):
        # Spark wants it as soon as there is a batch. It is nothing but a name: of the query, for those who watch Spark.
        metadata.with_name(".metadata.crc").unlink(missing_ok=True)
        write_atomically(metadata, json.dumps({"id": str(uuid4())}))
        said.append("wrote the metadata of the checkpoint anew, which were unfinished")
    return said


def read_position(checkpoint: Path) -> int:
    """How far the batches that are done have come, as Spark has written down."""
    done = _last(checkpoint / "commits")
    return (read_planned_position(checkpoint, int(done.name)) or 0) if done else 0


def read_planned_position(checkpoint: Path, batch: int) -> int | None:
    """How far a batch comes, which Spark writes down before it begins; nothing if there is no such batch."""
    offsets = checkpoint / "offsets" / str(batch)
    if not offsets.exists():
        return None
    return int(json.loads(offsets.read_text().splitlines()[-1])["position"])


def _remove_torn(log: Path) -> list[str]:
    said = []
    while (last := _last(log)) and _is_torn(last):
        _remove(last)
        said.append(f"removed the unfinished {log.name} of batch {last.name}: they are written anew")
    return said


def _remove(path: Path) -> None:
    path.unlink()
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def _last(folder: Path) -> Path | None:
    batches = [path for path in folder.glob("*") if path.name.isdigit()]
    return max(batches, key=lambda path: int(path.name), default=None)


LOG_LINES = {"offsets": 3, "commits": 2}
"""A version, then JSON: of the batch, and for offsets also of the source."""


def _is_torn(path: Path) -> bool:
    """Whole logs have all their lines and end in JSON; a crash leaves nothing, zeros, or a part."""
    data = path.read_bytes().strip(b"\x00 \n\r")
    return not data.endswith(b"}") or len(data.splitlines()) < LOG_LINES.get(path.parent.name, 1)
