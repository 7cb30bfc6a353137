"""Files that are whole or not there, also after a crash."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from tidings.private import FILE, private_file

MODES = 0o777


def write_whole(path: Path, text: str, *, private: bool = False) -> None:
    """Replace a file in one step, durably: after a crash there is the old text or the new one. If it is private, a new
    one is its owner's alone, and one that was there keeps its mode.
    """
    if private:
        private_file(unfinished_of(path))
    unfinished = write_aside(path, text)
    if private:
        unfinished.chmod(path.stat().st_mode & MODES if path.exists() else FILE)
    sync(unfinished)
    unfinished.replace(path)
    sync(path.parent)


def write_aside(path: Path, text: str) -> Path:
    """Write what is to replace a file, beside it; when that is synced, it may take the file's place."""
    unfinished = unfinished_of(path)
    unfinished.write_text(text)
    return unfinished


def unfinished_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.unfinished")


def sync(path: Path) -> None:
    """Wait until a file, or a folder's list of files, is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_all(paths: Iterable[Path]) -> None:
    """The same for several, at once: a file system that keeps a journal then writes it once instead of once for each.

    On a busy disk (ext4), six small files took 1 ms together and 20 ms one after the other.
    """
    list(_threads(os.getpid()).map(sync, paths))


@cache
def _threads(process: int) -> ThreadPoolExecutor:
    """The threads that wait, of one process: one that was forked has none of its parent's."""
    return ThreadPoolExecutor(8, f"sync-{process}")
