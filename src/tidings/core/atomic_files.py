"""Atomic file replacement, private files, and fsync: after a crash a file is whole, old or new."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

FOLDER, FILE = 0o700, 0o600
"""Modes of private folders and files; existing ones keep their mode."""


def private_folder(folder: Path) -> Path:
    """Create a folder for its owner only, unless it exists; its parents get the default mode."""
    folder.mkdir(FOLDER, parents=True, exist_ok=True)
    return folder


def private_file(path: Path) -> Path:
    """Create an empty file for its owner only, unless it exists.

    An existing file is not even opened: closing it would release all locks of this process on it, and other SQLite
    connections would write without theirs.
    """
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE))
    return path


MODES = 0o777
SHARED = 0o666
"""The mode of a file that is not private, before the umask."""
SUFFIX = ".unfinished"


def write_atomically(path: Path, text: str, *, private: bool = False) -> None:
    """Replace a file durably in one step.

    A new private file is readable by its owner only; a file that exists keeps its mode.
    """
    with temporary_beside(path, FILE if private else SHARED) as unfinished:
        unfinished.write_text(text)
        if private and path.exists():
            unfinished.chmod(path.stat().st_mode & MODES)
        sync(unfinished)
        unfinished.replace(path)
    sync(path.parent)


@contextmanager
def temporary_beside(path: Path, mode: int = SHARED) -> Iterator[Path]:
    """Yield a new, empty file in the folder of `path`, to be renamed to it; deleted at the end if it was not.

    Every call has its own file, so concurrent writers of one path cannot mix their contents: the last rename wins. The
    next writer in the folder deletes files that a killed process left behind. It recognizes them by their lock, which
    ends with the process; the age of a file would depend on the clock.
    """
    _delete_abandoned(path.parent)
    unfinished, lock = _create_locked(path, mode)
    try:
        yield unfinished
    finally:
        unfinished.unlink(missing_ok=True)
        os.close(lock)


def _create_locked(path: Path, mode: int) -> tuple[Path, int]:
    """Create and lock a uniquely named file; retry if another writer deleted it before it was locked."""
    while True:
        unfinished = path.with_name(f".{path.name}.{secrets.token_hex(8)}{SUFFIX}")
        lock = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        if _try_lock(lock) and os.fstat(lock).st_nlink:
            return unfinished, lock
        os.close(lock)


def _delete_abandoned(folder: Path) -> None:
    """Delete the temporary files in a folder that no process has locked."""
    for path in folder.glob(f".*{SUFFIX}"):
        with suppress(FileNotFoundError, PermissionError):  # just renamed by its writer; of another user
            lock = os.open(path, os.O_WRONLY)
            try:
                if _try_lock(lock) and os.fstat(lock).st_ino == path.stat().st_ino:
                    path.unlink()
            finally:
                os.close(lock)


def _try_lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def sync(path: Path) -> None:
    """Wait until a file, or the entries of a folder, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_all(paths: Iterable[Path]) -> None:
    """Sync several files concurrently, so that a journaling file system commits once instead of once per file.

    On a busy disk (ext4), six small files took 1 ms together and 20 ms one after the other.
    """
    list(_threads(os.getpid()).map(sync, paths))


@cache
def _threads(process: int) -> ThreadPoolExecutor:
    """Return this process's pool of syncing threads; a forked process does not inherit its parent's."""
    return ThreadPoolExecutor(8, f"sync-{process}")
