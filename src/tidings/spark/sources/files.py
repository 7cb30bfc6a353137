"""Publication files in a folder, and their names.

A `.jsonl` or `.ndjson` file has one event per line; any other file is one document. Files and folders whose names begin
with a dot or an underscore are ignored.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyarrow import fs

from tidings.errors import InputError

# Locations of files: paths, and URIs that pyarrow supports.


@dataclass(frozen=True, slots=True)
class Location:
    """A file or folder on any supported file system, as a URI such as s3://bucket/events."""

    uri: str

    @classmethod
    def of(cls, place: str | Path) -> Location:
        text = str(place)
        return cls(text if "://" in text else Path(text).absolute().as_uri())

    @property
    def files(self) -> fs.FileSystem:
        return _open_file_system(self.uri)[0]

    @property
    def path(self) -> str:
        return _open_file_system(self.uri)[1]

    @property
    def for_spark(self) -> str:
        """Return the address in Spark's form: Hadoop does not decode `%20` in a path."""
        return f"file://{self.path}" if self.uri.startswith("file:") else self.uri

    def info(self) -> fs.FileInfo:
        """Return what the file system knows about this location; its type tells whether it exists."""
        with _explain_access_errors(self.uri):
            return self.files.get_file_info(self.path)

    def inside(self, recursive: bool = False) -> list[fs.FileInfo]:
        """List the folder; return nothing if it does not exist."""
        selector = fs.FileSelector(self.path, recursive=recursive, allow_not_found=True)
        with _explain_access_errors(self.uri):
            return list(self.files.get_file_info(selector))


@lru_cache(maxsize=16)
def _open_file_system(uri: str) -> tuple[fs.FileSystem, str]:
    with _explain_access_errors(uri):
        files, path = fs.FileSystem.from_uri(uri)
    return files, path


@contextmanager
def _explain_access_errors(uri: str) -> Iterator[None]:
    """Raise `InputError` for an address that is unsupported or cannot be reached."""
    shown = re.sub(r"//[^/@]*@", "//", uri)  # hides keys of object stores, which may precede the @
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
        raise InputError(
            "unsupported file address",
            received=f"'{shown}'",
            accepted="a path, or a URI that pyarrow supports, such as s3://bucket/folder",
            hint=_first_line(problem).replace(uri, shown),
        ) from problem
    except UnicodeDecodeError as problem:
        raise InputError("the file name is not UTF-8", received=f"'{shown}'", accepted="UTF-8") from problem
    except OSError as problem:
        hint = _first_line(problem).replace(uri, shown)
        raise InputError("the file address cannot be reached", where=shown, hint=hint) from problem


def _first_line(problem: Exception) -> str:
    return str(problem).split("\n", 1)[0]


def explain_unreadable(files: fs.FileSystem, path: str, problem: OSError) -> str:
    """Return why a file cannot be read; raise if its file system does not answer."""
    if files.get_file_info(path).type == fs.FileType.NotFound:
        return "the file was removed before it was read"
    return f"the file cannot be read: {_first_line(problem)}"


LINE_SUFFIXES = (".jsonl", ".ndjson")
COMPRESSED_SUFFIXES = tuple(f"{ending}.gz" for ending in LINE_SUFFIXES)
MISNAMED = "the file cannot be read: its name is not UTF-8"


class PublicationFile(NamedTuple):
    """A publication file, its name, and why it cannot be opened, if that is already known."""

    info: fs.FileInfo
    name: str
    problem: str = ""

    @property
    def has_lines(self) -> bool:
        return self.name.endswith(LINE_SUFFIXES + COMPRESSED_SUFFIXES)


def list_files(location: Location) -> list[PublicationFile]:
    """List the visible files of a folder; their names are their paths relative to it."""
    prefix = location.path.rstrip("/") + "/"
    infos = location.inside(recursive=True)
    named = [info for info in infos if _has_utf8_name(info)]
    candidates = [PublicationFile(info, info.path.removeprefix(prefix)) for info in named]
    files = sorted(
        (file for file in candidates if file.info.is_file and not _is_hidden(file.name)), key=_depth_and_name
    )
    if isinstance(location.files, fs.LocalFileSystem):
        files = _remove_duplicates(files)
        if len(named) < len(infos):
            files.extend(_list_misnamed(location.path))
    return sorted(files, key=lambda file: file.name)


def _has_utf8_name(info: fs.FileInfo) -> bool:
    try:
        return bool(info.path)
    except UnicodeDecodeError:
        return False


def _list_misnamed(folder: str) -> Iterator[PublicationFile]:
    """List files whose names are not UTF-8, which pyarrow cannot open, with escaped names."""
    seen, prefix = set(), folder.rstrip("/") + "/"
    for place, folders, names in os.walk(folder, followlinks=True):
        seen.add(os.path.realpath(place))
        folders[:] = [name for name in folders if os.path.realpath(f"{place}/{name}") not in seen]
        for name in names:
            inside = f"{place}/{name}".removeprefix(prefix)
            shown = os.fsencode(inside).decode(errors="backslashreplace")
            if shown != inside and not _is_hidden(shown):
                yield PublicationFile(fs.FileInfo(shown, fs.FileType.File, size=0), shown, MISNAMED)


def _depth_and_name(file: PublicationFile) -> tuple[int, str]:
    return file.name.count("/"), file.name


def _remove_duplicates(files: list[PublicationFile]) -> list[PublicationFile]:
    """Keep each file once, under its shortest name, even if links lead to a parent folder."""
    folders: dict[str, str] = {}
    known: dict[tuple[str, str], PublicationFile] = {}
    for file in files:
        parent = file.info.path.removesuffix(file.info.base_name)
        if parent not in folders:
            folders[parent] = os.path.realpath(parent)
        known.setdefault((folders[parent], file.info.base_name), file)
    return list(known.values())


def list_publications(place: str | Path) -> list[PublicationFile]:
    """List the publication files at a location; raise `InputError` if there are none."""
    location, given = Location.of(place), str(place)
    info = location.info()
    if info.type == fs.FileType.NotFound:
        raise InputError("no publications: there is no such file or folder", received=given)
    if info.is_file:
        return [PublicationFile(info, info.base_name)]
    files = list_files(location)
    if not files:
        raise InputError(
            "the folder has no publications", where=given, accepted="*.jsonl files, or one document per file"
        )
    return files


def _is_hidden(name: str) -> bool:
    return any(part.startswith((".", "_")) for part in name.split("/"))
