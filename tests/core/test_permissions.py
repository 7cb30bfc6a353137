"""Who may look into a home folder: its owner alone, whatever the umask says. What is there already stays as it is."""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidings.core.atomic_files import private_file, write_atomically
from tidings.feeds.outbound.addresses import load_feed_key
from tidings.metadata.repository.repository import Repository
from tidings.service.tidings import Tidings
from tidings.spark import checkpoint
from tidings.store.database import sqlite_url
from tidings.store.store import open_store

pytestmark = pytest.mark.usefixtures("stores_made_anew")


@pytest.fixture(autouse=True)
def lenient() -> Iterator[None]:
    before = os.umask(0o002)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_home_and_what_is_in_it(tmp_path: Path) -> None:
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


def test_a_store_elsewhere_and_a_repository(tmp_path: Path) -> None:
    with open_store(sqlite_url(tmp_path / "other.db")):
        assert mode(tmp_path / "other.db") == mode(tmp_path / "other.db-wal") == 0o600
    with Repository(tmp_path / "repository") as made:
        assert (mode(made.home), mode(made.home / "store.db")) == (0o700, 0o600)


def test_what_is_there_stays_as_it_is(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with Tidings(home) as tidings:
        tidings.publish("{}")
    (home / "store.db").chmod(0o640)
    home.chmod(0o750)
    with Tidings(home) as tidings:
        tidings.publish("{}")
        assert (mode(home), mode(home / "store.db"), mode(home / "store.db-wal")) == (0o750, 0o640, 0o640)


def test_what_is_replaced_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "stream.json"
    path.touch()
    path.chmod(0o640)
    write_atomically(path, "new", private=True)
    assert (mode(path), path.read_text()) == (0o640, "new")
    (tmp_path / ".other.unfinished").touch(0o644)
    write_atomically(tmp_path / "other", "new", private=True)
    assert mode(tmp_path / "other") == 0o600, "whatever a crash has left"


LOCKED = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"


def test_a_file_that_is_there_keeps_its_locks(tmp_path: Path) -> None:
    """A process loses its locks on a file when it closes it once, however often it has it open."""
    path = tmp_path / "store.db"
    with path.open("w") as held:
        fcntl.lockf(held, fcntl.LOCK_EX)
        private_file(path)
        other = subprocess.run(
            [sys.executable, "-c", LOCKED, path], capture_output=True, text=True, check=False
        )
    assert "BlockingIOError" in other.stderr
