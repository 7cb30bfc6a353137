"""Files that are whole or not there, also after a crash."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Replace a file in one step, durably: after a crash there is the old text or the new one."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.write_text(text)
    sync(unfinished)
    unfinished.replace(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Wait until a file, or a folder's list of files, is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
