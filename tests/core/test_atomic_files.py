"""Atomic file replacement and private files, with concurrent writers, failures and killed processes."""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidings.core.atomic_files import private_file, temporary_beside, write_atomically
from tidings.feeds.outbound.addresses import load_feed_key
from tidings.metadata.repository.repository import Repository
from tidings.service.tidings import Tidings
from tidings.spark import checkpoint
from tidings.store.database import sqlite_url
from tidings.store.store import open_store

pytestmark = pytest.mark.usefixtures("migrated_stores")


@pytest.fixture(autouse=True)
def lenient_umask() -> Iterator[None]:
    before = os.umask(0o002)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_home_new_files_are_private(tmp_path: Path) -> None:
    home = tmp_path / "above" / "home"
    with Tidings(home) as tidings:
        tidings.publish('{"price": 1}')
        load_feed_key(home)
        with checkpoint.hold_run_lock(home):
            checkpoint.read_stream_id(home / "checkpoint" / "journal")
            checkpoint.await_previous_jvm(home)
            write_atomically(home / "stream.json", "{}", private=True)
        assert (mode(tmp_path / "above"), mode(home)) == (0o775, 0o700)
        names = [
            "store.db",
            "store.db-wal",
            "store.db-shm",
            "feeds.key",
            "stream.json",
            "checkpoint/journal/stream-id",
        ]
        names += [checkpoint.RUN_LOCK, checkpoint.STREAM_LOCK, checkpoint.METADATA_LOCK]
        assert [mode(home / name) for name in names] == [0o600] * len(names)
        assert mode(home / "checkpoint") == mode(home / "checkpoint" / "journal") == 0o700


def test_store_elsewhere_and_repository_are_private(tmp_path: Path) -> None:
    with open_store(sqlite_url(tmp_path / "other.db")):
        assert mode(tmp_path / "other.db") == mode(tmp_path / "other.db-wal") == 0o600
    with Repository(tmp_path / "repository") as repository:
        assert (mode(repository.home), mode(repository.home / "store.db")) == (0o700, 0o600)


def test_home_existing_files_keep_mode(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with Tidings(home) as tidings:
        tidings.publish("{}")
    (home / "store.db").chmod(0o640)
    home.chmod(0o750)
    with Tidings(home) as tidings:
        tidings.publish("{}")
        assert (mode(home), mode(home / "store.db"), mode(home / "store.db-wal")) == (0o750, 0o640, 0o640)


def test_write_atomically_replaced_file_keeps_mode(tmp_path: Path) -> None:
    path = tmp_path / "stream.json"
    path.touch()
    path.chmod(0o640)
    write_atomically(path, "new", private=True)
    assert (mode(path), path.read_text()) == (0o640, "new")
    (tmp_path / ".other.unfinished").touch(0o644)
    write_atomically(tmp_path / "other", "new", private=True)
    assert mode(tmp_path / "other") == 0o600, "an unfinished file of a crash does not count"


LOCKED = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"


def test_private_file_existing_file_keeps_locks(tmp_path: Path) -> None:
    """A process loses its locks on a file as soon as it closes one of several open handles."""
    path = tmp_path / "store.db"
    with path.open("w") as locked:
        fcntl.lockf(locked, fcntl.LOCK_EX)
        private_file(path)
        other = subprocess.run(
            [sys.executable, "-c", LOCKED, path], capture_output=True, text=True, check=False
        )
    assert "BlockingIOError" in other.stderr


SIZE = 200_000
WRITER = """
import sys
from pathlib import Path
from tidings.core.atomic_files import write_atomically

path, letter = Path(sys.argv[1]), sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
for _ in range(100):
    write_atomically(path, letter * {size})
"""
KILLED = """
import sys
from pathlib import Path
from tidings.core.atomic_files import temporary_beside

with temporary_beside(Path(sys.argv[1])) as unfinished:
    unfinished.write_text("half")
    print("ready", flush=True)
    sys.stdin.readline()
"""


def start_program(program: str, *arguments: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout and process.stdout.readline() == "ready\n"
    return process


def test_write_atomically_concurrent_processes_never_mix_contents(tmp_path: Path) -> None:
    path = tmp_path / "status"
    write_atomically(path, "a" * SIZE)
    writers = [start_program(WRITER.format(size=SIZE), str(path), letter) for letter in "abc"]
    for writer in writers:
        assert writer.stdin
        print(file=writer.stdin, flush=True)
    contents = set()
    while any(writer.poll() is None for writer in writers):
        contents.add(path.read_text())
    assert [(writer.wait(), writer.communicate()[1]) for writer in writers] == [(0, "")] * 3
    assert contents <= {letter * SIZE for letter in "abc"}
    assert list(tmp_path.iterdir()) == [path]


def test_write_atomically_after_killed_writer_removes_leftover(tmp_path: Path) -> None:
    path = tmp_path / "status"
    killed = start_program(KILLED, str(path))
    (leftover,) = tmp_path.iterdir()
    write_atomically(path, "new")
    assert leftover.exists(), "a file that is being written stays"
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    write_atomically(tmp_path / "another", "new")
    assert not leftover.exists()


def test_write_atomically_failure_leaves_old_file_only(tmp_path: Path) -> None:
    path = tmp_path / "status"
    write_atomically(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "half \ud800")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_temporary_beside_private_file_is_readable_by_owner_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with temporary_beside(tmp_path / "key", 0o600) as unfinished:
            assert unfinished.stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)
