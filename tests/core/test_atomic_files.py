"""Atomic file replacement with concurrent writers, failures and killed processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tidings.core.atomic_files import temporary_beside, write_atomically

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


def started(program: str, *arguments: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout and process.stdout.readline() == "ready\n"
    return process


def test_write_whole_by_concurrent_processes_never_mixes_their_contents(tmp_path: Path) -> None:
    path = tmp_path / "status"
    write_atomically(path, "a" * SIZE)
    writers = [started(WRITER.format(size=SIZE), str(path), letter) for letter in "abc"]
    for writer in writers:
        assert writer.stdin
        print(file=writer.stdin, flush=True)
    seen = set()
    while any(writer.poll() is None for writer in writers):
        seen.add(path.read_text())
    assert [(writer.wait(), writer.communicate()[1]) for writer in writers] == [(0, "")] * 3
    assert seen <= {letter * SIZE for letter in "abc"}
    assert list(tmp_path.iterdir()) == [path]


def test_write_whole_after_a_killed_writer_removes_its_file(tmp_path: Path) -> None:
    path = tmp_path / "status"
    killed = started(KILLED, str(path))
    (left,) = tmp_path.iterdir()
    write_atomically(path, "new")
    assert left.exists(), "a file that is being written stays"
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    write_atomically(tmp_path / "another", "new")
    assert not left.exists()


def test_write_whole_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "status"
    write_atomically(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "half \ud800")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_temporary_beside_private_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with temporary_beside(tmp_path / "key", 0o600) as unfinished:
            assert unfinished.stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)
