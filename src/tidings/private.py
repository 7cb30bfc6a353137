"""Files and folders that nobody but their owner looks into. Those that are there already stay as they are."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

FOLDER, FILE = 0o700, 0o600


def private_folder(folder: Path) -> Path:
    """The folder, made if it is not there; those above it are made as ever."""
    folder.mkdir(FOLDER, parents=True, exist_ok=True)
    return folder


def private_file(path: Path) -> Path:
    """The file, empty if it was not there. One that is there is not even opened: to close it again would end all locks
    that this process has on it, and SQLite's other connections would write without theirs.
    """
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE))
    return path
