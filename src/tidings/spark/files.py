"""Files of publications in a folder, and what they are called.

A `.jsonl` or `.ndjson` file has an event a line; any other file is one document. Files and folders whose names
begin with a dot or an underscore are left alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pyarrow import fs

from tidings.errors import InputError
from tidings.spark.locations import Location

LINES = (".jsonl", ".ndjson")
COMPRESSED = tuple(f"{ending}.gz" for ending in LINES)
MISNAMED = "the file cannot be read: its name is not UTF-8"


class File(NamedTuple):
    """A file of publications, what it is called, and why it cannot be opened, if that is known already."""

    info: fs.FileInfo
    name: str
    problem: str = ""

    @property
    def has_lines(self) -> bool:
        return self.name.endswith(LINES + COMPRESSED)


def listing(location: Location) -> list[File]:
    """The files of a folder and what they are called: their path inside it. Hidden ones are left out."""
    prefix = location.path.rstrip("/") + "/"
    infos = location.inside(recursive=True)
    named = [info for info in infos if _is_named(info)]
    found = [File(info, info.path.removeprefix(prefix)) for info in named]
    files = sorted(
        (file for file in found if file.info.is_file and not _hidden(file.name)), key=_depth_and_name
    )
    if isinstance(location.files, fs.LocalFileSystem):
        files = _once(files)
        if len(named) < len(infos):
            files.extend(_misnamed(location.path))
    return sorted(files, key=lambda file: file.name)


def _is_named(info: fs.FileInfo) -> bool:
    try:
        return bool(info.path)
    except UnicodeDecodeError:
        return False


def _misnamed(folder: str) -> Iterator[File]:
    """The files that pyarrow cannot name, and so cannot open: their names are not UTF-8. Shown with escapes."""
    seen, prefix = set(), folder.rstrip("/") + "/"
    for place, folders, names in os.walk(folder, followlinks=True):
        seen.add(os.path.realpath(place))
        folders[:] = [name for name in folders if os.path.realpath(f"{place}/{name}") not in seen]
        for name in names:
            inside = f"{place}/{name}".removeprefix(prefix)
            shown = os.fsencode(inside).decode(errors="backslashreplace")
            if shown != inside and not _hidden(shown):
                yield File(fs.FileInfo(shown, fs.FileType.File, size=0), shown, MISNAMED)


def _depth_and_name(file: File) -> tuple[int, str]:
    return file.name.count("/"), file.name


def _once(files: list[File]) -> list[File]:
    """Each file once, under its shortest name, also where a link leads back to a folder above."""
    folders: dict[str, str] = {}
    known: dict[tuple[str, str], File] = {}
    for file in files:
        parent = file.info.path.removesuffix(file.info.base_name)
        if parent not in folders:
            folders[parent] = os.path.realpath(parent)
        known.setdefault((folders[parent], file.info.base_name), file)
    return list(known.values())


def list_publications(place: str | Path) -> list[File]:
    """The files to read, and what they are called; it is an error if there are none."""
    location, given = Location.of(place), str(place)
    info = location.info()
    if info.type == fs.FileType.NotFound:
        raise InputError("there are no publications: neither a file nor a folder", received=given)
    if info.is_file:
        return [File(info, info.base_name)]
    files = listing(location)
    if not files:
        raise InputError(
            "the folder has no publications", where=given, accepted="*.jsonl, or a document a file"
        )
    return files


def _hidden(name: str) -> bool:
    return any(part.startswith((".", "_")) for part in name.split("/"))
